//! Notifications: what the server tells without being asked.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::inventory::{self, Fate};
use super::item::ThreadItem;
use crate::ids::{CallId, ItemId, ThreadId, TurnId};
use crate::item::{FileChange, PlanStep};
use crate::open::Open;

/// One notification, with where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// Thread, turn and item it speaks of.
    pub address: Address,
    /// What it says.
    pub body: Body,
}

/// Where a message belongs; every message of a turn names at least its thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// The thread.
    pub thread_id: Option<ThreadId>,
    /// The turn.
    pub turn_id: Option<TurnId>,
    /// The item.
    pub item_id: Option<ItemId>,
}

/// What a notification says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `thread/started`.
    ThreadStarted(Box<super::reply::Thread>),
    /// `turn/started`.
    TurnStarted(Turn),
    /// `turn/completed`.
    TurnCompleted(Turn),
    /// `item/started`.
    ItemStarted(ItemNote),
    /// `item/completed`.
    ItemCompleted(ItemNote),
    /// `item/agentMessage/delta`.
    MessageDelta(String),
    /// `item/plan/delta`.
    PlanDelta(String),
    /// `item/reasoning/summaryPartAdded`: the summary part with this index begins.
    SummaryPart(u32),
    /// `item/reasoning/summaryTextDelta`.
    SummaryDelta(u32, String),
    /// `item/reasoning/textDelta`.
    ReasoningDelta(u32, String),
    /// `item/commandExecution/outputDelta`.
    CommandOutput(String),
    /// `item/commandExecution/terminalInteraction`: the model typed this into a running command.
    TerminalInput(String),
    /// `item/fileChange/patchUpdated`.
    PatchUpdated(Vec<FileChange>),
    /// `item/mcpToolCall/progress`.
    McpProgress(String),
    /// `turn/plan/updated`.
    PlanUpdated {
        /// Why it changed.
        explanation: Option<String>,
        /// The whole plan.
        plan: Vec<PlanStep>,
    },
    /// `turn/diff/updated`: the whole turn's diff so far.
    DiffUpdated(String),
    /// `thread/tokenUsage/updated`.
    TokenUsage(TokenUsage),
    /// `error`.
    Error(ErrorNote),
    /// `serverRequest/resolved`: the request with this id needs no answer any more.
    RequestResolved(Value),
    /// Something to tell the user that needs no state: a warning, a rerouted model, a hook.
    Notice {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// On the list of what is not shown, with the reason.
    NotShown(&'static str),
    /// An item of the model's wire; told of threads that were started with raw events.
    RawItem(Option<RawCall>),
    /// The model's response is over, whatever waits for an answer; told as raw items are.
    ResponseEnded,
    /// Not on any list, or of a shape we do not know.
    Unknown {
        /// The method.
        method: String,
        /// What the decoder stumbled over.
        why: String,
        /// The parameters.
        params: Value,
    },
}

/// A turn as notifications and replies carry it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Its name.
    pub id: TurnId,
    /// `inProgress`, `completed`, `interrupted`, `failed`.
    pub status: String,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<TurnError>,
    /// Seconds since 1970.
    #[serde(default)]
    pub started_at: Option<i64>,
    /// How long it ran.
    #[serde(default)]
    pub duration_ms: Option<u64>,
}

/// Why a turn failed or is tried again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// In Codex's words.
    pub message: String,
    /// Its kind: a word, or an object with one key.
    #[serde(default)]
    pub codex_error_info: Option<Value>,
    /// More words.
    #[serde(default)]
    pub additional_details: Option<String>,
}

impl TurnError {
    /// The kind as one word, whichever of the two shapes it has.
    pub fn kind(&self) -> &str {
        match &self.codex_error_info {
            Some(Value::String(word)) => word,
            Some(Value::Object(map)) => map.keys().next().map_or("other", String::as_str),
            _ => "other",
        }
    }

    /// The HTTP status the provider answered with, where the kind carries one.
    pub fn http_status(&self) -> Option<u64> {
        let inner = self.codex_error_info.as_ref()?.as_object()?.values().next()?;
        inner.get("httpStatusCode")?.as_u64()
    }
}

