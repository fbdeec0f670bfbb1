//! System messages → instructions, and how a later change of them is noticed.

use serde_json::{Map, Value, json};

use super::ThreadChoice;
use super::history::Split;
use super::notes::Notes;
use super::own::Own;
use crate::open::Open;
use crate::prompt::{Message, Prompt};
use crate::wire::app_server::input::ResponseItem;

/// Instructions of a thread.
#[derive(Default)]
pub(super) struct Instructions {
    /// Replaces Codex's own prompt.
    pub(super) base: Option<String>,
    /// Follows it.
    pub(super) developer: Option<String>,
}

/// All system messages in order, after what the options say.
pub(super) fn read(prompt: &Prompt, own: &Own) -> Instructions {
    let system = prompt.0.iter().filter_map(|message| match message {
        Open::Known(Message::System { content, .. }) => Some(content.as_str()),
        _ => None,
    });
    let system: Vec<&str> = system.collect();
    let (as_base, as_developer) =
        if own.as_base { (&system[..], &[][..]) } else { (&[][..], &system[..]) };
    Instructions {
        base: joined(own.base_instructions.as_deref(), as_base),
        developer: joined(own.developer_instructions.as_deref(), as_developer),
    }
}

/// Compares with the marks of the thread, and gives the marks of the answer to come.
///
/// Codex fixes the developer instructions at a thread's first turn and the tools at its start, and
/// passes over later changes in silence. New instructions therefore follow as a developer message.
pub(super) fn mark(
    split: &Split<'_>,
    instructions: &Instructions,
    tools: &[Value],
    inject: &mut Vec<ResponseItem>,
    notes: &mut Notes<'_>,
) -> Map<String, Value> {
    let text = instructions.developer.as_deref().unwrap_or_default();
    let now = [("instructions", digest(text)), ("tools", digest(&json!(tools).to_string()))];
    if split.thread == ThreadChoice::Fresh {
        return now.into_iter().map(|(name, mark)| (name.to_owned(), json!(mark))).collect();
    }
    let mut marks = split.marks.clone();
    let changed = |name: &str, mark: &str| split.marks.get(name).is_some_and(|old| old != mark);
    let [(_, instructions_now), (_, tools_now)] = &now;
    if changed("tools", tools_now) {
        notes.unsupported(
            "tools",
            "they differ from those the thread was started with, which Codex keeps; \
             start a new thread for other tools",
        );
    }
    if changed("instructions", instructions_now) && replace(text, inject, notes) {
        marks.insert("instructions".to_owned(), json!(instructions_now));
    }
    marks
}

/// Sends changed instructions after the old ones, where that is possible.
fn replace(text: &str, inject: &mut Vec<ResponseItem>, notes: &mut Notes<'_>) -> bool {
    let possible = notes.context.can_inject && !text.is_empty();
    if possible {
        let content = json!([{ "type": "input_text", "text": text }]);
        inject.push(json!({ "type": "message", "role": "developer", "content": content }));
        notes.compatibility(
            "system",
            "the text has changed since the thread began; it follows as a new developer message, \
             the old one stays in the thread",
        );
    } else {
        notes.unsupported(
            "system",
            "the text has changed since the thread began; Codex keeps the old one",
        );
    }
    possible
}

fn joined(first: Option<&str>, rest: &[&str]) -> Option<String> {
    let texts = first.into_iter().chain(rest.iter().copied());
    let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// FNV-1a: stable over versions and platforms, which std's hasher is not; nothing secret hangs
/// on it.
pub(super) fn digest(text: &str) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step))
}
