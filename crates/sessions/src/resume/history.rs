//! The history that a model is told again: response items as they came, with what compactions
//! replaced and rollbacks took away.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::normalise::injected_topic;

/// Items, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    items: Vec<Value>,
    bytes: usize,
}

/// What a compaction of 0.65 and older keeps of the user's words, in bytes: Codex keeps 20,000
/// tokens of four bytes.
const KEPT: usize = 80_000;

impl History {
    /// Adds an item whose text has this length.
    pub fn push(&mut self, item: Value, bytes: usize) {
        self.bytes += bytes;
        self.items.push(item);
    }

    /// How many bytes of text the items have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The items, with an answer for each call and a call for each answer: models refuse a
    /// history without, and a killed process leaves one.
    pub fn finish(self) -> Vec<Value> {
        let id = |item: &Value| item["call_id"].as_str().map(str::to_owned);
        let ids = |of: fn(&Value) -> bool| -> HashSet<String> {
            self.items.iter().filter(|item| of(item)).filter_map(id).collect()
        };
        let (called, answered) = (ids(|item| answer_of(item).is_some()), ids(is_answer));
        let mut items = Vec::with_capacity(self.items.len());
        for item in self.items {
            let call = id(&item).unwrap_or_default();
            if is_answer(&item) && !called.contains(&call) {
                continue;
            }
            let missing = answer_of(&item).filter(|_| !answered.contains(&call));
            items.push(item);
            if let Some(kind) = missing {
                items.push(json!({ "type": kind, "call_id": call, "output": "aborted" }));
            }
        }
        items
    }

    /// Replaces everything by what a compaction left.
    pub fn compact(&mut self, mut compacted: Value) {
        let items = match compacted["replacement_history"].take() {
            Value::Array(mut items) => {
                // Snapshots for undo, of 0.58 to 0.72, were never told.
                items.retain(|item| item["type"] != "ghost_snapshot");
                items
            }
            _ => self.summarised(compacted["message"].as_str().unwrap_or_default()),
        };
        self.bytes = items.iter().map(|item| item.to_string().len()).sum();
        self.items = items;
    }

    /// What 0.65 and older went on with: the user's words, the newest first to be kept, and a
    /// summary.
    fn summarised(&self, summary: &str) -> Vec<Value> {
        let mut room = KEPT;
        let mut kept = Vec::new();
        for text in self.items.iter().rev().filter(|item| is_kept(item)).map(text_of) {
            if room == 0 {
                break;
            }
            let end = text.floor_char_boundary(room.min(text.len()));
            room -= end;
            kept.push(message(&text[..end]));
        }
        kept.reverse();
        let summary = if summary.is_empty() { "(no summary available)" } else { summary };
        kept.push(message(summary));
        kept
    }

    /// Takes back the last turns of the user.
    pub fn roll_back(&mut self, count: u64) {
        let turns: Vec<usize> =
            (0..self.items.len()).filter(|at| is_user_turn(&self.items[*at])).collect();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some(first) = turns.len().checked_sub(count.max(1)).or(Some(0)) else { return };
        if count == 0 || turns.is_empty() {
            return;
        }
        let mut end = turns[first];
        // What was told in preparation of the turn goes with it; what was told at the beginning
        // of all does not.
        if first > 0 {
            while end > 0 && is_context(&self.items[end - 1]) {
                end -= 1;
            }
        }
        self.items.truncate(end);
    }
}

/// The user's words, and the instructions that 0.50 and older told in their place: today's Codex
/// takes those for the user's.
fn is_kept(item: &Value) -> bool {
    let is_old = || texts(item).any(|text| text.trim_start().starts_with("<user_instructions>"));
    is_user_turn(item) || (item["role"] == "user" && is_old())
}

fn is_answer(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("function_call_output" | "custom_tool_call_output"))
}

/// What answers an item, if it is a call.
fn answer_of(item: &Value) -> Option<&'static str> {
    match item["type"].as_str()? {
        "function_call" | "local_shell_call" => Some("function_call_output"),
        "custom_tool_call" => Some("custom_tool_call_output"),
        _ => None,
    }
}

