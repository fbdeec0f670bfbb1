//! The task that owns a thread: takes commands, drives one turn at a time.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use bindery_core::open::{Open, tag_of};
use bindery_core::wire::app_server::input::UserInput;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::history::History;
use super::view::Record;
use super::{Entry, Mailbox, Makings, Overrides, ThreadError, ThreadSettings, Ticket, TurnInput};
use crate::compact;
use crate::item::{HistoryItem, Item};
use crate::mcp::Servers;
use crate::review::Target;
use crate::tools::Session;
use crate::turn::voice::{Listeners, Voice};
use crate::turn::{self, Core, Job};

type Reply<T> = oneshot::Sender<Result<T, ThreadError>>;

/// What a thread can be asked.
pub(super) enum Command {
    Start { input: TurnInput, reply: Reply<Ticket> },
    Steer { expected: String, input: TurnInput, reply: Reply<String> },
    Interrupt { turn_id: String, reply: Reply<()> },
    Compact { reply: Reply<Ticket> },
    Review { target: Target, reply: Reply<Ticket> },
    Inject { items: Vec<Value>, reply: Reply<()> },
    Change { overrides: Overrides, reply: Reply<()> },
    Close { reply: oneshot::Sender<()> },
}

/// The thread's owner.
pub(super) struct Actor {
    /// Locked by the turn while it runs, by commands only between turns.
    core: Arc<tokio::sync::Mutex<Core>>,
    makings: Makings,
    record: Arc<Mutex<Record>>,
    session: Arc<Session>,
    pub(super) mcp: Option<Arc<Servers>>,
    thread_id: String,
    running: Option<Running>,
    /// Changes that were asked for while a turn ran.
    changes: Vec<Overrides>,
}

struct Running {
    turn_id: String,
    kind: Kind,
    mailbox: Arc<Mailbox>,
    cancel: CancellationToken,
    turn: BoxFuture<'static, ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Regular,
    Compact,
    Review,
}

