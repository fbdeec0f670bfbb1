//! Turn: start → parts → (interrupt ⇄ answer)* → finish.
//!
//! A turn always ends with `finish`, whatever happens to Codex. Parts come through a bounded
//! channel: while they are not taken, Codex is not read. Dropping the turn interrupts it.

mod adopt;

mod commands;

mod drive;

mod gap;

mod names;

mod questions;

mod reattach;

mod recorder;

mod response;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::map::app_server_to_part::{Ledger, TurnContext, TurnMapper};
use bindery_core::part::{Part, Warning};
use bindery_core::wire::app_server::input::{ResponseItem, UserInput};
use bindery_core::wire::app_server::params::{TurnSettings, TurnStart};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use self::drive::Drive;
use self::questions::Questions;
use crate::answerer::{self, Answerer};
use crate::app_server::AppServer;
use crate::error::Error;
use crate::interrupts::Interrupts;
use crate::switchboard::Event;

/// Parts that may wait for their reader.
const QUEUE: usize = 32;

/// How long a turn may take; Codex itself sets no limit to any of these.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From asking for the turn to its start.
    pub start: Duration,
    /// Without progress, questions to a person not counted. Codex's own notices that it tries
    /// again are no progress: an unreachable provider is retried for ever.
    pub idle: Duration,
    /// The whole turn.
    pub whole: Option<Duration>,
    /// From interrupting it to its end.
    pub interrupt: Duration,
    /// For another turn to leave the thread. One that is being stopped is waited for in any case,
    /// as long as it may take to stop.
    pub taken: Duration,
    /// From a question to its answer; one that is not answered in time is refused.
    pub answer: Duration,
    /// With it, the stream pauses when an answer is left to its reader: so long after the last
    /// question it gives `finish` with `tool-calls`, and goes on once the answers are there. While
    /// the model may still call more tools in the same response, it waits for the end of that.
    pub settle: Option<Duration>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            idle: Duration::from_secs(30 * 60),
            whole: None,
            interrupt: Duration::from_secs(10),
            taken: Duration::ZERO,
            answer: Duration::from_secs(24 * 60 * 60),
            settle: None,
        }
    }
}

/// What to run.
#[derive(Clone)]
pub struct TurnRequest {
    /// The thread; started, resumed or forked before.
    pub thread_id: ThreadId,
    /// The turn that the caller takes for the thread's newest. If the thread is found to have
    /// another, nothing is done.
    pub after: Option<TurnId>,
    /// Responses items that are put into the thread's history first.
    pub inject: Vec<ResponseItem>,
    /// The user's words.
    pub input: Vec<UserInput>,
    /// Settings of the turn.
    pub settings: TurnSettings,
    /// The model in force, for the stream's metadata.
    pub model: Option<String>,
    /// What could not be carried, told first.
    pub warnings: Vec<Warning>,
    /// Tools that the caller runs itself.
    pub declared_tools: BTreeSet<String>,
    /// Written beside the thread's id into the metadata of `finish`.
    pub marks: Map<String, Value>,
    /// Give Codex's own messages too, as `raw` parts.
    pub raw_chunks: bool,
    /// How long it may take.
    pub deadlines: Deadlines,
    /// Who answers its questions.
    pub answerer: Arc<dyn Answerer>,
    /// Where its questions are recorded, to be answered by token.
    pub interrupts: Interrupts,
    /// Who writes down that it is asked for.
    pub recorder: Option<Arc<dyn StartRecorder>>,
}

impl TurnRequest {
    /// A turn of plain text, with nobody to answer questions.
    pub fn new(thread_id: ThreadId, text: impl Into<String>) -> Self {
        Self {
            thread_id,
            after: None,
            inject: Vec::new(),
            input: vec![UserInput::text(text)],
            settings: TurnSettings::default(),
            model: None,
            warnings: Vec::new(),
            declared_tools: BTreeSet::new(),
            marks: Map::new(),
            raw_chunks: false,
            deadlines: Deadlines::default(),
            answerer: answerer::refuse(),
            interrupts: Interrupts::default(),
            recorder: None,
        }
    }
}

impl std::fmt::Debug for TurnRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnRequest").field("thread_id", &self.thread_id).finish_non_exhaustive()
    }
}

pub use self::adopt::Adoption;
pub use self::recorder::StartRecorder;

/// A running turn.
#[derive(Debug)]
pub struct Turn {
    parts: mpsc::Receiver<Part>,
    control: TurnControl,
}

/// Steers and stops a turn, from anywhere.
#[derive(Clone, Debug)]
pub struct TurnControl {
    server: AppServer,
    thread_id: ThreadId,
    turn_id: TurnId,
    stop: CancellationToken,
}

impl Turn {
    pub(crate) async fn start(
        server: &AppServer,
        request: TurnRequest,
        method: &'static str,
    ) -> Result<Self, Error> {
        let (sender, opened) = oneshot::channel();
        let opener = server.clone();
        // In a task of its own: if the caller leaves meanwhile, Codex starts the turn all the same,
        // and what nobody takes is dropped here, which interrupts it.
        server.track(async move { drop(sender.send(Self::open(&opener, request, method).await)) });
        opened.await.unwrap_or_else(|_| {
            let status = "the runtime has ended".to_owned();
            Err(Error::Closed { status, stderr: String::new() })
        })
    }

