//! What the engine asks of a model, and what a model says while it answers.
//!
//! [`Model`] is the one seam: both wires and the demo model stand behind it, the loop before it.

mod provider;

pub mod chat_profile;

mod chat_profiles;

mod sse;

mod clients;

mod http;

mod classify;

mod words;

mod retry;

mod dialect;

mod fit;

mod wire;

mod responses;

mod chat;

mod demo;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::item::HistoryItem;
use crate::tokens::TokenCount;

pub use chat_profile::{ChatProfile, ChatProfileFields};
pub use chat_profiles::{ChatProfileRow, ChatProfiles};
pub use clients::Clients;
pub use demo::{LABEL as DEMO_LABEL, NAME as DEMO_MODEL};
pub use provider::{Placement, Provider, Wire};

/// The model these settings lead to. Nothing is read or connected before it is asked; settings that
/// lead nowhere are told then.
pub fn open(provider: &Provider, clients: &Clients) -> Arc<dyn Model> {
    match provider.wire {
        Wire::Responses => Arc::new(responses::Responses::new(provider, clients)),
        Wire::Chat => Arc::new(chat::Chat::new(provider, clients)),
        Wire::Demo => Arc::new(demo::Demo),
    }
}

/// Something that answers.
pub trait Model: Send + Sync {
    /// Asks once, with whatever repeats the provider's settings allow. Events go to `events` as
    /// they come; the future ends with the response. Dropping the future ends the request.
    ///
    /// After [`ModelEvent::Retrying`] everything told since the ask began is void.
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>>;
}

/// One question to a model. Where the base prompt goes and what the tools look like on the wire is
/// the wire's affair, told by the model's entry.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The model's name on the wire.
    pub model: String,
    /// The base prompt.
    pub base: String,
    /// Everything else, oldest first.
    pub input: Vec<HistoryItem>,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may call several at once.
    pub parallel_tool_calls: bool,
    /// `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// `auto`, `concise`, `detailed`; none asks for no summary.
    pub summary: Option<String>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// The JSON Schema the answer must have.
    pub output_schema: Option<Value>,
    /// Keeps the server's cache warm for one thread.
    pub thread_id: String,
    /// `review`, `compact`: told to the server in a header.
    pub purpose: Option<&'static str>,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolSpec {
    /// Takes JSON.
    Function {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// JSON Schema of its arguments.
        parameters: Value,
    },
    /// Takes free text in a grammar. On a wire without free text it is a function with one
    /// argument, `input`.
    Freeform {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// `lark` or `regex`.
        syntax: String,
        /// The grammar.
        definition: String,
    },
    /// A named group; MCP servers have one each. On a wire without groups the functions are flat
    /// and carry the group's name before their own.
    Namespace {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// Its functions.
        tools: Vec<ToolSpec>,
    },
    /// Run by the model's own server; sent as it is.
    Hosted(Value),
}

/// What a model says while it answers.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// An item begins; its text is still empty.
    ItemBegun(HistoryItem),
    /// A piece of the message under way.
    Text(String),
    /// A new part of the summary begins.
    SummaryPart,
    /// A piece of the summary of thoughts.
    Summary(String),
    /// A piece of raw thoughts.
    Thought(String),
    /// A piece of the free text given to a tool.
    ToolInput {
        /// The call.
        call_id: String,
        /// The piece.
        text: String,
    },
    /// An item is whole. Calls are acted on only from here.
    ItemDone(HistoryItem),
    /// Something the user should know.
    Notice(String),
    /// The request is sent again.
    Retrying {
        /// Which repeat, from one.
        attempt: u32,
        /// Of how many.
        most: u32,
        /// What went wrong.
        cause: String,
        /// How long we wait before it.
        delay: Duration,
    },
}

/// The end of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// The server's name for the response.
    pub id: Option<String>,
    /// What it cost, where the server says so.
    pub usage: Option<TokenCount>,
    /// `Some(false)` where the server says that it is not done.
    pub end_turn: Option<bool>,
    /// The model that answered, where the server says so.
    pub model: Option<String>,
    /// The cost has sealed thoughts of earlier turns in it, which servers leave out of it.
    pub counts_old_thoughts: bool,
}

/// Why a model did not answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of fault it is.
    pub kind: Fault,
    /// The server's words, or ours.
    pub message: String,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
}

/// Kinds of fault, by what one does about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The key is missing, wrong or not allowed this.
    Auth,
    /// Paid-for use is spent.
    Quota,
    /// Too many requests, beyond what repeats could mend.
    RateLimit,
    /// The server is overloaded.
    Overload,
    /// The history is longer than the model's window.
    ContextOverflow,
    /// The server does not take the request.
    BadRequest,
    /// The answer was cut by a limit or a filter of the server's.
    Incomplete,
    /// The connection failed or was cut.
    Transport,
    /// Nothing came for too long.
    Idle,
    /// What came was no answer.
    Garbage,
}