impl Actor {
    pub(super) fn new(
        settings: ThreadSettings,
        makings: Makings,
        record: Arc<Mutex<Record>>,
    ) -> Self {
        let session = Arc::new(Session::new(settings.environment));
        let (plan, files) = compact::recall(&settings.history);
        session.restore(plan, files);
        // Remembers what the roots lead to. They are all new, so there is nothing to tell yet.
        let _ = session.verify_roots(&settings.standing);
        let thread_id = settings.id.clone();
        let mcp = Servers::new(settings.mcp, settings.standing.cwd.clone());
        let recalled = || makings.prompter.recalled(&settings.standing, &settings.history);
        let told = settings.context.or_else(|| (!settings.history.is_empty()).then(recalled)?);
        let history = History::new(settings.history, settings.usage.last);
        let core = Core {
            thread_id: thread_id.clone(),
            standing: settings.standing,
            history,
            usage: settings.usage,
            told,
            dynamic_tools: settings.dynamic_tools,
            limits: settings.limits,
            makings: makings.clone(),
            session: Arc::clone(&session),
            mcp: mcp.clone(),
        };
        let core = Arc::new(tokio::sync::Mutex::new(core));
        let (running, changes) = (None, Vec::new());
        Self { core, makings, record, session, mcp, thread_id, running, changes }
    }

    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let closed = loop {
            tokio::select! {
                () = drive(&mut self.running) => self.turn_is_over().await,
                command = commands.recv() => match command {
                    Some(Command::Close { reply }) => break Some(reply),
                    Some(command) => self.handle(command).await,
                    None => break None,
                },
            }
        };
        // What still waits in the queue gets no answer, which means "closed" to whoever asked.
        drop(commands);
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
            running.turn.await;
        }
        self.session.end().await;
        if let Some(mcp) = &self.mcp {
            mcp.end().await;
        }
        if let Some(reply) = closed {
            // Whoever closed the thread may have stopped waiting.
            let _ = reply.send(());
        }
    }

    async fn turn_is_over(&mut self) {
        self.running = None;
        for overrides in std::mem::take(&mut self.changes) {
            self.change(overrides).await;
        }
    }

    /// An answer that nobody waits for any more is dropped: the asker is gone.
    async fn handle(&mut self, command: Command) {
        match command {
            Command::Start { input, reply } => match self.filled(input) {
                Ok(input) => self.start(input, reply).await,
                Err(err) => {
                    let _ = reply.send(Err(err));
                }
            },
            Command::Steer { expected, input, reply } => {
                let steered = self.filled(input).and_then(|input| self.steer(&expected, input));
                let _ = reply.send(steered);
            }
            Command::Interrupt { turn_id, reply } => {
                let _ = reply.send(self.interrupt(&turn_id));
            }
            Command::Compact { reply } => {
                let _ = reply.send(self.begin_alone(Job::Compact));
            }
            Command::Review { target, reply } => {
                let _ = reply.send(self.begin_alone(Job::Review(target)));
            }
            Command::Inject { items, reply } => {
                let _ = reply.send(self.inject(items).await);
            }
            Command::Change { overrides, reply } => {
                match &self.running {
                    Some(_) => self.changes.push(overrides),
                    None => self.change(overrides).await,
                }
                let _ = reply.send(Ok(()));
            }
            Command::Close { .. } => {}
        }
    }

    /// The input with the user's own prompts in the place of their names.
    fn filled(&self, mut input: TurnInput) -> Result<TurnInput, ThreadError> {
        for piece in &mut input.input {
            let Open::Known(UserInput::Text { text, .. }) = piece else { continue };
            let words = self.makings.prompter.called(text).map_err(ThreadError::BadInput)?;
            if let Some(words) = words {
                *piece = Open::Known(UserInput::text(words));
            }
        }
        Ok(input)
    }

    async fn start(&mut self, input: TurnInput, reply: Reply<Ticket>) {
        let ticket = match &self.running {
            None => Ok(self.begin(Job::Input(Box::new(input)))),
            Some(running) => {
                let turn_id = running.turn_id.clone();
                match self.give(input.clone()) {
                    // The turn has said its last word; the input begins the next one.
                    Err(ThreadError::NothingToSteer) => {
                        drive(&mut self.running).await;
                        self.turn_is_over().await;
                        Ok(self.begin(Job::Input(Box::new(input))))
                    }
                    given => given.map(|()| Ticket { turn_id, steered: true, _go: None }),
                }
            }
        };
        let _ = reply.send(ticket);
    }

    fn steer(&self, expected: &str, input: TurnInput) -> Result<String, ThreadError> {
        let running = self.running.as_ref().ok_or(ThreadError::NothingToSteer)?;
        if running.turn_id != expected {
            let (expected, found) = (expected.to_owned(), running.turn_id.clone());
            return Err(ThreadError::OtherTurn { expected, found });
        }
        self.give(input)?;
        Ok(running.turn_id.clone())
    }

    fn give(&self, input: TurnInput) -> Result<(), ThreadError> {
        let running = self.running.as_ref().ok_or(ThreadError::NothingToSteer)?;
        match running.kind {
            Kind::Regular => running.mailbox.put(input),
            Kind::Compact => Err(ThreadError::NotSteerable { kind: "compact" }),
            Kind::Review => Err(ThreadError::NotSteerable { kind: "review" }),
        }
    }

    fn interrupt(&self, turn_id: &str) -> Result<(), ThreadError> {
        let running = self.running.as_ref().filter(|running| running.turn_id == turn_id);
        running.ok_or(ThreadError::NothingToInterrupt)?.cancel.cancel();
        Ok(())
    }

    fn begin_alone(&mut self, job: Job) -> Result<Ticket, ThreadError> {
        match &self.running {
            Some(_) => Err(ThreadError::Busy),
            None => Ok(self.begin(job)),
        }
    }

    fn begin(&mut self, job: Job) -> Ticket {
        let turn_id = Uuid::now_v7().to_string();
        let (go, wait) = oneshot::channel::<()>();
        let mailbox = Arc::new(Mailbox::default());
        let cancel = CancellationToken::new();
        let listeners = Listeners {
            outlet: Arc::clone(&self.makings.outlet),
            journal: Arc::clone(&self.makings.journal),
            record: Arc::clone(&self.record),
            clock: self.makings.clock,
        };
        let kind = match job {
            Job::Input(_) => Kind::Regular,
            Job::Compact => Kind::Compact,
            Job::Review(_) => Kind::Review,
        };
        let core = Arc::clone(&self.core);
        let (mail, token) = (Arc::clone(&mailbox), cancel.clone());
        let (thread, turn_name) = (self.thread_id.clone(), turn_id.clone());
        let turn = async move {
            // Dropping the ticket is the sign, so an error here is none.
            let _ = wait.await;
            let voice = Voice::new(thread, turn_name, listeners);
            let mut core = core.lock_owned().await;
            let running = turn::run(&mut core, voice.clone(), job, mail, token);
            if AssertUnwindSafe(running).catch_unwind().await.is_err() {
                turn::panicked(&mut core, &voice);
            }
        };
        let turn = turn.boxed();
        self.running = Some(Running { turn_id: turn_id.clone(), kind, mailbox, cancel, turn });
        Ticket { turn_id, steered: false, _go: Some(go) }
    }

    async fn inject(&mut self, items: Vec<Value>) -> Result<(), ThreadError> {
        if self.running.is_some() {
            return Err(ThreadError::Busy);
        }
        let items = items.into_iter().enumerate().map(|(index, item)| read_item(index, item));
        let items: Vec<HistoryItem> = items.collect::<Result<_, _>>()?;
        let entries: Vec<Entry> = items.iter().cloned().map(Entry::Item).collect();
        self.makings.journal.write(&entries)?;
        let mut core = self.core.lock().await;
        items.into_iter().for_each(|item| core.history.push(item));
        Ok(())
    }

    async fn change(&mut self, overrides: Overrides) {
        let mut core = self.core.lock().await;
        core.standing.change(overrides);
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.standing = core.standing.clone();
    }
}

/// Runs the turn there is; without one it waits for ever, and the commands go on.
async fn drive(running: &mut Option<Running>) {
    match running {
        Some(running) => (&mut running.turn).await,
        None => std::future::pending().await,
    }
}

/// An unknown kind is taken as it is; a known kind of a wrong shape is a mistake of the caller's.
fn read_item(index: usize, raw: Value) -> Result<HistoryItem, ThreadError> {
    const KNOWN: [&str; 6] = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
    ];
    let bad = |why: &str| {
        ThreadError::BadInput(format!("items[{index}] is not a valid response item: {why}"))
    };
    match Open::<Item>::from_value(raw) {
        Open::Unknown { raw, why } if KNOWN.contains(&tag_of(&raw, "type")) => Err(bad(&why)),
        Open::Unknown { raw, .. } if tag_of(&raw, "type").is_empty() => {
            Err(bad(&json!("missing field `type`").to_string()))
        }
        item => Ok(item),
    }
}
