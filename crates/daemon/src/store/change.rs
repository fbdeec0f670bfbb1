//! The changes a store can make.

use bindery_core::interrupt::Answer;
use serde_json::Value;

use super::record::{
    AnswerRow, Chunk, Delivery, InterruptRow, InterruptState, ThreadRow, TokenRow, TurnRow,
    TurnState, WorkerRow,
};
use crate::clock::Millis;
use crate::tenant::{Contributor, Roles, Tenant};

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new tenant; fails if its name is taken.
    AddTenant(Box<Tenant>),
    /// Other settings of a tenant.
    SetTenant(Box<Tenant>),
    /// A new token.
    AddToken(TokenRow),
    /// A token is void from now on.
    RevokeToken {
        /// The token's name.
        id: String,
        /// When.
        at: Millis,
    },
    /// A token has other roles from now on. Nothing if it is void.
    SetTokenRoles {
        /// The token's name.
        id: String,
        /// All that it has.
        roles: Roles,
    },
    /// A new thread.
    AddThread(Box<ThreadRow>),
    /// The backend's name for a thread is known.
    BindThread {
        /// The thread.
        thread: String,
        /// The backend's name.
        session: String,
        /// When.
        at: Millis,
    },
    /// The backend has nothing under the name it gave a thread.
    UnbindThread {
        /// The thread.
        thread: String,
        /// When.
        at: Millis,
    },
    /// Somebody has a part in a thread.
    AddContributor {
        /// The thread.
        thread: String,
        /// Who.
        contributor: Contributor,
    },
    /// Settings of all turns of a thread from now on.
    SetThread {
        /// The thread.
        thread: String,
        /// All of them.
        settings: Value,
    },
    /// A thread's title.
    NameThread {
        /// The thread.
        thread: String,
        /// The title.
        title: String,
        /// When.
        at: Millis,
    },
    /// A thread is put away, or taken out again.
    ArchiveThread {
        /// The thread.
        thread: String,
        /// Away, or out.
        archived: bool,
        /// When.
        at: Millis,
    },
    /// The thread's token totals.
    CountThread {
        /// The thread.
        thread: String,
        /// The totals.
        usage: Value,
        /// When.
        at: Millis,
    },
    /// A new turn; fails if its idempotency key is taken.
    AddTurn(Box<TurnRow>),
    /// A queued turn begins to run. Nothing if it is not queued.
    StartTurn {
        /// The turn.
        turn: String,
        /// When.
        at: Millis,
    },
    /// The backend is about to be asked for a running turn, which carries this mark there.
    MarkTurn {
        /// The turn.
        turn: String,
        /// The mark.
        mark: String,
    },
    /// The backend's name for a running turn is known.
    BindTurn {
        /// The turn.
        turn: String,
        /// The backend's name.
        backend_turn: String,
    },
    /// A turn is over. Nothing if it is so already.
    EndTurn(Box<TurnEnd>),
    /// What came of a turn, in short.
    KeepResult {
        /// The turn.
        turn: String,
        /// Its text and changes.
        result: Value,
    },
    /// A thread goes, with its turns, their events and questions. Nothing if one of its turns is
    /// not over.
    RemoveThread {
        /// The thread.
        thread: String,
    },
    /// A tenant goes, with everything that is kept of it. Nothing if one of its turns is not over,
    /// unless it is forced.
    RemoveTenant {
        /// The tenant.
        tenant: String,
        /// Turns that are not over go, too.
        forced: bool,
    },
    /// What a request under an idempotency key was answered; fails if the key is taken.
    KeepAnswer(Box<AnswerRow>),
    /// Events of a turn.
    Append {
        /// The turn.
        turn: String,
        /// The events.
        chunk: Chunk,
        /// The number of the last.
        last: u64,
    },
    /// A question was asked. Nothing if it is known.
    OpenInterrupt(Box<InterruptRow>),
    /// A question is answered. Nothing if it is not open or too late.
    AnswerInterrupt {
        /// The question.
        token: String,
        /// The answer.
        answer: Box<Answer>,
        /// Whose token it was.
        by: String,
        /// When.
        at: Millis,
    },
    /// The worker has confirmed an answer. Nothing if there is none.
    DeliverInterrupt {
        /// The question.
        token: String,
    },
    /// An open question ends without an answer. Nothing if it is not open.
    CloseInterrupt {
        /// The question.
        token: String,
        /// `Expired` or `Over`.
        state: InterruptState,
        /// Why.
        why: String,
        /// When.
        at: Millis,
    },
    /// All open questions of a turn end without an answer.
    CloseInterrupts {
        /// The turn.
        turn: String,
        /// Why.
        why: String,
        /// When.
        at: Millis,
    },
    /// A worker is about to be started.
    AddWorker(WorkerRow),
    /// A worker is gone.
    RemoveWorker {
        /// The worker.
        id: String,
    },
    /// A webhook is to be called. Of those that wait for the same receiver only the newest
    /// [`DELIVERIES`](super::DELIVERIES) are; the others are given up.
    AddDelivery(Delivery),
    /// It was called, and taken.
    RemoveDelivery {
        /// The delivery.
        id: String,
    },
    /// It was called in vain. Nothing if it was given up.
    RetryDelivery {
        /// The delivery.
        id: String,
        /// When to try again.
        due: Millis,
        /// Why it was not taken.
        why: String,
    },
    /// It is not called any more; it stays, to be seen. Nothing if it was given up before.
    GiveUpDelivery {
        /// The delivery.
        id: String,
        /// Why it was not taken.
        why: String,
        /// When.
        at: Millis,
        /// It was called once more before.
        tried: bool,
    },
    /// Writes the time, to see whether anything can be written.
    Probe {
        /// The time.
        at: Millis,
    },
    /// Forgets the events of turns that ended before this time, deliveries given up before it and
    /// answers kept before it.
    Forget {
        /// The time.
        before: Millis,
    },
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnEnd {
    /// The turn.
    pub turn: String,
    /// How.
    pub state: TurnState,
    /// Why it failed.
    pub error: Option<Value>,
    /// The thread can go on although it failed.
    pub resumable: bool,
    /// Tokens.
    pub usage: Option<Value>,
    /// When.
    pub at: Millis,
}
