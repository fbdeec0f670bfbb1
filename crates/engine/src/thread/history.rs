//! A thread's history: what the model is sent, and what it is likely to cost.

use std::collections::HashSet;

use bindery_core::open::Open;

use crate::item::{CallOutput, Content, HistoryItem, Item, Message, Output, Role};
use crate::tokens::{TokenCount, estimate};

/// What a call that nobody answered is answered with.
const ABORTED: &str = "aborted";

/// What stands for a picture when the model cannot see any.
const NO_PICTURES: &str = "[a picture was here; this model cannot see pictures]";

/// Items, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    items: Vec<HistoryItem>,
    /// Tokens of the items before `counted`, as the server told them.
    told: u64,
    counted: usize,
    /// Sealed thoughts of earlier turns are among them.
    counts_old_thoughts: bool,
    /// Pictures whose absence from requests the user knows of.
    announced_pictures: usize,
}

impl History {
    pub(crate) fn new(items: Vec<HistoryItem>, last: TokenCount) -> Self {
        let counted = if last.total_tokens > 0 { items.len() } else { 0 };
        Self {
            items,
            told: last.total_tokens,
            counted,
            counts_old_thoughts: false,
            announced_pictures: 0,
        }
    }

    pub(crate) fn items(&self) -> &[HistoryItem] {
        &self.items
    }

    pub(crate) fn push(&mut self, item: HistoryItem) {
        self.items.push(item);
    }

    /// Puts another history in the place of this one.
    pub(crate) fn replace(&mut self, items: Vec<HistoryItem>) {
        self.items = items;
        self.told = 0;
        self.counted = 0;
    }

    /// The server told what everything up to here costs. A server that counts nothing tells
    /// nothing.
    pub(crate) fn count(&mut self, usage: &TokenCount, counts_old_thoughts: bool) {
        if usage.total_tokens > 0 {
            self.told = usage.total_tokens;
            self.counted = self.items.len();
            self.counts_old_thoughts = counts_old_thoughts;
        }
    }

    /// The history is as full as it can be: the server refused it for its length.
    pub(crate) fn count_full(&mut self, window: u64) {
        self.told = window;
        self.counted = self.items.len();
        self.counts_old_thoughts = true;
    }

    /// Tokens it holds, as far as we know.
    pub(crate) fn used(&self) -> u64 {
        let (older, newer) = self.items.split_at(self.counted.min(self.items.len()));
        let newer: u64 = newer.iter().map(estimate).sum();
        let thoughts = if self.counts_old_thoughts { 0 } else { old_thoughts(older) };
        self.told + thoughts + newer
    }

    /// Answers every call that has no answer, and gives the answers that were added.
    pub(crate) fn close_calls(&mut self) -> Vec<HistoryItem> {
        let added = missing_outputs(&self.items);
        self.items.extend(added.iter().cloned());
        added
    }

    /// How many pictures came since this was asked last, for a model that sees none.
    pub(crate) fn take_unannounced_pictures(&mut self) -> usize {
        let all = self.items.iter().map(count_pictures).sum();
        all - std::mem::replace(&mut self.announced_pictures, all).min(all)
    }

    /// As the model is sent it: each call with its answer, no answer without its call, no picture
    /// to a model that sees none.
    pub(crate) fn for_model(&self, images: bool) -> Vec<HistoryItem> {
        let mut items = paired(&self.items);
        if !images {
            items.iter_mut().for_each(without_pictures);
        }
        items
    }
}

fn count_pictures(item: &HistoryItem) -> usize {
    let content = match item.known() {
        Some(Item::Message(message)) => &message.content,
        Some(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            match &output.output {
                Output::Content(content) => content,
                Output::Text(_) => return 0,
            }
        }
        _ => return 0,
    };
    let is_picture =
        |piece: &&Open<Content>| matches!(piece.known(), Some(Content::InputImage { .. }));
    content.iter().filter(is_picture).count()
}

/// Sealed thoughts before the user's last words: they are sent, and no server counts them unless
/// it says so.
fn old_thoughts(items: &[HistoryItem]) -> u64 {
    let last = items.iter().rposition(|item| user_text(item).is_some()).unwrap_or(0);
    items[..last].iter().filter(|item| is_sealed(item)).map(estimate).sum()
}

fn is_sealed(item: &HistoryItem) -> bool {
    matches!(item.known(), Some(Item::Reasoning(thought)) if thought.encrypted_content.is_some())
}

/// Each call with its answer right after its group, and no answer without its call.
pub(crate) fn paired(items: &[HistoryItem]) -> Vec<HistoryItem> {
    let calls: HashSet<&str> = items.iter().filter_map(call_id).collect();
    let answered: HashSet<&str> = items.iter().filter_map(output_id).collect();
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        if output_id(item).is_some_and(|id| !calls.contains(id)) {
            continue;
        }
        out.push(item.clone());
        if call_id(item).is_some_and(|id| !answered.contains(id)) {
            out.extend(aborted(item));
        }
    }
    out
}

fn missing_outputs(items: &[HistoryItem]) -> Vec<HistoryItem> {
    let answered: HashSet<&str> = items.iter().filter_map(output_id).collect();
    let open = items.iter().filter(|item| call_id(item).is_some_and(|id| !answered.contains(id)));
    open.filter_map(aborted).collect()
}

