//! A thread: a conversation with its history, one turn at a time.
//!
//! [`Thread`] is a handle; a task of its own (`actor`) owns the history and drives the turns.

mod actor;

mod error;

pub(crate) mod history;

pub mod journal;

mod mailbox;

mod permit;

mod settings;

pub(crate) mod view;

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

pub use self::error::ThreadError;
pub use self::journal::{Entry, Journal, JournalError, NoJournal};
pub(crate) use self::mailbox::Mailbox;
pub use self::permit::{Approval, ApprovalsReviewer, Granular, Sandbox};
pub use self::settings::{
    Clock, DynamicTool, Limits, Makings, Overrides, Standing, ThreadSettings, TurnInput,
    system_clock,
};
use self::view::Record;
pub use self::view::{ThreadView, fresh_turn};

use self::actor::{Actor, Command};
use crate::mcp::Servers;
use crate::review::Target;

/// Commands that may wait for the thread's task.
const QUEUE: usize = 32;

/// A handle of a thread. Cheap to clone; the thread lives until [`Thread::close`] or until the
/// last handle is gone.
#[derive(Clone)]
pub struct Thread {
    id: Arc<str>,
    commands: mpsc::Sender<Command>,
    record: Arc<Mutex<Record>>,
    mcp: Option<Arc<Servers>>,
}

/// A turn that was asked for.
///
/// The turn begins when this is dropped, so that whoever asked can answer its client before the
/// turn's first word.
#[derive(Debug)]
pub struct Ticket {
    /// The turn.
    pub turn_id: String,
    /// The turn ran already and took the input in.
    pub steered: bool,
    _go: Option<oneshot::Sender<()>>,
}

impl Thread {
    /// Opens a thread. Its task runs on `tasks`, on the current runtime.
    pub fn open(settings: ThreadSettings, makings: Makings, tasks: &TaskTracker) -> Self {
        let id: Arc<str> = settings.id.as_str().into();
        let record = Record::new(
            settings.id.clone(),
            settings.standing.clone(),
            settings.turns.clone(),
            settings.usage,
        );
        let record = Arc::new(Mutex::new(record));
        let (commands, rx) = mpsc::channel(QUEUE);
        let actor = Actor::new(settings, makings, Arc::clone(&record));
        let mcp = actor.mcp.clone();
        tasks.spawn(actor.run(rx));
        Self { id, commands, record, mcp }
    }

    /// The thread's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its MCP servers.
    pub(crate) fn servers(&self) -> Option<&Arc<Servers>> {
        self.mcp.as_ref()
    }

    /// Begins a turn, or gives the input to the one that runs, and gives the turn's name.
    pub async fn start_turn(&self, input: TurnInput) -> Result<String, ThreadError> {
        Ok(self.prepare_turn(input).await?.turn_id)
    }

    /// As [`Thread::start_turn`], but the turn waits for the ticket to be dropped.
    pub async fn prepare_turn(&self, input: TurnInput) -> Result<Ticket, ThreadError> {
        input.check()?;
        self.ask(|reply| Command::Start { input, reply }).await
    }

    /// Gives input to the running turn; it is taken before the next question to the model.
    pub async fn steer(
        &self,
        expected_turn_id: &str,
        input: TurnInput,
    ) -> Result<String, ThreadError> {
        input.check()?;
        let expected = expected_turn_id.to_owned();
        self.ask(|reply| Command::Steer { expected, input, reply }).await
    }

    /// Ends the running turn as soon as it can; `turn/completed` follows.
    pub async fn interrupt(&self, turn_id: &str) -> Result<(), ThreadError> {
        let turn_id = turn_id.to_owned();
        self.ask(|reply| Command::Interrupt { turn_id, reply }).await
    }

    /// Begins a turn that replaces the history by a summary.
    pub async fn compact(&self) -> Result<Ticket, ThreadError> {
        self.ask(|reply| Command::Compact { reply }).await
    }

    /// Begins a turn that reviews changes.
    pub async fn review(&self, target: Target) -> Result<Ticket, ThreadError> {
        target.check().map_err(ThreadError::BadInput)?;
        self.ask(|reply| Command::Review { target, reply }).await
    }

    /// Adds items to the history without a turn.
    pub async fn inject(&self, items: Vec<Value>) -> Result<(), ThreadError> {
        self.ask(|reply| Command::Inject { items, reply }).await
    }

    /// Changes what is in force from the next turn on.
    pub async fn change(&self, overrides: Overrides) -> Result<(), ThreadError> {
        self.ask(|reply| Command::Change { overrides, reply }).await
    }

    /// What can be seen of it now.
    pub async fn snapshot(&self) -> ThreadView {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).view()
    }

    /// Interrupts what runs, ends its processes and waits until all is over.
    pub async fn close(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Close { reply }).await.is_ok() {
            // A dropped sender means the same: the task is gone.
            let _ = done.await;
        }
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, ThreadError>>) -> Command,
    ) -> Result<T, ThreadError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| ThreadError::Closed)?;
        answer.await.map_err(|_| ThreadError::Closed)?
    }
}
