//! What is known of a response while it comes.

use std::time::Duration;

use bindery_core::open::{Open, tag_of};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fault::error_value;
use super::voice::{Begun, Voice};
use crate::item::{HistoryItem, Item, Message, Output, Reasoning, Role};
use crate::model::ModelEvent;
use crate::thread::history::{assistant_text, text_of};

/// A response under way. Survives the future that reads it.
#[derive(Default)]
pub(super) struct Asking {
    message: Option<Said>,
    thoughts: Option<Thoughts>,
    search: Option<Begun>,
    /// Whole items that are not in the history yet.
    done: Vec<HistoryItem>,
    /// Calls in the history, in their order, with what they were answered.
    slots: Vec<Slot>,
    /// Bytes the model wrote.
    pub(super) bytes: usize,
    /// Calls it made.
    pub(super) calls: usize,
}

/// A call and its answer.
pub(super) struct Slot {
    pub(super) call: HistoryItem,
    pub(super) output: Option<Output>,
}

struct Said {
    id: String,
    begun: Begun,
}

struct Thoughts {
    id: String,
    begun: Begun,
    /// Parts of the summary so far.
    parts: u32,
}

/// What an event asks of the loop.
pub(super) enum Happened {
    /// Nothing.
    Told,
    /// A call is whole.
    Call(HistoryItem),
    /// The answer was cut after something binding; so long is to be waited.
    Cut(Duration),
}

impl Asking {
    /// Takes one event and tells what is to be told.
    pub(super) fn take(&mut self, event: ModelEvent, voice: &Voice) -> Happened {
        match event {
            ModelEvent::ItemBegun(item) => self.begin(&item, voice),
            ModelEvent::Text(text) => self.text(&text, voice),
            ModelEvent::SummaryPart => self.summary_part(voice),
            ModelEvent::Summary(text) => self.summary(&text, voice),
            ModelEvent::Thought(text) => self.thought(&text, voice),
            ModelEvent::ToolInput { text, .. } => self.bytes += text.len(),
            ModelEvent::ItemDone(item) => return self.item_done(item, voice),
            ModelEvent::Notice(text) => voice.warn(&text),
            ModelEvent::Retrying { attempt, most, cause, delay } => {
                say_retry(voice, attempt, most, &cause);
                let binding = self.is_binding();
                self.abandon(binding);
                return if binding { Happened::Cut(delay) } else { Happened::Told };
            }
        }
        Happened::Told
    }

    /// Whole items to be put into the history.
    pub(super) fn take_done(&mut self) -> Vec<HistoryItem> {
        std::mem::take(&mut self.done)
    }

