//! The Node side: one process, told by lines which variant to run.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use bindery_testkit::codex::RealCodex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bench::turn::QUESTION;
use crate::{need, npm, step, workspace};

/// What a call or a crowd took.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    /// Milliseconds to the first text.
    pub(super) text: f64,
    /// Milliseconds to the end.
    pub(super) finish: f64,
    /// CPU time of Node, in milliseconds.
    pub(super) cpu: f64,
    /// Memory of the processes under it.
    pub(super) mib: f64,
}

pub(super) struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// What is measured, built, and what it is measured against, installed.
pub(super) struct Workshop {
    folder: PathBuf,
    bindery: PathBuf,
    node: PathBuf,
}

impl Workshop {
    pub(super) fn prepare(root: &Path) -> anyhow::Result<Self> {
        let folder = npm::bench(root)?;
        let mut build = workspace::cargo(root);
        build.args(["build", "--release", "--package", "bindery-cli"]);
        step::command("build bindery", &mut build, "mend the build")?;
        let bindery = npm::target(root)?.join("release/bindery");
        Ok(Self { folder, bindery, node: need::path(root, &npm::NODE)? })
    }
}

impl Node {
    /// Starts it, with a home for each provider.
    pub(super) fn start(
        workshop: &Workshop,
        stages: &[(&str, Arc<RealCodex>)],
    ) -> anyhow::Result<Self> {
        let (_, first) = stages.first().context("a stage")?;
        let told: serde_json::Map<_, _> =
            stages.iter().map(|(name, codex)| ((*name).to_owned(), told(codex))).collect();
        let told = json!({ "codex": first.program(), "question": QUESTION, "stages": told });
        let mut command = Command::new(&workshop.node);
        command.arg("bench.mjs").current_dir(&workshop.folder);
        // As the raw loop's Codex has it: what it inherits may cost it time in every turn.
        command.env_clear().envs(first.env());
        command.env("BENCH", told.to_string()).env("BINDERY_BIN", &workshop.bindery);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start Node")?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("Node has no stdout")?);
        let mut node = Self { child, stdin, stdout };
        node.answer()?;
        Ok(node)
    }

    /// Has a line done.
    pub(super) fn ask(&mut self, line: &str) -> anyhow::Result<Answer> {
        let stdin = self.stdin.as_mut().context("Node was ended")?;
        writeln!(stdin, "{line}")?;
        self.answer()
    }

    /// Lets it end.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the Node side of the bench failed ({status})");
        Ok(())
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).context("the Node side of the bench ended; see above")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The end of its stdin is its sign to go; one that failed is gone already.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn told(codex: &RealCodex) -> Value {
    let env = codex.env().into_iter().map(|(name, value)| (name, Value::from(value)));
    json!({ "project": codex.project(), "env": env.collect::<serde_json::Map<_, _>>() })
}