fn aborted(call: &HistoryItem) -> Option<HistoryItem> {
    answer(call, Output::Text(ABORTED.to_owned()))
}

/// The answer to a call, in the shape that its kind of call wants.
pub(crate) fn answer(call: &HistoryItem, output: Output) -> Option<HistoryItem> {
    Some(Open::Known(match call.known()? {
        Item::FunctionCall(call) => {
            Item::FunctionCallOutput(CallOutput { id: None, call_id: call.call_id.clone(), output })
        }
        Item::CustomToolCall(call) => Item::CustomToolCallOutput(CallOutput {
            id: None,
            call_id: call.call_id.clone(),
            output,
        }),
        _ => return None,
    }))
}

/// The call that this item is.
pub(crate) fn call_id(item: &HistoryItem) -> Option<&str> {
    match item.known()? {
        Item::FunctionCall(call) => Some(&call.call_id),
        Item::CustomToolCall(call) => Some(&call.call_id),
        _ => None,
    }
}

/// The call that this item answers.
pub(crate) fn output_id(item: &HistoryItem) -> Option<&str> {
    match item.known()? {
        Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output) => {
            Some(&output.call_id)
        }
        _ => None,
    }
}

fn without_pictures(item: &mut HistoryItem) {
    let content = match item {
        Open::Known(Item::Message(Message { content, .. })) => content,
        Open::Known(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            match &mut output.output {
                Output::Content(content) => content,
                Output::Text(_) => return,
            }
        }
        _ => return,
    };
    for piece in content {
        if let Open::Known(Content::InputImage { .. }) = piece {
            *piece = Content::InputText { text: NO_PICTURES.to_owned() }.into();
        }
    }
}

/// What the user said in a message, where it is one of the user's.
pub(crate) fn user_text(item: &HistoryItem) -> Option<String> {
    match item.known()? {
        Item::Message(Message { role: Role::User, content, .. }) => Some(text_of(content)),
        _ => None,
    }
}

/// What the model said in a message, where it is one of the model's.
pub(crate) fn assistant_text(item: &HistoryItem) -> Option<String> {
    match item.known()? {
        Item::Message(Message { role: Role::Assistant, content, .. }) => Some(text_of(content)),
        _ => None,
    }
}

pub(crate) fn text_of(content: &[Open<Content>]) -> String {
    let texts = content.iter().filter_map(|piece| match piece {
        Open::Known(Content::InputText { text } | Content::OutputText { text }) => {
            Some(text.as_str())
        }
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn items(value: Value) -> Vec<HistoryItem> {
        serde_json::from_value(value).expect("items")
    }

    fn json_of(items: &[HistoryItem]) -> Value {
        serde_json::to_value(items).expect("JSON")
    }

    #[test]
    fn orphans_are_answered_and_stray_answers_left_out() {
        let history = items(json!([
            { "type": "function_call_output", "call_id": "gone", "output": "x" },
            { "type": "function_call", "name": "f", "arguments": "{}", "call_id": "a" },
            { "type": "custom_tool_call", "name": "g", "input": "", "call_id": "b" },
            { "type": "function_call_output", "call_id": "a", "output": "yes" },
        ]));
        let sent = History::new(history, TokenCount::default()).for_model(true);
        let expected = json!([
            { "type": "function_call", "name": "f", "arguments": "{}", "call_id": "a" },
            { "type": "custom_tool_call", "name": "g", "input": "", "call_id": "b" },
            { "type": "custom_tool_call_output", "call_id": "b", "output": "aborted" },
            { "type": "function_call_output", "call_id": "a", "output": "yes" },
        ]);
        assert_eq!(json_of(&sent), expected);
    }

    #[test]
    fn what_came_after_the_last_count_is_estimated() {
        let mut history = History::default();
        history.push(Message::text(Role::User, "x".repeat(400)).into());
        let before = history.used();
        history.count(&TokenCount { total_tokens: 1_000, ..TokenCount::default() }, false);
        assert_eq!(history.used(), 1_000);
        history.push(Message::text(Role::User, "x".repeat(400)).into());
        assert_eq!(history.used(), 1_000 + before);
        history.count(&TokenCount::default(), false);
        assert_eq!(history.used(), 1_000 + before, "a server that counts nothing changes nothing");
    }

    #[test]
    fn sealed_thoughts_of_earlier_turns_are_counted_beside_what_the_server_tells() {
        let sealed = json!({ "type": "reasoning", "summary": [],
            "encrypted_content": "x".repeat(8_000) });
        let user = json!({ "type": "message", "role": "user",
            "content": [{ "type": "input_text", "text": "go" }] });
        let mut history = History::default();
        for item in items(json!([user, sealed, user, sealed])) {
            history.push(item);
        }
        let usage = TokenCount { total_tokens: 1_000, ..TokenCount::default() };
        history.count(&usage, false);
        // The last turn's are in the count; a sealed byte is three quarters of one, less its seal.
        assert_eq!(history.used(), 1_000 + (8_000 * 3 / 4 - 650_u64).div_ceil(4));
        history.count(&usage, true);
        assert_eq!(history.used(), 1_000);
    }
}
