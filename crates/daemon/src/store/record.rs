//! The rows of the store.

use bindery_core::interrupt::{Answer, Interrupt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::clock::Millis;
use crate::tenant::{Contributor, Roles};

/// A named right to speak for a tenant; only its hash is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRow {
    /// Its name in lists.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// What it is for, in words.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: String,
    /// What it may be used for.
    pub roles: Roles,
    /// When it was made.
    pub created: Millis,
    /// When it was revoked.
    pub revoked: Option<Millis>,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRow {
    /// Our name for it.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// The backend's name for it, once it has run.
    pub session: Option<String>,
    /// Which kind of worker runs it: `codex` or `engine`.
    pub backend: String,
    /// For people.
    pub title: Option<String>,
    /// The folder it works in.
    pub cwd: String,
    /// Options for every turn of it, as `providerOptions.codex` has them.
    pub settings: Value,
    /// Tools that its callers run, as a call declares them.
    pub tools: Value,
    /// The session to copy at its first turn, with the last turn to take along.
    pub fork: Option<Value>,
    /// Who has had a part in it, here and in what it was forked from; none if nobody knows.
    pub contributors: Option<Vec<Contributor>>,
    /// The thread's token totals, as the backend counts.
    pub usage: Option<Value>,
    /// When it was made.
    pub created: Millis,
    /// When it last changed.
    pub updated: Millis,
    /// Put away.
    pub archived: bool,
}

/// What a turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnKind {
    /// Answers a prompt.
    Prompt,
    /// Reviews changes.
    Review,
    /// Makes the history shorter.
    Compact,
}

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnState {
    /// It waits for its thread or for room.
    Queued,
    /// It runs, or waits for an answer.
    Running,
    /// It ended well.
    Completed,
    /// It ended with an error.
    Failed,
    /// Somebody stopped it.
    Interrupted,
}

impl TurnState {
    /// Nothing more will come.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// One run of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// Its name.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// Whose it is.
    pub tenant: String,
    /// What it does.
    pub kind: TurnKind,
    /// How it stands.
    pub state: TurnState,
    /// What was asked: a call of the AI SDK, or the target of a review.
    pub request: Value,
    /// The caller's name for it; the same name again gives the same turn.
    pub key: Option<String>,
    /// SHA-256 of what was asked under that name.
    pub digest: Option<String>,
    /// What its first message carries in the backend, once that may have been asked for it; empty
    /// for a turn of a version that marked none.
    pub mark: Option<String>,
    /// The backend's name for it, once it runs.
    pub backend_turn: Option<String>,
    /// Why it failed: `{code, message}`.
    pub error: Option<Value>,
    /// The thread can go on after it although it failed.
    pub resumable: bool,
    /// Tokens it used.
    pub usage: Option<Value>,
    /// Its text and changes, once somebody has gathered them.
    pub result: Option<Value>,
    /// The number of its last event.
    pub last: u64,
    /// When it was asked for.
    pub created: Millis,
    /// When it began to run.
    pub started: Option<Millis>,
    /// When it ended.
    pub ended: Option<Millis>,
}

/// A turn that waits or runs, without what was asked: of many at a time, that may be a lot.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfinishedTurn {
    /// The turn; its request is null here.
    pub turn: TurnRow,
    /// Bytes of its request.
    pub request_bytes: u64,
}

/// Events of a turn that were written together.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The number of the first.
    pub first: u64,
    /// One event a line: a letter for its kind, then JSON.
    pub body: String,
}

/// How an interrupt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum InterruptState {
    /// It waits for an answer.
    Open,
    /// It was answered, and the answer is on its way.
    Answered,
    /// The worker has confirmed the answer.
    Delivered,
    /// Nobody answered in time.
    Expired,
    /// It needs no answer any more.
    Over,
}

/// A question that stops a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptRow {
    /// Its name; knowing it (and the tenant's token) is the right to answer.
    pub token: String,
    /// Whose it is.
    pub tenant: String,
    /// Our name of the thread.
    pub thread: String,
    /// Our name of the turn.
    pub turn: String,
    /// The worker's name for the question.
    pub request: Value,
    /// What is asked.
    pub interrupt: Interrupt,
    /// How it stands.
    pub state: InterruptState,
    /// What was answered.
    pub answer: Option<Answer>,
    /// Which token answered it.
    pub answered_by: Option<String>,
    /// Why it is over.
    pub why: Option<String>,
    /// When it was asked.
    pub opened: Millis,
    /// When it counts as refused.
    pub deadline: Millis,
    /// When it was answered or over.
    pub closed: Option<Millis>,
}

/// A process that serves the protocol on a socket.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRow {
    /// Its name, and that of its folder.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// `codex` or `engine`.
    pub backend: String,
    /// What makes two of them interchangeable, hashed.
    pub key: String,
    /// Its socket.
    pub socket: String,
    /// What it must be shown before it lets anybody in; none for a backend that asks for nothing.
    pub secret: Option<String>,
    /// When it was started.
    pub started: Millis,
}

/// A webhook call that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Its name; the receiver can tell a repeated one by it.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// Where to.
    pub url: String,
    /// What happened: `interrupt.opened` …
    pub event: String,
    /// The body.
    pub body: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    pub due: Millis,
    /// Why it was not taken, the last time it was tried.
    pub why: Option<String>,
    /// When it was given up.
    pub given_up: Option<Millis>,
}

/// What a request under an idempotency key was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRow {
    /// Whose request it was.
    pub tenant: String,
    /// What was asked for: the name of the operation.
    pub operation: String,
    /// The caller's name for the request.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: String,
    /// The answer's JSON.
    pub body: String,
    /// When.
    pub at: Millis,
}

/// How many deliveries there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// To be made.
    pub waiting: u32,
    /// Given up, and not forgotten yet.
    pub given_up: u32,
}