/// `error`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorNote {
    /// What went wrong.
    pub error: TurnError,
    /// Codex tries again by itself: not the end.
    #[serde(default)]
    pub will_retry: bool,
}

/// An item with its raw form.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemNote {
    /// Its name.
    pub id: ItemId,
    /// What it is.
    pub item: Open<ThreadItem>,
    /// As it came.
    pub raw: Value,
    /// Tokens of a whole message, where Codex counts them (0.169).
    pub content_tokens: Option<u64>,
}

/// Token counts of a thread.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Since the thread began.
    pub total: Tokens,
    /// Of the last model response.
    #[serde(default)]
    pub last: Tokens,
    /// The model's window.
    #[serde(default)]
    pub model_context_window: Option<u64>,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Input and output.
    pub total_tokens: u64,
    /// Read, cached ones included.
    pub input_tokens: u64,
    /// Of these, from the cache.
    pub cached_input_tokens: u64,
    /// Of these, written to the cache.
    pub cache_write_input_tokens: u64,
    /// Written, reasoning included.
    pub output_tokens: u64,
    /// Of these, reasoning.
    pub reasoning_output_tokens: u64,
}

impl Address {
    /// Reads what can be read of it: a message of a strange shape still belongs somewhere.
    pub(super) fn read(params: &RawValue) -> Self {
        if let Ok(address) = parse(params) {
            return address;
        }
        let params: Value = parse(params).unwrap_or_default();
        let word = |key: &str| params.get(key).and_then(Value::as_str);
        let inner = |key: &str| params.get(key)?.get("id")?.as_str();
        Self {
            thread_id: word("threadId").or(inner("thread")).map(Into::into),
            turn_id: word("turnId").or(inner("turn")).map(Into::into),
            item_id: word("itemId").or(inner("item")).map(Into::into),
        }
    }
}

/// A call of a function, as the model made it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename = "function_call")]
pub struct RawCall {
    /// The function.
    pub name: String,
    /// The family of functions that it is of.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The call.
    pub call_id: CallId,
}

impl Notification {
    /// Reads a notification. Never fails, never drops.
    pub fn decode(method: &str, params: &RawValue) -> Self {
        if let Some(piece) = piece_of(method, params) {
            return piece;
        }
        let address = address_of(method, params);
        let body = body_of(method, params).unwrap_or_else(|why| Body::Unknown {
            method: method.to_owned(),
            why,
            params: parse(params).unwrap_or_default(),
        });
        Self { address, body }
    }
}

/// Pieces of text are most of what comes, so they are read in one pass. Whatever is odd about one
/// is left to the general way, which says what it is.
fn piece_of(method: &str, params: &RawValue) -> Option<Notification> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Piece {
        thread_id: ThreadId,
        turn_id: TurnId,
        item_id: ItemId,
        delta: String,
    }
    let body: fn(String) -> Body = match method {
        "item/agentMessage/delta" => Body::MessageDelta,
        "item/commandExecution/outputDelta" => Body::CommandOutput,
        "item/plan/delta" => Body::PlanDelta,
        _ => return None,
    };
    let piece: Piece = parse(params).ok()?;
    let address = Address {
        thread_id: Some(piece.thread_id),
        turn_id: Some(piece.turn_id),
        item_id: Some(piece.item_id),
    };
    Some(Notification { address, body: body(piece.delta) })
}