fn message(text: &str) -> Value {
    json!({
        "type": "message",
        "role": "user",
        "content": [{ "type": "input_text", "text": text }],
    })
}

fn texts(item: &Value) -> impl Iterator<Item = &str> {
    let blocks = item["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str())
}

fn text_of(item: &Value) -> String {
    texts(item).collect::<Vec<_>>().join("\n")
}

/// The user's own words begin a turn; what is told in their place does not.
pub(crate) fn is_user_turn(item: &Value) -> bool {
    if item["type"] != "message" || item["role"] != "user" {
        return false;
    }
    // Since 0.150 the item says so itself.
    let kinds = &item["internal_chat_message_metadata_passthrough"]["content_item_kinds"];
    let mut kinds = kinds.as_array().into_iter().flatten().filter_map(Value::as_str);
    match kinds.find(|kind| *kind != "unknown") {
        Some(kind) => kind.starts_with("user."),
        None => !texts(item).any(|text| injected_topic(text).is_some()),
    }
}

/// Context of a turn, told by the harness.
fn is_context(item: &Value) -> bool {
    let told = item["role"] == "developer" || (item["role"] == "user" && !is_user_turn(item));
    item["type"] == "message" && told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: &str, text: &str) -> Value {
        json!({ "type": "message", "role": role, "content": [{ "type": "t", "text": text }] })
    }

    fn history(items: &[(&str, &str)]) -> History {
        let mut history = History::default();
        for (role, text) in items {
            history.push(said(role, text), text.len());
        }
        history
    }

    fn sketch(history: History) -> Vec<String> {
        history.finish().iter().map(text_of).collect()
    }

    const TALK: &[(&str, &str)] = &[
        ("developer", "rules"),
        ("user", "<environment_context>"),
        ("user", "one"),
        ("assistant", "1"),
        ("user", "<environment_context>new"),
        ("user", "two"),
        ("assistant", "2"),
    ];

    #[test]
    fn turns_are_taken_back_with_what_prepared_them() {
        let cut = |count| {
            let mut history = history(TALK);
            history.roll_back(count);
            sketch(history)
        };
        assert_eq!(cut(0).len(), 7);
        assert_eq!(cut(1), ["rules", "<environment_context>", "one", "1"]);
        assert_eq!(cut(2), ["rules", "<environment_context>"]);
        assert_eq!(cut(9), ["rules", "<environment_context>"]);
        let mut empty = History::default();
        empty.roll_back(3);
        assert!(sketch(empty).is_empty());
    }

    #[test]
    fn calls_and_answers_come_in_pairs() {
        let mut history = History::default();
        for item in [
            json!({ "type": "function_call_output", "call_id": "lost", "output": "" }),
            json!({ "type": "function_call", "call_id": "a" }),
            json!({ "type": "custom_tool_call", "call_id": "b" }),
            json!({ "type": "function_call_output", "call_id": "a", "output": "1" }),
        ] {
            history.push(item, 1);
        }
        let items = history.finish();
        let kinds: Vec<_> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
        let want = [
            "function_call",
            "custom_tool_call",
            "custom_tool_call_output",
            "function_call_output",
        ];
        assert_eq!(kinds, want);
        assert_eq!(items[2]["output"], "aborted");
    }

    #[test]
    fn a_compaction_replaces_what_came_before() {
        let mut new = history(TALK);
        new.compact(json!({ "message": "", "replacement_history": [said("user", "left")] }));
        new.push(said("user", "three"), 5);
        assert_eq!(sketch(new), ["left", "three"]);
        let mut old = history(TALK);
        old.compact(json!({ "message": "sum" }));
        assert_eq!(sketch(old), ["one", "two", "sum"]);
        let long = "ä".repeat(KEPT);
        let mut old = history(&[("user", "gone"), ("user", &long)]);
        old.compact(json!({ "message": "sum" }));
        assert_eq!(sketch(old), [&long[..KEPT], "sum"]);
    }
}
