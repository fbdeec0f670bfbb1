//! `sandbox-agent` from npm, measured as the daemon is: it serves agents of the Agent Client
//! Protocol over HTTP and SSE. The agent answers at once, so that only the server is slow.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::web::Web;
use crate::arguments;
use crate::bench::turn::model::PIECE;
use crate::bench::{cpu, memory};
use crate::need::{Need, Source};

/// The package. It is only measured: the tests do without.
pub(super) const NEED: Need = Need {
    name: "sandbox-agent",
    source: Source::Npm { package: "sandbox-agent", version: "0.4.2" },
    variable: "BINDERY_BENCH_SANDBOX_AGENT",
    tells_version: false,
    find: program,
};

/// Where it looks for the agent it calls `mock`, in its home.
const AGENT: &str = ".local/share/sandbox-agent/bin/agent_processes/mock-acp";

/// Where the conversation is.
const PATH: &str = "/v1/acp/bench";

/// How long it may take to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// The native program; the package for all platforms has a script, which needs Node.
fn program(folder: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(folder.join("node_modules/@sandbox-agent")).ok()?;
    let native = |name: &str| name.starts_with("cli-");
    let mut native =
        packages.flatten().filter(|entry| entry.file_name().to_str().is_some_and(native));
    native.find_map(|entry| {
        let path = entry.path().join("bin/sandbox-agent");
        path.is_file().then_some(path)
    })
}

/// A running server; it ends with this.
pub(super) struct Peer {
    child: Child,
    url: String,
    /// From its start to its first answer.
    pub(super) took: Duration,
}

impl Peer {
    /// Starts it, and waits until it answers.
    pub(super) fn start(program: &Path, home: &Path) -> anyhow::Result<Self> {
        place_agent(home)?;
        // Its own install script would do this; ours runs no scripts.
        runnable(program)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.args(["server", "--no-token", "--no-telemetry", "--port", &port.to_string()]);
        command.env("HOME", home).env_remove("XDG_DATA_HOME").current_dir(home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start `sandbox-agent`")?;
        let mut peer =
            Self { child, url: format!("http://127.0.0.1:{port}"), took: Duration::ZERO };
        while peer.web().is_err() {
            ensure!(begun.elapsed() < PATIENCE, "`sandbox-agent` is not ready");
            std::thread::sleep(Duration::from_millis(1));
        }
        peer.took = begun.elapsed();
        Ok(peer)
    }

    pub(super) fn megabytes(&self) -> anyhow::Result<f64> {
        memory::resident(self.child.id())
    }

    /// Starts the agent, and begins a conversation with it.
    pub(super) fn converse(&self) -> anyhow::Result<Conversation> {
        let mut conversation = Conversation { web: self.web()?, next: 0 };
        conversation
            .ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))?;
        conversation.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] }))?;
        Ok(conversation)
    }

    /// How many pieces a CPU second of the server is enough for, to one reader of its stream.
    pub(super) fn pace(&self, talk: &mut Conversation, pieces: usize) -> anyhow::Result<f64> {
        let mut reader = self.web()?;
        let before = cpu::live_threads(self.child.id())?;
        let reading =
            std::thread::spawn(move || reader.read_until(PATH, &format!("{PIECE}{} ", pieces - 1)));
        talk.prompt(pieces)?;
        reading.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
        let spent = cpu::live_threads(self.child.id())?.saturating_sub(before);
        Ok(pieces as f64 / spent.as_secs_f64())
    }

    fn web(&self) -> anyhow::Result<Web> {
        Web::connect(&self.url, "none")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A conversation with the agent, through the server.
pub(super) struct Conversation {
    web: Web,
    next: u64,
}

impl Conversation {
    /// Has so many pieces said; over when the agent says so.
    pub(super) fn prompt(&mut self, pieces: usize) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.ask("session/prompt", &prompt(pieces))?;
        Ok(begun.elapsed())
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.web.ask(&format!("{PATH}?agent=mock"), &request)
    }
}

/// The same agent on a bare pipe.
pub(super) struct Bare {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Bare {
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(arguments::SERVE_ACP).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the agent")?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("the agent has no stdout")?);
        Ok(Self { child, stdin, stdout })
    }

    pub(super) fn prompt(&mut self, pieces: usize) -> anyhow::Result<Duration> {
        let request = json!({ "id": 1, "method": "session/prompt", "params": prompt(pieces) });
        let begun = Instant::now();
        writeln!(self.stdin.as_mut().context("the agent was ended")?, "{request}")?;
        let mut line = String::new();
        for _ in 0..=pieces {
            line.clear();
            ensure!(self.stdout.read_line(&mut line)? > 0, "the agent has left");
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn prompt(pieces: usize) -> Value {
    json!({ "sessionId": "one", "prompt": [{ "type": "text", "text": pieces.to_string() }] })
}

fn place_agent(home: &Path) -> anyhow::Result<()> {
    let path = home.join(AGENT);
    fs::create_dir_all(path.parent().context("a folder")?)?;
    let program = std::env::current_exe()?;
    let script = format!("#!/bin/sh\nexec '{}' {}\n", program.display(), arguments::SERVE_ACP);
    fs::write(&path, script)?;
    runnable(&path)
}

fn runnable(program: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    #[cfg(not(unix))]
    let _ = program;
    Ok(())
}
