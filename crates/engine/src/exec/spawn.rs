//! Starts a command on a pipe or on a terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use pty_process::{OwnedReadPty, OwnedWritePty, Pts, Size};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Child;

use crate::sandbox::{Egress, Placeholder};

use super::family::Family;
use super::session::lead_session;
use super::{Command, ExecError};

/// What a terminal measures unless somebody says otherwise.
const SIZE: (u16, u16) = (24, 80);

/// A command that runs.
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) family: Family,
    pub(super) output: Output,
    /// Only a terminal is written to.
    pub(super) input: Option<OwnedWritePty>,
    /// Held to the end.
    pub(super) placeholders: Vec<Placeholder>,
    pub(super) egress: Option<Egress>,
}

/// Where its output comes from.
pub(super) enum Output {
    Pipe(pipe::Receiver),
    Terminal(OwnedReadPty),
}

impl Output {
    /// Reads some; nothing means that nobody can write any more.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> usize {
        let read = match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            Self::Terminal(terminal) => terminal.read(buffer).await,
        };
        // A terminal that the last process has left answers with an error, not with an end.
        read.unwrap_or(0)
    }
}

pub(super) fn spawn(mut command: Command) -> Result<Spawned, ExecError> {
    let program = command.argv.first().ok_or(ExecError::Empty)?;
    let program = program.to_string_lossy().into_owned();
    if !command.cwd.is_dir() {
        return Err(ExecError::NoFolder { cwd: command.cwd });
    }
    let mut family = Family::marked(&mut command.env, command.enclosed);
    let started = if command.tty { on_terminal(&command) } else { on_pipe(&command) };
    let (child, output, input) = started.map_err(|source| ExecError::Spawn { program, source })?;
    family.led_by(child.id());
    Ok(Spawned {
        child,
        family,
        output,
        input,
        placeholders: command.placeholders,
        egress: command.egress,
    })
}

type Parts = (Child, Output, Option<OwnedWritePty>);

/// Both outputs share one pipe, so that they come in the order they were written. There is no
/// input: a program that asks for some would wait for ever.
fn on_pipe(command: &Command) -> io::Result<Parts> {
    let (reader, writer) = io::pipe()?;
    let mut prepared = prepared(command);
    prepared.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = prepared.spawn()?;
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    Ok((child, Output::Pipe(reader), None))
}

fn on_terminal(command: &Command) -> io::Result<Parts> {
    let (pty, pts) = pty_process::open().map_err(io::Error::other)?;
    pty.resize(Size::new(SIZE.0, SIZE.1)).map_err(io::Error::other)?;
    let child = if command.enclosed {
        on_free_terminal(command, &pts)?
    } else {
        // It leads a session, and the terminal is the session's own.
        pty_process::Command::from(bare(command)).spawn(pts).map_err(unwrapped)?
    };
    let (reader, writer) = pty.into_split();
    Ok((child, Output::Terminal(reader), Some(writer)))
}

/// The terminal belongs to nobody yet: the session within the enclosure takes it.
fn on_free_terminal(command: &Command, pts: &Pts) -> io::Result<Child> {
    let end = || pts.as_fd().try_clone_to_owned().map(Stdio::from);
    let mut prepared = prepared(command);
    prepared.stdin(end()?).stdout(end()?).stderr(end()?);
    prepared.spawn()
}

/// A leader of a session of its own, so that the terminal of this process is out of its reach.
fn prepared(command: &Command) -> tokio::process::Command {
    let mut prepared = bare(command);
    lead_session(&mut prepared);
    prepared
}

fn bare(command: &Command) -> tokio::process::Command {
    let mut prepared = tokio::process::Command::new(&command.argv[0]);
    prepared
        .args(&command.argv[1..])
        .current_dir(&command.cwd)
        .env_clear()
        .envs(&command.env)
        // The least that happens if the runtime goes away; usually the family is ended whole.
        .kill_on_drop(true);
    prepared
}

fn unwrapped(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
