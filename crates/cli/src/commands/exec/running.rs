//! The turn itself: what the engine tells becomes lines, until it ends or a signal comes.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use bindery::RawEngine;
use bindery::client::peer::{Inbound, Peer};
use bindery::core::ids::ThreadId;
use bindery::core::map::app_server_to_exec::{ExecMapper, Outcome};
use bindery::core::wire::app_server::notification::Notification;
use bindery::core::wire::exec::event::Event;
use bindery::core::wire::rpc::RpcError;

use super::flags::Flags;
use super::human::Human;
use super::opening::Opening;

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The turn did.
    Turn(Outcome),
    /// Ctrl-C.
    Interrupted,
    /// Somebody ended the process.
    Terminated,
}

impl Ending {
    /// Codex's exit codes.
    pub(super) fn code(self) -> ExitCode {
        match self {
            Self::Turn(Outcome::Completed) => ExitCode::SUCCESS,
            Self::Turn(_) | Self::Interrupted => ExitCode::FAILURE,
            Self::Terminated => ExitCode::from(143),
        }
    }
}

/// Where lines go.
enum Printer {
    Json,
    Human(Human),
}

/// Opens the thread and runs the turn.
pub(super) async fn run(
    engine: &mut RawEngine,
    opening: &Opening,
    flags: &Flags,
    cwd: &Path,
) -> anyhow::Result<Ending> {
    let mut signals = Signals::listen()?;
    let RawEngine { peer, inbound, .. } = engine;
    let turn = async {
        let opened = opening.open(peer, flags, cwd).await?;
        let mut mapper = ExecMapper::new(ThreadId::new(opened.id.as_str()));
        let mut printer = match flags.json {
            true => Printer::Json,
            false => Printer::Human(Human::begin(&opened.reply, &opening.prompt, flags.color)?),
        };
        printer.print(&mapper.begin())?;
        opening.start(peer, flags, &opened.id).await?;
        let outcome = loop {
            let events = hear(peer, &mut mapper, inbound.recv().await).await?;
            events.iter().try_for_each(|event| printer.print(event))?;
            if let Some(outcome) = mapper.outcome() {
                break outcome;
            }
        };
        finish(&mapper, printer, flags)?;
        anyhow::Ok(Ending::Turn(outcome))
    };
    tokio::select! {
        biased;
        ending = signals.next() => Ok(ending),
        ending = turn => ending,
    }
}

/// The lines for what the engine said. Nobody is there to be asked.
async fn hear(
    peer: &Peer,
    mapper: &mut ExecMapper,
    told: Option<Inbound>,
) -> anyhow::Result<Vec<Event>> {
    match told.context("the engine is gone")? {
        Inbound::Notification { method, params, .. } => {
            Ok(mapper.push(&Notification::decode(&method, &params)))
        }
        Inbound::Request { id, method, .. } => {
            let message = format!("`exec` asks nobody: {method}");
            peer.respond_error(&id, &RpcError { code: -32000, message, data: None }).await?;
            Ok(Vec::new())
        }
        Inbound::Unreadable { why, .. } => Ok(vec![mapper.warn(why)]),
        Inbound::Closed(end) => anyhow::bail!("the engine ended: {}", end.status),
    }
}

fn finish(mapper: &ExecMapper, printer: Printer, flags: &Flags) -> anyhow::Result<()> {
    if let Printer::Human(human) = printer {
        human.finish(mapper)?;
    }
    let Some(path) = &flags.output_last_message else { return Ok(()) };
    let name = path.display();
    if mapper.last_message().is_none() {
        let said = format!("Warning: no last agent message; wrote empty content to {name}\n");
        std::io::stderr().write_all(said.as_bytes())?;
    }
    std::fs::write(path, mapper.last_message().unwrap_or_default())
        .with_context(|| format!("cannot write the answer to `{name}`"))
}

impl Printer {
    fn print(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Human(human) => human.show(event),
            Self::Json => {
                let mut line = serde_json::to_vec(event)?;
                line.push(b'\n');
                let mut out = std::io::stdout().lock();
                out.write_all(&line)?;
                Ok(out.flush()?)
            }
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupted,
            _ = self.terminate.recv() => Ending::Terminated,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Ending {
        // An error means that no signal can come.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Ending::Interrupted
    }
}
