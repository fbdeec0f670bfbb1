//! A process and all it started, ended together.

use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::Command;

use super::family::{self, Member};

/// The process group led by one child, and what its members started outside of it.
#[derive(Debug)]
pub struct Group {
    leader: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// False once the leader was reaped: from then on the number may be somebody else's.
    ours: bool,
    family: Vec<Member>,
}

impl Group {
    /// The group of this child, which was started to lead one.
    pub fn new(leader: u32) -> Self {
        Self { leader, state: Mutex::new(State { ours: true, family: Vec::new() }) }
    }

    pub(crate) fn leader(&self) -> u32 {
        self.leader
    }

    /// Looks up who belongs to it; to be done before the leader can go, and again if it lingers.
    pub fn remember(&self) {
        self.state().remember(self.leader);
    }

    /// Asks every process of the group to end.
    pub fn terminate(&self) {
        let mut state = self.state();
        state.remember(self.leader);
        if state.ours {
            system::terminate(self.leader);
        }
    }

    /// Ends all of them.
    pub fn kill(&self) {
        let mut state = self.state();
        state.remember(self.leader);
        state.kill(self.leader);
    }

    /// Ends what the reaped leader left behind, and forgets the number.
    ///
    /// While any process is left in the group the system does not give its number away; if none is,
    /// the call comes within microseconds of the reaping.
    pub fn release(&self) {
        let mut state = self.state();
        state.kill(self.leader);
        state.ours = false;
    }

    /// Held over every signal, so that the number cannot be forgotten in between.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, leader: u32) {
        if self.ours {
            let found = family::of(leader);
            self.family.retain(|member| !found.contains(member));
            self.family.extend(found);
        }
    }

    fn kill(&mut self, leader: u32) {
        if self.ours {
            system::kill(leader);
        }
        self.family.drain(..).for_each(family::kill);
    }
}

/// Lets the command lead a group of its own, which also keeps the terminal's Ctrl-C from it.
pub(crate) fn lead(command: &mut Command) {
    system::lead(command);
}

/// The name of the signal that ended a process, or its number.
pub(crate) fn signal(status: ExitStatus) -> Option<String> {
    system::signal(status).map(|(number, name)| match name {
        Some(name) => name.to_owned(),
        None => number.to_string(),
    })
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), system::signal(status)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some((number, Some(name)))) => format!("signal {number} ({name})"),
        (None, Some((number, None))) => format!("signal {number}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(unix)]
mod system {
    //! Unix: process groups and signals.

    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::Command;

    pub(super) fn lead(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn terminate(leader: u32) {
        signal_group(leader, Signal::TERM);
    }

    pub(super) fn kill(leader: u32) {
        signal_group(leader, Signal::KILL);
    }

    fn signal_group(leader: u32, signal: Signal) {
        let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) else { return };
        // The usual failure is that the group is empty, which is what we want.
        if let Err(err) = kill_process_group(pid, signal) {
            tracing::trace!(leader, %err, "nothing left to signal");
        }
    }

    pub(super) fn signal(status: ExitStatus) -> Option<(i32, Option<&'static str>)> {
        let number = status.signal()?;
        let name = NAMES.iter().find(|(signal, _)| *signal == number).map(|(_, name)| *name);
        Some((number, name))
    }

    /// Numbers that are the same on every Unix we run on.
    const NAMES: [(i32, &str); 12] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
    ];
}

#[cfg(windows)]
mod system {
    //! Windows: there are no group signals, so the tree is ended by its root.

    use std::process::{ExitStatus, Stdio};

    use tokio::process::Command;

    const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;

    pub(super) fn lead(command: &mut Command) {
        command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    }

    /// A process without a window cannot be asked; it had the closed stdin as its warning.
    pub(super) fn terminate(leader: u32) {
        kill(leader);
    }

    pub(super) fn kill(leader: u32) {
        let killed = std::process::Command::new("taskkill")
            .args(["/T", "/F", "/PID", &leader.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if let Err(err) = killed {
            tracing::debug!(leader, %err, "cannot run `taskkill`");
        }
    }

    pub(super) fn signal(_: ExitStatus) -> Option<(i32, Option<&'static str>)> {
        None
    }
}