/// `turn/*` carries its turn's name inside the turn, items theirs inside the item.
fn address_of(method: &str, params: &RawValue) -> Address {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Probe {
        #[serde(flatten)]
        address: Address,
        turn: Option<Named>,
        item: Option<Named>,
        thread: Option<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    if !matches!(method, "turn/started" | "turn/completed" | "thread/started")
        && !matches!(method, "item/started" | "item/completed")
    {
        return Address::read(params);
    }
    let Ok(probe) = parse::<Probe>(params) else { return Address::read(params) };
    let mut address = probe.address;
    address.turn_id = address.turn_id.or(probe.turn.map(|named| named.id.into()));
    address.item_id = address.item_id.or(probe.item.map(|named| named.id.into()));
    address.thread_id = address.thread_id.or(probe.thread.map(|named| named.id.into()));
    address
}

fn body_of(method: &str, params: &RawValue) -> Result<Body, String> {
    Ok(match method {
        "thread/started" => Body::ThreadStarted(field(params, "thread")?),
        "turn/started" => Body::TurnStarted(field(params, "turn")?),
        "turn/completed" => Body::TurnCompleted(field(params, "turn")?),
        "item/started" => Body::ItemStarted(item_note(field(params, "item")?)?),
        "item/completed" => {
            let content_tokens = field(params, "contentTokenCount").unwrap_or_default();
            Body::ItemCompleted(ItemNote { content_tokens, ..item_note(field(params, "item")?)? })
        }
        "item/agentMessage/delta" => Body::MessageDelta(field(params, "delta")?),
        "item/plan/delta" => Body::PlanDelta(field(params, "delta")?),
        "item/reasoning/summaryPartAdded" => Body::SummaryPart(field(params, "summaryIndex")?),
        "item/reasoning/summaryTextDelta" => {
            Body::SummaryDelta(field(params, "summaryIndex")?, field(params, "delta")?)
        }
        "item/reasoning/textDelta" => {
            Body::ReasoningDelta(field(params, "contentIndex")?, field(params, "delta")?)
        }
        "item/commandExecution/outputDelta" => Body::CommandOutput(field(params, "delta")?),
        "item/commandExecution/terminalInteraction" => Body::TerminalInput(field(params, "stdin")?),
        "item/fileChange/patchUpdated" => Body::PatchUpdated(field(params, "changes")?),
        "item/mcpToolCall/progress" => Body::McpProgress(field(params, "message")?),
        "turn/plan/updated" => plan_updated(params)?,
        "turn/diff/updated" => Body::DiffUpdated(field(params, "diff")?),
        "thread/tokenUsage/updated" => Body::TokenUsage(field(params, "tokenUsage")?),
        "error" => Body::Error(parse(params)?),
        "rawResponseItem/completed" => Body::RawItem(field(params, "item").ok()),
        "rawResponse/completed" => Body::ResponseEnded,
        "serverRequest/resolved" => Body::RequestResolved(field(params, "requestId")?),
        other => return listed(other, params),
    })
}

/// What the inventory says of a method that has no type of its own.
fn listed(method: &str, params: &RawValue) -> Result<Body, String> {
    match inventory::notification(method) {
        Some(Fate::NotShown(why)) => Ok(Body::NotShown(why)),
        Some(Fate::Notice) => {
            Ok(Body::Notice { method: method.to_owned(), params: parse(params)? })
        }
        _ => Err("this version knows no such notification".to_owned()),
    }
}

fn plan_updated(params: &RawValue) -> Result<Body, String> {
    #[derive(Deserialize)]
    struct Plan {
        #[serde(default)]
        explanation: Option<String>,
        plan: Vec<PlanStep>,
    }
    let Plan { explanation, plan } = parse(params)?;
    Ok(Body::PlanUpdated { explanation, plan })
}

fn item_note(raw: Value) -> Result<ItemNote, String> {
    let id = raw.get("id").and_then(Value::as_str).ok_or("the item has no id")?;
    Ok(ItemNote { id: id.into(), item: Open::from_value(raw.clone()), raw, content_tokens: None })
}

fn parse<T: DeserializeOwned>(params: &RawValue) -> Result<T, String> {
    serde_json::from_str(params.get()).map_err(|err| err.to_string())
}

/// One field of an object, without building the others.
fn field<T: DeserializeOwned>(params: &RawValue, key: &str) -> Result<T, String> {
    let fields: std::collections::HashMap<&str, &RawValue> =
        serde_json::from_str(params.get()).map_err(|err| err.to_string())?;
    let value = fields.get(key).ok_or_else(|| format!("missing field `{key}`"))?;
    serde_json::from_str(value.get()).map_err(|err| format!("`{key}`: {err}"))
}
