//! Lines of `codex exec --json`, in the three vocabularies it has had or was said to have.
//!
//! Today's (0.44 and later: `thread.started`, `turn.*`, `item.*`, `error`), the older one of
//! `{"id","msg"}` events (up to 0.42), and a documented one that no version wrote
//! (`session.created`, `message.output_text.*`, `response.completed`). Each line is read once and
//! on its own; what is not looked into stays the JSON it was.

pub mod event;

mod fields;

mod item;

mod msg;

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use self::fields::Record;
pub use self::item::{Collab, Command, Item, ItemBody, McpCall};
pub use self::msg::{CommandEnd, Msg};
use crate::json_text::JsonText;
use crate::ndjson::Tokens;

/// What a line says.
#[derive(Clone, Debug)]
pub enum Line<'a> {
    /// `thread.started`.
    ThreadStarted {
        /// The thread.
        thread_id: JsonText<'a>,
    },
    /// `turn.started`.
    TurnStarted,
    /// `turn.completed`.
    TurnCompleted {
        /// The thread's tokens so far.
        usage: Option<Tokens>,
    },
    /// `turn.failed`.
    TurnFailed {
        /// In words.
        message: JsonText<'a>,
    },
    /// `item.started`, `item.updated`, `item.completed`.
    Item(Phase, Item<'a>),
    /// `error`, of today's vocabulary and of the documented one.
    Error {
        /// In words.
        message: JsonText<'a>,
    },
    /// `session.created`.
    SessionCreated {
        /// The session.
        id: Option<JsonText<'a>>,
        /// The model.
        model: Option<JsonText<'a>>,
    },
    /// `message.output_text.delta`.
    TextDelta(JsonText<'a>),
    /// `message.output_text.done`.
    TextDone(JsonText<'a>),
    /// `response.completed`.
    ResponseCompleted,
    /// The settings with which 0.42 and older begin.
    Config {
        /// The model.
        model: JsonText<'a>,
        /// The working folder.
        workdir: Option<JsonText<'a>>,
    },
    /// The prompt, which 0.42 and older repeat.
    Prompt(JsonText<'a>),
    /// An event of 0.42 and older.
    Msg(Msg<'a>),
    /// Anything else.
    Unknown {
        /// What it calls itself.
        tag: String,
        /// What the decoder stumbled over.
        why: String,
    },
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It began.
    Started,
    /// It is different.
    Updated,
    /// It is done.
    Completed,
}

/// Reads one line. Never fails, never drops.
pub fn decode(line: &str) -> Line<'_> {
    match serde_json::from_str::<Record<'_>>(line) {
        Ok(record) => {
            let read = of_record(&record, line);
            read.unwrap_or_else(|why| Line::Unknown { tag: tag(&record).into_owned(), why })
        }
        Err(err) => Line::Unknown { tag: String::new(), why: err.to_string() },
    }
}

fn of_record<'a>(record: &Record<'a>, line: &'a str) -> Result<Line<'a>, String> {
    let Some(tag) = record.r#type else { return untagged(record, line) };
    let tag = JsonText::of(tag).ok_or("`type` is no text")?;
    let tag = tag.decode();
    Ok(match &*tag {
        "thread.started" => Line::ThreadStarted { thread_id: need(record.thread_id, "thread_id")? },
        "turn.started" => Line::TurnStarted,
        "turn.completed" => Line::TurnCompleted { usage: tokens(record.usage) },
        "turn.failed" => Line::TurnFailed { message: message_in(record.error, line) },
        "item.started" => item(Phase::Started, record, line)?,
        "item.updated" => item(Phase::Updated, record, line)?,
        "item.completed" => item(Phase::Completed, record, line)?,
        "error" => Line::Error { message: words(record.message, line) },
        "session.created" => {
            Line::SessionCreated { id: shown(record.id), model: shown(record.model) }
        }
        "message.output_text.delta" => Line::TextDelta(shown_or_empty(record.delta)),
        "message.output_text.done" => Line::TextDone(shown_or_empty(record.text)),
        "response.completed" => Line::ResponseCompleted,
        _ => return Err("a type of line that is new to us".to_owned()),
    })
}

fn untagged<'a>(record: &Record<'a>, line: &'a str) -> Result<Line<'a>, String> {
    if let Some(msg) = &record.msg {
        return msg::decode(msg, line).map(Line::Msg);
    }
    if let Some(prompt) = text(record.prompt) {
        return Ok(Line::Prompt(prompt));
    }
    match (text(record.model), record.provider) {
        (Some(model), Some(_)) => Ok(Line::Config { model, workdir: text(record.workdir) }),
        _ => Err("the line has no `type`".to_owned()),
    }
}

fn item<'a>(phase: Phase, record: &Record<'a>, line: &'a str) -> Result<Line<'a>, String> {
    let item = record.item.as_ref().ok_or("`item` is missing")?;
    Ok(Line::Item(phase, item::decode(item, line)?))
}

fn tag<'a>(record: &Record<'a>) -> Cow<'a, str> {
    let of = |raw: Option<&'a RawValue>| match text(raw) {
        Some(JsonText::Token(raw)) => serde_json::from_str(raw.get()).unwrap_or_default(),
        _ => String::new(),
    };
    let inner = record.item.as_ref().or(record.msg.as_ref()).map(|fields| of(fields.r#type));
    let parts = [of(record.r#type), inner.unwrap_or_default()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/").into()
}

/// A string that may be absent.
fn text(raw: Option<&RawValue>) -> Option<JsonText<'_>> {
    raw.and_then(JsonText::of)
}

/// A string that must be there.
fn need<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<JsonText<'a>, String> {
    match raw {
        Some(raw) => JsonText::of(raw).ok_or_else(|| format!("`{name}` is no text")),
        None => Err(format!("`{name}` is missing")),
    }
}

/// A list that must be there, and be readable.
fn list<T: DeserializeOwned>(raw: Option<&RawValue>, name: &str) -> Result<Vec<T>, String> {
    let raw = raw.ok_or_else(|| format!("`{name}` is missing"))?;
    serde_json::from_str(raw.get()).map_err(|err| format!("`{name}`: {err}"))
}

/// Numbers we cannot read are no reason to lose the end of a turn.
fn tokens(raw: Option<&RawValue>) -> Option<Tokens> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// JSON `null` is as good as nothing.
fn some(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// The words of an error; where there are none, the JSON of all that was said.
fn words<'a>(raw: Option<&'a RawValue>, whole: &'a str) -> JsonText<'a> {
    text(raw).unwrap_or_else(|| JsonText::from(whole))
}

/// The words of an error that is a text or an object with a `message`; else its JSON, and where
/// there is no error, that of all that was said.
fn message_in<'a>(error: Option<&'a RawValue>, whole: &'a str) -> JsonText<'a> {
    let Some(error) = some(error) else { return JsonText::from(whole) };
    if let Some(text) = JsonText::of(error) {
        return text;
    }
    let fields = serde_json::from_str::<fields::Fields<'_>>(error.get()).unwrap_or_default();
    words(fields.message, error.get())
}

/// A text, or another value as its JSON; `null` is none.
fn shown(raw: Option<&RawValue>) -> Option<JsonText<'_>> {
    some(raw).map(|raw| JsonText::of(raw).unwrap_or_else(|| JsonText::from(raw.get())))
}

/// The same, where there must be a text: none is an empty one.
fn shown_or_empty(raw: Option<&RawValue>) -> JsonText<'_> {
    shown(raw).unwrap_or_else(|| JsonText::from(""))
}

/// A whole number that may be absent.
fn number(raw: Option<&RawValue>) -> Option<i64> {
    raw.and_then(|raw| raw.get().parse().ok())
}

#[cfg(test)]
mod tests;