    async fn open(server: &AppServer, request: TurnRequest, method: &str) -> Result<Self, Error> {
        let thread_id = request.thread_id.clone();
        let events = listen(server, &thread_id, &request.deadlines).await?;
        // Whatever goes wrong from here on, the thread must be free again.
        let seat = Seat::take(server, &thread_id);
        if request.raw_chunks {
            server.switchboard().want_raw(&thread_id);
        }
        let mut params = TurnStart {
            thread_id: thread_id.clone(),
            input: request.input,
            settings: request.settings,
        };
        let attached = server.attach(&thread_id).await?;
        let board = server.switchboard();
        let newest = board.newest_turn(&thread_id);
        if request.after.is_some_and(|after| newest.is_some_and(|newest| newest != after)) {
            return Err(Error::GoneOn { thread: thread_id.to_string() });
        }
        if !request.inject.is_empty() {
            server.inject_items(&thread_id, request.inject).await?;
        }
        if let Some(recorder) = &request.recorder {
            // What cannot be sent is not recorded as if it had been.
            server.check_open().await?;
            let mark = recorder::mark(&mut params.settings, &**recorder);
            recorder.record(thread_id.clone(), mark).await?;
        }
        let opened = server.open_turn(method, &params, request.deadlines.start).await?;
        let turn_id = opened.turn.id;
        board.turn_begun(&thread_id, &turn_id);
        let mut context = TurnContext::new(thread_id.clone(), turn_id.clone());
        context.model = request.model;
        context.warnings = request.warnings;
        context.declared_tools = request.declared_tools;
        context.marks = request.marks;
        context.ledger = server.switchboard().ledger(&thread_id);
        let (sender, parts) = mpsc::channel(QUEUE);
        let server = server.clone();
        let control = TurnControl { server, thread_id, turn_id, stop: CancellationToken::new() };
        let limit = request.deadlines.answer;
        let questions = Questions::new(request.interrupts, request.answerer, limit);
        let mut drive = Drive::new(
            control.clone(),
            TurnMapper::new(context),
            events,
            sender,
            request.deadlines,
            questions,
        );
        if !attached {
            drive.catch_up();
        }
        control.server.track(drive.run(seat));
        Ok(Self { parts, control })
    }

    /// The next part; none after `finish`.
    pub async fn next(&mut self) -> Option<Part> {
        self.parts.recv().await
    }

    /// A handle to steer and stop the turn from elsewhere.
    pub fn control(&self) -> TurnControl {
        self.control.clone()
    }

    /// The thread.
    pub fn thread_id(&self) -> &ThreadId {
        &self.control.thread_id
    }

    /// The turn.
    pub fn turn_id(&self) -> &TurnId {
        &self.control.turn_id
    }
}

impl futures_util::Stream for Turn {
    type Item = Part;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Part>> {
        self.parts.poll_recv(cx)
    }
}

impl TurnControl {
    /// The thread.
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The turn.
    pub fn turn_id(&self) -> &TurnId {
        &self.turn_id
    }

    /// Asks Codex to stop; the turn ends with `finish`, in time or after its deadline.
    ///
    /// Asking twice is asking once: Codex 0.166 never answers a second interrupt.
    pub fn interrupt(&self) {
        self.stop.cancel();
    }

    /// Adds to the turn while it runs. Read the turn's parts meanwhile, or the reply waits.
    pub async fn steer(&self, input: Vec<UserInput>) -> Result<(), Error> {
        self.server.steer(&self.thread_id, &self.turn_id, input).await.map(drop)
    }
}

/// Listens to a thread as soon as no other turn does.
async fn listen(
    server: &AppServer,
    thread: &ThreadId,
    deadlines: &Deadlines,
) -> Result<mpsc::Receiver<Event>, Error> {
    let board = server.switchboard();
    let now = Instant::now();
    // Who stops a turn waits for its confirmation, and then for what ends it.
    let (taken, stopping) = (now + deadlines.taken, now + 2 * deadlines.interrupt);
    loop {
        let change = board.change();
        if let Some(events) = board.listen(thread) {
            return Ok(events);
        }
        let until = if board.is_stopping(thread) { stopping } else { taken };
        if timeout_at(until, change).await.is_err() {
            return Err(Error::Busy { thread: thread.to_string() });
        }
    }
}

/// The right to run a turn on a thread, given back on every way out.
pub(crate) struct Seat {
    server: AppServer,
    thread_id: ThreadId,
    ledger: Option<Ledger>,
}

impl Seat {
    pub(crate) fn take(server: &AppServer, thread: &ThreadId) -> Self {
        Self { server: server.clone(), thread_id: thread.clone(), ledger: None }
    }

    fn give_back(mut self, ledger: Ledger) {
        self.ledger = Some(ledger);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let board = self.server.switchboard();
        let ledger = self.ledger.take().unwrap_or_else(|| board.ledger(&self.thread_id));
        board.leave(&self.thread_id, ledger);
    }
}