    pub(super) fn take_slots(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.slots)
    }

    /// Something was said or called that cannot be taken back: the client has it as whole, or a
    /// tool has run. Thoughts alone are void with the answer they belong to.
    pub(super) fn is_binding(&self) -> bool {
        self.has_slots() || self.done.iter().any(|item| assistant_text(item).is_some())
    }

    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// A call is made; the number names its slot.
    pub(super) fn open_slot(&mut self, call: HistoryItem) -> usize {
        self.slots.push(Slot { call, output: None });
        self.slots.len() - 1
    }

    pub(super) fn fill_slot(&mut self, index: usize, output: Output) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.output = Some(output);
        }
    }

    /// Forgets what began and did not end; the client does the same.
    fn abandon(&mut self, keep_done: bool) {
        self.message = None;
        self.thoughts = None;
        self.search = None;
        self.bytes = 0;
        if !keep_done {
            self.done.clear();
        }
    }

    fn begin(&mut self, item: &HistoryItem, voice: &Voice) {
        match item {
            Open::Known(Item::Message(message)) if message.role == Role::Assistant => {
                self.message = Some(begin_message(message.id.clone(), voice));
            }
            Open::Known(Item::Reasoning(reasoning)) => {
                self.thoughts = Some(begin_thoughts(reasoning.id.clone(), voice));
            }
            Open::Unknown { raw, .. } if tag_of(raw, "type") == "web_search_call" => {
                self.search = Some(begin_search(raw, voice));
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, voice: &Voice) {
        self.bytes += text.len();
        let open = self.message.get_or_insert_with(|| begin_message(None, voice));
        voice.delta("item/agentMessage/delta", &open.id, text);
    }

    fn summary_part(&mut self, voice: &Voice) {
        let open = self.thoughts.get_or_insert_with(|| begin_thoughts(None, voice));
        let params = json!({ "itemId": open.id, "summaryIndex": open.parts });
        open.parts += 1;
        voice.tell("item/reasoning/summaryPartAdded", params);
    }

    fn summary(&mut self, text: &str, voice: &Voice) {
        self.bytes += text.len();
        if self.thoughts.as_ref().is_none_or(|open| open.parts == 0) {
            self.summary_part(voice);
        }
        let Some(open) = &self.thoughts else { return };
        let index = open.parts.saturating_sub(1);
        let params = json!({ "itemId": open.id, "delta": text, "summaryIndex": index });
        voice.tell("item/reasoning/summaryTextDelta", params);
    }

    fn thought(&mut self, text: &str, voice: &Voice) {
        self.bytes += text.len();
        let open = self.thoughts.get_or_insert_with(|| begin_thoughts(None, voice));
        let params = json!({ "itemId": open.id, "delta": text, "contentIndex": 0 });
        voice.tell("item/reasoning/textDelta", params);
    }

    fn item_done(&mut self, item: HistoryItem, voice: &Voice) -> Happened {
        match &item {
            Open::Known(Item::Message(message)) if message.role == Role::Assistant => {
                self.message_done(message, voice);
            }
            Open::Known(Item::Reasoning(reasoning)) => self.thoughts_done(reasoning, voice),
            Open::Known(Item::FunctionCall(_) | Item::CustomToolCall(_)) => {
                self.calls += 1;
                return Happened::Call(item);
            }
            Open::Unknown { raw, .. } if tag_of(raw, "type") == "web_search_call" => {
                self.search_done(raw, voice);
            }
            _ => tracing::debug!("the model gave an item that has no shape for listeners"),
        }
        self.done.push(item);
        Happened::Told
    }

    fn message_done(&mut self, message: &Message, voice: &Voice) {
        let open = self.message.take();
        let mut open = open.unwrap_or_else(|| begin_message(message.id.clone(), voice));
        open.begun.item["text"] = json!(text_of(&message.content));
        open.begun.item["phase"] = json!(message.phase);
        voice.complete(open.begun);
    }

    /// Thoughts that are sealed and say nothing are told only if their beginning was.
    fn thoughts_done(&mut self, reasoning: &Reasoning, voice: &Voice) {
        let summary = texts(&reasoning.summary);
        let content = texts(reasoning.content.as_deref().unwrap_or_default());
        let open = match self.thoughts.take() {
            Some(open) => open,
            None if summary.is_empty() && content.is_empty() => return,
            None => begin_thoughts(reasoning.id.clone(), voice),
        };
        let mut begun = open.begun;
        begun.item["summary"] = json!(summary);
        begun.item["content"] = json!(content);
        voice.complete(begun);
    }

    fn search_done(&mut self, raw: &Value, voice: &Voice) {
        let mut begun = self.search.take().unwrap_or_else(|| begin_search(raw, voice));
        let action = raw.get("action").cloned().unwrap_or_else(|| json!({ "type": "other" }));
        begun.item["query"] = action.get("query").cloned().unwrap_or_else(|| json!(""));
        begun.item["action"] = camel_action(action);
        voice.complete(begun);
    }
}

/// The request is sent again: not the end.
pub(crate) fn say_retry(voice: &Voice, attempt: u32, most: u32, cause: &str) {
    let info = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
    let message = format!("Reconnecting... {attempt}/{most}");
    let error = error_value(&message, &info, Some(cause));
    voice.tell("error", json!({ "error": error, "willRetry": true }));
}

fn begin_message(id: Option<String>, voice: &Voice) -> Said {
    let id = id.unwrap_or_else(|| format!("msg_{}", Uuid::now_v7().simple()));
    let begun = voice.begin(json!({
        "type": "agentMessage",
        "id": id,
        "text": "",
        "phase": null,
        "memoryCitation": null,
        "delivery": null,
        "questions": null,
    }));
    Said { id, begun }
}

fn begin_thoughts(id: Option<String>, voice: &Voice) -> Thoughts {
    let id = id.unwrap_or_else(|| format!("rs_{}", Uuid::now_v7().simple()));
    let item = json!({ "type": "reasoning", "id": id, "summary": [], "content": [] });
    Thoughts { begun: voice.begin(item), id, parts: 0 }
}

fn begin_search(raw: &Value, voice: &Voice) -> Begun {
    let id = raw.get("id").and_then(Value::as_str).map(str::to_owned);
    let id = id.unwrap_or_else(|| format!("ws_{}", Uuid::now_v7().simple()));
    voice.begin(json!({
        "type": "webSearch",
        "id": id,
        "query": "",
        "action": { "type": "other" },
        "results": null,
    }))
}

/// The server's words for what a search did are snake case, the protocol's camel case.
fn camel_action(mut action: Value) -> Value {
    let kind = match tag_of(&action, "type") {
        "open_page" => "openPage",
        "find_in_page" => "findInPage",
        _ => return action,
    };
    action["type"] = json!(kind);
    action
}

fn texts(pieces: &[Value]) -> Vec<&str> {
    pieces.iter().filter_map(|piece| piece.get("text")?.as_str()).collect()
}
