//! Commands a model runs: started, waited for a while, written to, and ended with all they started.
//!
//! [`Processes`] holds those of one thread. A command is [started](Processes::start), its output
//! [collected](Processes::collect) for as long as the call may take, and if it still runs it is
//! asked again later by its [`Session`]. [`finish`](Processes::finish) is for the older forms,
//! which wait for the end or a time limit. Nothing here decides whether a command may run: that is
//! `safety`, and what it may touch is `sandbox`.

pub mod shell;

pub mod window;

pub mod text;

pub mod head_tail;

mod delta;

mod family;

pub(crate) mod keeper;

mod session;

mod spawn;

mod process;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::sandbox::{Egress, Placeholder};

pub use delta::{Delta, Deltas};
pub(crate) use family::Family;
#[cfg(target_os = "linux")]
pub(crate) use family::children_of;
pub use process::{Ending, Process};
pub(crate) use session::{lead_session, lead_session_blocking};

/// A running command's name for the model.
pub type Session = i32;

/// How many commands one thread may have at once.
pub const MOST: usize = 64;

/// What the older forms report for a command that took too long, as `timeout(1)` does.
pub const TIMED_OUT: i32 = 124;

/// A command, ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its whole environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// Whether it gets a terminal.
    pub tty: bool,
    /// Whether `argv` is a sandbox's own program that starts the command in a session of its own.
    /// Signals then pass it by, and it takes the terminal itself.
    pub enclosed: bool,
    /// Folders that a sandbox made for it, removed after it.
    pub placeholders: Vec<Placeholder>,
    /// Its way out to the network, which ends with it.
    pub egress: Option<Egress>,
}

/// Why a command could not be run or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// There is nothing to run.
    #[error("the command is empty")]
    Empty,
    /// The folder to run it in is not there.
    #[error("cannot run in `{}`: it is no folder", cwd.display())]
    NoFolder {
        /// The folder.
        cwd: PathBuf,
    },
    /// The system did not start it.
    #[error("cannot start `{program}`: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// As many as may be are running.
    #[error("{MOST} commands are running already; end one of them first: {sessions:?}")]
    TooMany {
        /// Those that run.
        sessions: Vec<Session>,
    },
    /// There is no such command, or its end was told already.
    #[error("no command has session ID {0}; it ended and was reported, or never was")]
    Unknown(Session),
    /// A command without a terminal reads nothing.
    #[error(
        "session {0} has no terminal, so it reads no input; \
         run the command with `tty` set to true, or send only \\u0003 to interrupt it"
    )]
    NoInput(Session),
    /// The command does not read what it was sent before.
    #[error("session {0} does not read its input; wait for it, or end it with \\u0003")]
    InputFull(Session),
}

/// What came of a call: the output since the last one, and whether the command still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Six letters that tell this piece from others.
    pub id: String,
    /// How long this call took.
    pub wall: Duration,
    /// Whether it ended.
    pub state: State,
    /// What it wrote since the last call; at most [`head_tail::MOST`] bytes and a line that says
    /// what was left out.
    pub output: String,
    /// How many bytes it wrote since the last call, kept or not.
    pub total_bytes: u64,
    /// How many of them were not kept.
    pub omitted: u64,
}

impl Chunk {
    /// The size of the whole output in tokens, as Codex counts: four bytes each.
    pub fn original_tokens(&self) -> u64 {
        self.total_bytes.div_ceil(4)
    }
}

/// Whether a command still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, and can be asked again.
    Running(Session),
    /// It ended, with this exit code; one that a signal ended has 128 and the signal's number.
    Exited(i32),
}

/// How the older forms ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its end, with exit code [`TIMED_OUT`] where it took too long.
    pub ending: Ending,
    /// Whether the time limit ended it.
    pub timed_out: bool,
}

/// The commands of one thread.
#[derive(Debug, Default)]
pub struct Processes {
    table: Mutex<Table>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    processes: HashMap<Session, Entry>,
    /// Counts the starts, so that the oldest can be told.
    starts: u64,
}

#[derive(Debug)]
struct Entry {
    process: Arc<Process>,
    order: u64,
}

