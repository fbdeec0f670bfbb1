//! A running `bindery serve`, which can be killed and started again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bindery_testkit::backend::Server;
use bindery_testkit::codex::Options;
use bindery_testkit::model::Script;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{HANG, Stage};
use crate::web::Web;

/// A daemon with a data folder of its own, a real Codex or the engine, and a scripted model.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) web: Web,
    pub(crate) stage: Stage,
    folder: TempDir,
    settings: String,
}

impl Daemon {
    pub(crate) fn new(script: impl Into<Script>) -> Self {
        Self::with(script, "")
    }

    /// With these further settings.
    pub(crate) fn with(script: impl Into<Script>, settings: &str) -> Self {
        Self::with_options(script, settings, &Options::default())
    }

    /// With a home of these options.
    pub(crate) fn with_options(
        script: impl Into<Script>,
        settings: &str,
        options: &Options,
    ) -> Self {
        Self::on(Stage::with(script, options), settings)
    }

    /// With another program in Codex's place, made for the real one.
    pub(crate) fn with_program(
        script: impl Into<Script>,
        program: impl FnOnce(&Path) -> PathBuf,
    ) -> Self {
        let Stage { codex, model } = Stage::with(script, &Options::default());
        let program = program(codex.program());
        Self::on(Stage { codex: codex.served_by(&program), model }, "")
    }

    fn on(stage: Stage, settings: &str) -> Self {
        let folder = TempDir::with_prefix("bindery-serve-").unwrap();
        let (child, web) = start(&stage, &folder, settings);
        Self { child, web, stage, folder, settings: settings.to_owned() }
    }

    /// Where it keeps everything.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Ends it without a word; its workers live on.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Asks it to end, and waits for that and for something else meanwhile.
    pub(crate) async fn terminate_while<T>(
        &mut self,
        other: impl Future<Output = T>,
    ) -> (Option<i32>, T) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let other = other.await;
        (self.child.wait().unwrap().code(), other)
    }

    /// Starts it again on the same data.
    pub(crate) fn again(&mut self) {
        let (child, web) = start(&self.stage, &self.folder, &self.settings);
        (self.child, self.web) = (child, web);
    }

    /// The numbers of the worker processes.
    pub(crate) fn workers(&self) -> Vec<i32> {
        workers(&self.data())
    }

    /// Runs `bindery tenant …` on its data; gives what it prints.
    pub(crate) fn tenant(&self, args: &[&str]) -> String {
        let data = self.data();
        let mut all = vec!["tenant", "--data", data.to_str().unwrap()];
        all.extend(args);
        let output = self.stage.bindery(&all).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Other settings for the first tenant.
    pub(crate) fn set_tenant(&self, settings: &str) {
        let file = self.folder.path().join("tenant.toml");
        std::fs::write(&file, settings).unwrap();
        self.tenant(&["set", "default", "--settings", file.to_str().unwrap()]);
    }

    /// A thread in which every command is asked for.
    pub(crate) async fn careful(&self) -> String {
        let settings = json!({ "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
        self.thread(json!({ "settings": settings })).await
    }

    pub(crate) async fn thread(&self, body: Value) -> String {
        let (status, thread) = self.web.post("/v1/threads", body).await;
        assert_eq!(status, 201, "{thread}");
        thread["id"].as_str().unwrap().to_owned()
    }

    /// Starts a turn with this text.
    pub(crate) async fn say(&self, thread: &str, text: &str) -> String {
        let path = format!("/v1/threads/{thread}/turns");
        let (status, turn) = self.web.post(&path, json!({ "input": text })).await;
        assert_eq!(status, 201, "{turn}");
        turn["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_workers(&self.data());
    }
}

/// The folders of the workers that there are.
fn folders(data: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(data.join("workers")).into_iter().flatten();
    folders.flatten().map(|folder| folder.path()).collect()
}

/// The numbers of the worker processes of a daemon with these data.
pub(crate) fn workers(data: &Path) -> Vec<i32> {
    let read =
        |folder: PathBuf| std::fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok();
    folders(data).into_iter().filter_map(read).collect()
}

/// Ends the workers that a daemon has left.
pub(crate) fn end_workers(data: &Path) {
    let folders = folders(data);
    // Their guards end them on this word.
    for folder in &folders {
        let _ = std::fs::write(folder.join("stop"), "");
    }
    let begin = Instant::now();
    let ended = |folder: &PathBuf| !folder.exists() || folder.join("exit").exists();
    while !folders.iter().all(ended) && begin.elapsed() < HANG {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(stage: &Stage, folder: &TempDir, settings: &str) -> (Child, Web) {
    let (data, config) = (folder.path().join("data"), folder.path().join("bindery.toml"));
    std::fs::write(&config, settings).unwrap();
    let mut command = stage.bindery(&["serve"]);
    if Server::current() == Server::Engine {
        command.env_remove("BINDERY_CODEX").args(["--backend", "engine"]);
    }
    command.arg("--data").arg(data).arg("--config").arg(config);
    announced(command)
}

/// Starts a `bindery serve` and waits until it says where it is.
pub(crate) fn announced(mut command: Command) -> (Child, Web) {
    command.args(["--listen", "127.0.0.1:0", "--announce"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let told: Value = serde_json::from_str(&line).expect("the server says where it is");
    let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let token = told["token"].as_str().unwrap().to_owned();
    (child, Web { address: address.parse().unwrap(), token })
}
