//! The built command, with a real Codex and a scripted model behind it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Script};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::stable::stable;

/// No command of a test takes this long; reaching it is a hang.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// Where the command runs, in the order it must be torn down.
pub(crate) struct Stage {
    pub(crate) codex: RealCodex,
    pub(crate) model: Model,
}

/// A command that has ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    /// A Codex that asks nobody and runs commands at once.
    pub(crate) fn free(script: impl Into<Script>) -> Self {
        Self::with(script, &Options::unrestricted())
    }

    /// A Codex as it comes: commands in a sandbox, questions where that is not enough.
    pub(crate) fn careful(script: impl Into<Script>) -> Self {
        Self::with(script, &Options::default())
    }

    /// A Codex of these options.
    pub(crate) fn with(script: impl Into<Script>, options: &Options) -> Self {
        let model = Model::start(script);
        Self { codex: RealCodex::with(&model, options), model }
    }

    /// `bindery` with these arguments, in the project, with nothing of this process's environment.
    pub(crate) fn bindery(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bindery"));
        command.args(args).current_dir(self.codex.project());
        command.env_clear().envs(self.codex.env()).env("BINDERY_CODEX", self.codex.program());
        command
    }

    /// Runs `bindery` to its end, with nothing to read.
    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        self.finish(start(self.bindery(args), Stdio::null())).await
    }

    /// Runs `bindery` to its end in another folder.
    pub(crate) async fn run_in(&self, folder: &Path, args: &[&str]) -> Ran {
        let mut command = self.bindery(args);
        command.current_dir(folder);
        self.finish(start(command, Stdio::null())).await
    }

    /// Runs `bindery` to its end, with this on its standard input.
    pub(crate) async fn run_reading(&self, args: &[&str], input: &str) -> Ran {
        let mut child = start(self.bindery(args), Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        self.finish(child).await
    }

    /// Starts `bindery` with pipes.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        start(self.bindery(args), Stdio::null())
    }

    /// Waits for its end.
    pub(crate) async fn finish(&self, child: Child) -> Ran {
        let output = timeout(HANG, child.wait_with_output()).await.expect("bindery hangs");
        Ran::of(output.unwrap(), &self.codex)
    }

    /// Waits until the model has come to this gate.
    pub(crate) async fn reached(&self, gate: &str) {
        timeout(HANG, self.model.wait_for_gate(gate, 1)).await.expect("the model was not asked");
    }

    /// A file in the project.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.codex.project().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What the model was told in each request: roles and texts, developer messages left out.
    pub(crate) fn heard(&self) -> Vec<Vec<String>> {
        let named = |line: String| stable(&line, &self.codex);
        let bodies = self.model.bodies();
        bodies.iter().map(|body| heard(body).into_iter().map(named).collect()).collect()
    }
}

impl Ran {
    fn of(output: Output, codex: &RealCodex) -> Self {
        let text = |bytes: Vec<u8>| stable(&String::from_utf8(bytes).unwrap(), codex);
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("a signal".to_owned(), |code| code.to_string());
        write!(f, "exit: {code}\nstdout:\n{}\nstderr:\n{}", self.out, self.err)
    }
}

fn start(command: std::process::Command, stdin: Stdio) -> Child {
    let mut command = Command::from(command);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

fn heard(body: &Value) -> Vec<String> {
    let items = body["input"].as_array().into_iter().flatten();
    // What Codex says of the folder and the machine comes as a user's message of its own.
    let items = items.filter(|item| item["role"] != "developer");
    let of_machine = |line: &String| line.starts_with("user: <") && !goes_along(line);
    items.map(line).filter(|line| !of_machine(line)).collect()
}

/// What a person gives along stands before their words.
fn goes_along(line: &str) -> bool {
    ["user: <image ", "user: <file "].iter().any(|label| line.starts_with(label))
}

fn line(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten();
    let text = |part: &Value| match part["type"].as_str() {
        Some("input_image") => format!("<image {}>", &part["image_url"].as_str().unwrap()[..22]),
        _ => part["text"].as_str().unwrap_or_default().to_owned(),
    };
    let texts: Vec<String> = parts.map(text).collect();
    format!("{}: {}", item["role"].as_str().unwrap_or("?"), texts.join(" / "))
}