impl Processes {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a command. Its live output goes to the [`Deltas`], which may be dropped.
    pub fn start(&self, command: Command) -> Result<(Arc<Process>, Deltas), ExecError> {
        let mut table = self.table();
        table.make_room()?;
        let session = table.unused();
        let (process, deltas) =
            process::start(session, command, &self.tasks, self.stop.child_token())?;
        let process = Arc::new(process);
        let order = table.starts;
        table.starts += 1;
        table.processes.insert(session, Entry { process: Arc::clone(&process), order });
        Ok((process, deltas))
    }

    /// Waits for a command's end, at most for the window, and takes what it has written.
    ///
    /// A command whose end is told here is forgotten.
    pub async fn collect(
        &self,
        session: Session,
        window: Duration,
        cancel: &CancellationToken,
    ) -> Result<Chunk, ExecError> {
        let process = self.find(session)?;
        let begun = Instant::now();
        tokio::select! {
            _ = process.ended() => {}
            () = tokio::time::sleep(window) => {}
            () = cancel.cancelled() => {}
        }
        let chunk = process.take(begun.elapsed());
        if let State::Exited(_) = chunk.state {
            self.table().processes.remove(&session);
        }
        Ok(chunk)
    }

    /// Sends text to a command, then collects. No text only waits; `\u{3}` interrupts.
    pub async fn write(
        &self,
        session: Session,
        chars: &str,
        window: Duration,
        cancel: &CancellationToken,
    ) -> Result<Chunk, ExecError> {
        if !chars.is_empty() {
            self.find(session)?.write(chars)?;
        }
        self.collect(session, window, cancel).await
    }

    /// Waits for a command's end, and ends it when the limit has passed or `cancel` is set; for
    /// the older forms.
    pub async fn finish(
        &self,
        process: &Process,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Ran {
        let timed_out = tokio::select! {
            _ = process.ended() => false,
            () = tokio::time::sleep(limit) => true,
            () = cancel.cancelled() => false,
        };
        process.end();
        let mut ending = process.ended().await;
        self.table().processes.remove(&process.session());
        if timed_out {
            ending.exit_code = TIMED_OUT;
        }
        Ran { ending, timed_out }
    }

    /// The command with this name.
    pub fn find(&self, session: Session) -> Result<Arc<Process>, ExecError> {
        let table = self.table();
        let entry = table.processes.get(&session).ok_or(ExecError::Unknown(session))?;
        Ok(Arc::clone(&entry.process))
    }

    /// Those that still run.
    pub fn running(&self) -> Vec<Session> {
        self.table().running()
    }

    /// Ends all commands and whatever they started, and waits until they are gone. None can be
    /// started afterwards that is not ended at once.
    pub async fn end_all(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.table().processes.clear();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Table {
    /// Forgets the oldest that has ended, if there is no room. Its end was never asked for.
    fn make_room(&mut self) -> Result<(), ExecError> {
        if self.processes.len() < MOST {
            return Ok(());
        }
        let ended = self.processes.iter().filter(|(_, entry)| entry.process.has_ended());
        let oldest = ended.min_by_key(|(_, entry)| entry.order).map(|(session, _)| *session);
        match oldest {
            Some(session) => {
                tracing::debug!(session, "an ended command nobody asked for is forgotten");
                self.processes.remove(&session);
                Ok(())
            }
            None => Err(ExecError::TooMany { sessions: self.running() }),
        }
    }

    fn running(&self) -> Vec<Session> {
        let running = self.processes.iter().filter(|(_, entry)| !entry.process.has_ended());
        let mut sessions: Vec<_> = running.map(|(session, _)| *session).collect();
        sessions.sort_unstable();
        sessions
    }

    /// A number of four or five digits: short for the model, and not one it could guess at.
    fn unused(&self) -> Session {
        loop {
            let [one, two, three, _] = text::random();
            let number = i32::from_be_bytes([0, one, two, three]) % 99_000 + 1_000;
            if !self.processes.contains_key(&number) {
                return number;
            }
        }
    }
}
