//! Where a thread's doings are written down: the seam between the loop and a session file.

use serde_json::Value;

use crate::item::HistoryItem;
use crate::tokens::TokenCount;

/// Keeps what happened, in the order in which it is told.
///
/// Writing is a plain call, not a future: an interrupt drops the turn at any await, and what the
/// history holds must then be written, once.
pub trait Journal: Send + Sync {
    /// Writes entries, all or none as far as the medium allows. When this returns well they
    /// survive the end of the process.
    fn write(&self, entries: &[Entry]) -> Result<(), JournalError>;
}

/// One thing to write down. Items and turns are in the app-server protocol's shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An entry of the history, as the model is sent it.
    Item(HistoryItem),
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn_id: String,
        /// Seconds since 1970.
        started_at: i64,
        /// Tokens the model can hold, as far as we use them.
        window: u64,
    },
    /// What is in force for a turn.
    TurnContext(TurnContext),
    /// A snapshot of the context that the model was told; a later turn tells only what changed.
    WorldState(Value),
    /// A thread item is whole.
    ItemCompleted {
        /// The turn.
        turn_id: String,
        /// The item, as `item/completed` carries it.
        item: Value,
        /// Milliseconds since 1970.
        at_ms: i64,
    },
    /// What a response cost.
    TokenCount {
        /// The turn.
        turn_id: String,
        /// Of the thread.
        total: TokenCount,
        /// Of the response.
        last: TokenCount,
        /// As in [`Entry::TurnStarted`].
        window: u64,
    },
    /// The history was replaced.
    Compacted {
        /// The summary.
        message: String,
        /// The history from now on.
        history: Vec<HistoryItem>,
    },
    /// A turn ended well or badly.
    TurnCompleted {
        /// The turn.
        turn_id: String,
        /// The model's last words in it.
        last_message: Option<String>,
        /// Why it failed, as `turn/completed` carries it.
        error: Option<Value>,
        /// Seconds since 1970.
        completed_at: i64,
        /// How long it took.
        duration_ms: i64,
    },
    /// A turn was interrupted.
    TurnAborted {
        /// The turn.
        turn_id: String,
        /// `interrupted`.
        reason: &'static str,
        /// Seconds since 1970.
        completed_at: i64,
        /// How long it took.
        duration_ms: i64,
    },
}

/// What is in force for a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnContext {
    /// The turn.
    pub turn_id: String,
    /// The folder.
    pub cwd: String,
    /// The approval policy, in the protocol's shape.
    pub approval_policy: Value,
    /// The sandbox policy, in the protocol's shape.
    pub sandbox_policy: Value,
    /// The model.
    pub model: String,
    /// The reasoning effort.
    pub effort: Option<String>,
    /// `auto`, `concise` …
    pub summary: Option<String>,
}

/// The journal could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot write the session down: {why}")]
pub struct JournalError {
    /// The system's words.
    pub why: String,
}

/// A journal for threads of which nothing is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn write(&self, _: &[Entry]) -> Result<(), JournalError> {
        Ok(())
    }
}
