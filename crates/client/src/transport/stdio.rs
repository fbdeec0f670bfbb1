//! An app-server as a child process, spoken to over its stdin and stdout.
//!
//! The child leads a process group of its own, and the whole group is ended with it, as is what its
//! commands have started. If our own process is killed, the closed stdin ends Codex (0.166: within
//! about 0.1 s, even mid-turn); what a command outside the sandbox has started may then remain.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_core::lines::{Line, LineSplitter};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::group::{self, Group};
use super::pump::{self, Signals};
use super::{Closer, End, LINE_LIMIT, Transport};
use crate::error::Error;
use crate::locate::Located;

/// What to start, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Added to our environment, not instead of it.
    pub env: Vec<(OsString, OsString)>,
    /// Taken out of our environment.
    pub env_remove: Vec<OsString>,
    /// Folder to start in; ours if there is none.
    pub cwd: Option<PathBuf>,
    /// How long it may take after its stdin is closed, and again after it was asked to terminate.
    pub grace: Duration,
    /// The longest line kept whole.
    pub line_limit: usize,
}

impl Launch {
    /// Any program that speaks the protocol on its stdin and stdout.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            cwd: None,
            grace: Duration::from_secs(2),
            line_limit: LINE_LIMIT,
        }
    }

    /// The app-server of a Codex that was found.
    pub fn codex(codex: &Located) -> Self {
        let mut launch = Self::new(&codex.path);
        launch.args.push("app-server".into());
        if let Some(path) = codex.tools.as_deref().and_then(with_tools) {
            launch.env.push(("PATH".into(), path));
        }
        launch
    }
}

/// Starts the program. Must be called within a runtime, whose tasks then own the child.
pub fn spawn(launch: &Launch) -> Result<Transport, Error> {
    let failed = |source| Error::Spawn { program: launch.program.display().to_string(), source };
    let mut child = command(launch).map_err(failed)?.spawn().map_err(failed)?;
    let (Some(stdin), Some(stdout), Some(stderr), Some(leader)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take(), child.id())
    else {
        return Err(failed(io::Error::other("the process has no pipes")));
    };
    let (gone, signals) = Signals::new();
    let tasks = TaskTracker::new();
    let group = Arc::new(Group::new(leader));
    let tail = Tail::default();
    let (outgoing, incoming) = pump::start(stdout, stdin, launch.line_limit, &signals, &tasks);
    let silent = CancellationToken::new();
    tasks.spawn(listen(stderr, tail.clone(), signals.clone(), silent.clone()));
    let keeper = Keeper { child, group: group.clone(), tail, silent, grace: launch.grace };
    tasks.spawn(keeper.run(signals.stop.clone(), gone));
    tracing::debug!(program = %launch.program.display(), leader, "started");
    let closer = Closer { signals, tasks, group: Some(group) };
    Ok(Transport { outgoing, incoming, send_limit: LINE_LIMIT, closer })
}

/// The command, leading a group of its own, with pipes.
pub(crate) fn command(launch: &Launch) -> io::Result<Command> {
    let mut command = Command::new(&launch.program);
    if let Some(cwd) = &launch.cwd {
        // The system reports a missing folder exactly as it reports a missing program.
        if !cwd.is_dir() {
            let text = format!("no folder `{}` to start in", cwd.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
        }
        command.current_dir(cwd);
    }
    command.args(&launch.args);
    for name in &launch.env_remove {
        command.env_remove(name);
    }
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    group::lead(&mut command);
    Ok(command)
}

/// `PATH` with the tools of a Codex first.
pub(crate) fn with_tools(tools: &Path) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path))).ok()
}

/// How long to wait for the end of stderr once the child is dead.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Owns the child until nothing of it is left.
struct Keeper {
    child: Child,
    group: Arc<Group>,
    tail: Tail,
    /// Set when stderr has ended.
    silent: CancellationToken,
    grace: Duration,
}

impl Keeper {
    async fn run(mut self, stop: CancellationToken, gone: watch::Sender<Option<End>>) {
        let exit = tokio::select! {
            biased;
            exit = self.child.wait() => exit,
            () = stop.cancelled() => self.end().await,
        };
        self.group.release();
        let status = match exit {
            Ok(status) => group::describe(status),
            Err(err) => format!("lost: {err}"),
        };
        // Its last words are already in the pipe; a process it left behind may hold that open.
        let _ = timeout(LAST_WORDS, self.silent.cancelled()).await;
        tracing::debug!(leader = self.group.leader(), status, "ended");
        gone.send_replace(Some(End { status, stderr: self.tail.text() }));
        stop.cancel();
    }

    /// By now the writer closes stdin, which is Codex's own way to be told.
    async fn end(&mut self) -> io::Result<std::process::ExitStatus> {
        if let Ok(exit) = timeout(self.grace, self.child.wait()).await {
            return exit;
        }
        self.group.terminate();
        if let Ok(exit) = timeout(self.grace, self.child.wait()).await {
            return exit;
        }
        self.group.kill();
        self.child.wait().await
    }
}

impl Drop for Keeper {
    /// Reached without [`Keeper::run`] having ended only when the runtime goes down.
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// The last of what was said on stderr.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

/// How much of stderr is kept.
const TAIL: usize = 16 * 1024;

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }

    fn text(&self) -> String {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(tail.make_contiguous());
        plain(text.trim_start_matches('\u{fffd}'))
    }
}

/// Codex colours its log whether or not a terminal reads it.
pub(crate) fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|mark: char| ('@'..='~').contains(&mark));
        plain.push_str(end.map_or("", |end| &piece[end + 1..]));
    }
    plain
}

async fn listen(stderr: ChildStderr, tail: Tail, mut signals: Signals, silent: CancellationToken) {
    tokio::select! {
        () = drain(stderr, &tail) => {}
        _ = signals.gone() => {}
    }
    silent.cancel();
}

async fn drain(mut stderr: ChildStderr, tail: &Tail) {
    let mut splitter = LineSplitter::new(4096);
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        tail.push(&buffer[..read]);
        for line in splitter.push(&buffer[..read]) {
            let (Line::Whole(line) | Line::TooLong { head: line, .. }) = line;
            tracing::debug!(target: "codex::stderr", "{}", plain(&String::from_utf8_lossy(&line)));
        }
    }
}
