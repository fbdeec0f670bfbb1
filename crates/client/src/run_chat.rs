//! One run of a command-line agent: a request goes in, a normalised stream and an end come out.
//!
//! A [`ChatAgent`] says what to start and how to read what it prints; [`run_chat`] does the rest:
//! a process group of its own, the prompt on stdin, abort, deadline and limits, artifacts, and an
//! end that is always told, after everything else.

pub mod agent;

pub mod codex;

pub mod gemini;

pub mod described;

pub mod mapper;

mod artifacts;

mod joined;

mod process;

mod stderr;

use std::path::PathBuf;
use std::time::Duration;

use bindery_core::map::exec_to_ndjson::{Cause, Exit};
use bindery_core::map::exec_to_part::EventParts;
use bindery_core::ndjson::{self, Dialect, Event};
use bindery_core::part::Part;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::agent::{ChatAgent, ChatCommand, ChatRequest};
pub use self::joined::Joined;
use self::mapper::StdoutMapper;
use crate::error::Error;

/// How a run is to be given, and what it may cost.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The form of the stream.
    pub form: Form,
    /// A folder whose new and changed files are told at the end.
    pub artifacts: Option<PathBuf>,
    /// Put before the names of items, so that they are unique over several runs.
    pub run: Option<String>,
    /// The longest a run may take.
    pub deadline: Option<Duration>,
    /// How long the process may take to end after it was asked to.
    pub grace: Duration,
    /// The most that may come on stdout; reaching it ends the run.
    pub stdout_limit: u64,
    /// The most that is told of stderr.
    pub stderr_limit: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            form: Form::Ndjson(Dialect::Full),
            artifacts: None,
            run: None,
            deadline: None,
            grace: Duration::from_secs(2),
            stdout_limit: 4 * 1024 * 1024 * 1024,
            stderr_limit: 1024 * 1024,
        }
    }
}

/// The form of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object a line.
    Ndjson(Dialect),
    /// AI SDK stream parts.
    Parts,
}

/// What comes out of a run, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The process runs.
    Started {
        /// Its number, and that of its group.
        pid: u32,
    },
    /// What an agent without a mapper printed, unchanged, cut anywhere.
    Stdout(Vec<u8>),
    /// Whole lines of the normalised stream.
    Lines(Vec<u8>),
    /// Stream parts.
    Parts(Vec<Part>),
    /// The run is over; always the last.
    End(Exit),
}

/// Runs an agent to its end. Everything, the end included, goes to `outputs`; a receiver that is
/// dropped aborts the run.
pub async fn run_chat(
    agent: &dyn ChatAgent,
    request: &ChatRequest,
    options: &RunOptions,
    abort: &CancellationToken,
    outputs: mpsc::Sender<Output>,
) -> Exit {
    let mapper = agent.mapper(request, options);
    let parts = EventParts::default();
    let mut stream = Stream { mapper, form: options.form, parts, outputs };
    let exit = match start(agent, request, abort).await {
        Ok(command) => process::run(agent, &command, options, abort, &mut stream).await,
        Err(exit) => exit,
    };
    let outputs = stream.end(&exit);
    stream.send_all(outputs).await;
    stream.send(Output::End(exit.clone())).await;
    exit
}

/// Everything that comes before the process.
async fn start(
    agent: &dyn ChatAgent,
    request: &ChatRequest,
    abort: &CancellationToken,
) -> Result<ChatCommand, Exit> {
    agent.check(request).map_err(|err| not_started(&err))?;
    let prepared = tokio::select! {
        biased;
        () = abort.cancelled() => return Err(stopped(Cause::Aborted)),
        prepared = agent.prepare(request) => prepared,
    };
    prepared.map_err(|err| not_started(&err))?;
    agent.command(request).map_err(|err| not_started(&err))
}

fn stopped(cause: Cause) -> Exit {
    Exit { cause: Some(cause), ..Exit::default() }
}

/// The whole chain of reasons, in one line.
fn not_started(err: &Error) -> Exit {
    let mut detail = err.to_string();
    let mut cause = std::error::Error::source(err);
    while let Some(err) = cause {
        detail.push_str(&format!(": {err}"));
        cause = err.source();
    }
    Exit { detail: Some(detail), ..stopped(Cause::NotStarted) }
}

/// The way out: mapper and receiver.
struct Stream {
    mapper: Option<Box<dyn StdoutMapper>>,
    form: Form,
    /// For the events of an agent without a mapper.
    parts: EventParts,
    outputs: mpsc::Sender<Output>,
}

impl Stream {
    fn stdout(&mut self, bytes: &[u8]) -> Vec<Output> {
        match &mut self.mapper {
            Some(mapper) => mapper.push(bytes),
            None => vec![Output::Stdout(bytes.to_vec())],
        }
    }

    /// An event that is not the agent's own: stderr, an artifact.
    fn event(&mut self, event: &Event<'_>) -> Vec<Output> {
        match (&mut self.mapper, self.form) {
            (Some(mapper), _) => mapper.event(event),
            (None, Form::Ndjson(dialect)) => {
                let mut line = Vec::new();
                ndjson::write(event, dialect, &mut line);
                vec![Output::Lines(line)]
            }
            (None, Form::Parts) => {
                let mut parts = Vec::new();
                self.parts.take(event, &mut parts);
                vec![Output::Parts(parts)]
            }
        }
    }

    fn end(&mut self, exit: &Exit) -> Vec<Output> {
        if let Some(mapper) = &mut self.mapper {
            return mapper.end(exit);
        }
        // An agent that tells its own lines tells its own result, if it ever ran.
        if self.form != Form::Parts && exit.cause != Some(Cause::NotStarted) {
            return Vec::new();
        }
        let result = exit.result();
        let message = result.error.clone();
        let error = message.map(|message| Event::Error { message, fatal: true });
        let mut outputs: Vec<_> = error.iter().flat_map(|error| self.event(error)).collect();
        outputs.extend(self.event(&Event::Result(result)));
        outputs
    }

    async fn send_all(&self, outputs: Vec<Output>) -> bool {
        for output in outputs {
            let empty = match &output {
                Output::Stdout(bytes) | Output::Lines(bytes) => bytes.is_empty(),
                Output::Parts(parts) => parts.is_empty(),
                Output::Started { .. } | Output::End(_) => false,
            };
            if !empty && !self.send(output).await {
                return false;
            }
        }
        true
    }

    /// False when nobody wants more.
    async fn send(&self, output: Output) -> bool {
        self.outputs.send(output).await.is_ok()
    }
}
