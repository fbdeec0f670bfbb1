//! The supervisor of a command without bubblewrap.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, pidfd_open,
    set_child_subreaper, wait, waitpid,
};

use super::{Layer, Limits, Role, SUBCOMMAND, namespaces};

/// The command, started through our program once more.
struct Supervised {
    process: Pid,
    engine: OwnedFd,
}

/// Starts the command within its limits, waits for it, and ends with its exit code. Everything it
/// started is ended before.
pub(super) fn run(limits: Limits, engine: i32) -> Result<Infallible, String> {
    let layer = limits.layer;
    let engine = engine_process(engine)?;
    match layer {
        Layer::Landlock => {
            set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?
        }
        _ => namespaces::enter(&limits)?,
    }
    let process = start(limits).map_err(|error| format!("cannot start it: {error}"))?;
    let supervised = Supervised { process, engine };
    let status = match layer {
        Layer::Landlock => supervised.wait_and_end_orphans(),
        _ => supervised.wait_for_namespace(),
    };
    std::process::exit(exit_code(status.map_err(|error| error.to_string())?))
}

/// The engine's process, to be told of its end. A signal at a parent's death would come with the
/// end of the engine's *thread*, which may be sooner.
fn engine_process(engine: i32) -> Result<OwnedFd, String> {
    let gone = || "the engine is gone".to_owned();
    let named = Pid::from_raw(engine).ok_or_else(gone)?;
    let opened = pidfd_open(named, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    // Looked at after opening: as long as it is our parent, its number is nobody else's.
    if getppid() == Some(named) { Ok(opened) } else { Err(gone()) }
}

fn start(mut limits: Limits) -> io::Result<Pid> {
    limits.role = Role::Supervised(getpid().as_raw_nonzero().get());
    // By this name our program is found whatever has become of the file system.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bindery").arg(SUBCOMMAND).args(limits.arguments());
    let child = command.spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("it has no number"))
}

impl Supervised {
    /// The first process of a namespace takes all others with it.
    fn wait_for_namespace(&self) -> rustix::io::Result<WaitStatus> {
        let first = pidfd_open(self.process, PidfdFlags::empty())?;
        let mut both = [&self.engine, &first].map(|one| PollFd::new(one, PollFlags::IN));
        while poll(&mut both, None) == Err(rustix::io::Errno::INTR) {}
        let [engine, _] = both;
        if !engine.revents().is_empty() {
            // It may be gone by now, which is what we want.
            let _ = kill_process(self.process, Signal::KILL);
        }
        loop {
            if let Some((_, status)) = waitpid(Some(self.process), WaitOptions::empty())? {
                return Ok(status);
            }
        }
    }

    /// What the command's processes leave behind becomes our child, and is ended with the command.
    fn wait_and_end_orphans(&self) -> rustix::io::Result<WaitStatus> {
        let engine =
            self.engine.as_fd().try_clone_to_owned().map_err(|_| rustix::io::Errno::MFILE)?;
        std::thread::spawn(move || {
            let mut engine = [PollFd::new(&engine, PollFlags::IN)];
            while poll(&mut engine, None) == Err(rustix::io::Errno::INTR) {}
            while end_children() {
                std::thread::yield_now();
            }
            std::process::exit(exit_code_of_signal(Signal::KILL.as_raw()))
        });
        let status = loop {
            match wait(WaitOptions::empty())? {
                Some((process, status)) if process == self.process => break status,
                _ => {}
            }
        };
        while end_children() {
            // Its children are ours now; there may be others by the time they are reaped.
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            std::thread::yield_now();
        }
        Ok(status)
    }
}

/// Kills our children. False if there are none.
fn end_children() -> bool {
    let own = getpid().as_raw_nonzero().get();
    let children = crate::exec::children_of(own);
    for child in children.iter().copied().filter_map(Pid::from_raw) {
        // It may be gone by now, which is what we want.
        let _ = kill_process(child, Signal::KILL);
    }
    !children.is_empty()
}

pub(super) fn exit_code(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal().map(exit_code_of_signal);
    status.exit_status().or(signal).unwrap_or(super::FAILED)
}

fn exit_code_of_signal(signal: i32) -> i32 {
    128 + signal
}
