//! System messages → instructions, and how a later change of them is noticed.

use serde_json::{Map, Value, json};

use super::ThreadChoice;
use super::history::Split;
use super::notes::Notes;
use super::own::Own;
use super::tools;
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
    let (instructions_now, tools_now) = (json!(digest(text)), tools::marks(tools));
    if split.thread == ThreadChoice::Fresh {
        let marks = [("instructions", instructions_now), ("tools", Value::Object(tools_now))];
        return marks.into_iter().map(|(name, mark)| (name.to_owned(), mark)).collect();
    }
    let mut marks = split.marks.clone();
    if let Some(Value::Object(before)) = marks.get("tools")
        && let Some(difference) = tools::difference(before, &tools_now)
    {
        let details = format!(
            "{difference}; Codex keeps those the thread was started with: start a new thread for \
             other tools"
        );
        notes.unsupported("tools", &details);
    }
    let changed = marks.get("instructions").is_some_and(|before| *before != instructions_now);
    if changed && replace(text, inject, notes) {
        marks.insert("instructions".to_owned(), instructions_now);
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
