//! The stream of the Responses API, event by event.

use bindery_core::open::{Open, tag_of};
use bindery_core::surrogates::mended;
use serde::Deserialize;
use serde_json::Value;

use super::super::classify::{self, Again, Failure, Told};
use super::super::dialect::Names;
use super::super::{Answered, Fault, ModelEvent};
use crate::item::HistoryItem;
use crate::tokens::TokenCount;

/// What follows from one event.
#[derive(Debug)]
pub(super) enum Step {
    /// Something to tell, or nothing.
    Tell(Option<ModelEvent>),
    /// The response is whole; these items were never told.
    Done(Answered, Vec<ModelEvent>),
}

/// Reads events; remembers which call a piece of free text belongs to.
pub(super) struct Reader<'a> {
    names: &'a Names,
    calls: Vec<(String, String)>,
    items: usize,
    understood: usize,
    skipped: usize,
}

/// Every field that any event we know has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    delta: Option<String>,
    item: Option<Value>,
    item_id: Option<String>,
    response: Option<Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self { names, calls: Vec::new(), items: 0, understood: 0, skipped: 0 }
    }

    /// Reads one event. What is not JSON is skipped and counted, as Codex skips it: one bad line
    /// must not cost an answer.
    pub(super) fn read(&mut self, data: &str) -> Result<Step, Failure> {
        let event: Event = match serde_json::from_str(&mended(data).0) {
            Ok(event) => event,
            Err(err) => {
                self.skipped += 1;
                tracing::warn!(%err, skipped = self.skipped, "skipped a line of a model's stream");
                return Ok(Step::Tell(None));
            }
        };
        self.understood += 1;
        let delta = || event.delta.clone().unwrap_or_default();
        let tell = match event.kind.as_str() {
            "response.output_item.added" => event.item.and_then(|item| self.begun(item)),
            "response.output_item.done" => event.item.and_then(|item| self.done(item)),
            "response.output_text.delta" => Some(ModelEvent::Text(delta())),
            "response.reasoning_summary_part.added" => Some(ModelEvent::SummaryPart),
            "response.reasoning_summary_text.delta" => Some(ModelEvent::Summary(delta())),
            "response.reasoning_text.delta" => Some(ModelEvent::Thought(delta())),
            "response.custom_tool_call_input.delta" => {
                let call_id = self.call(event.item_id.as_deref().unwrap_or_default());
                call_id.map(|call_id| ModelEvent::ToolInput { call_id, text: delta() })
            }
            "response.completed" | "response.done" => {
                return Ok(self.completed(event.response.unwrap_or_default()));
            }
            "response.incomplete" => return Err(incomplete(&event.response.unwrap_or_default())),
            "response.failed" => {
                let response = event.response.unwrap_or_default();
                return Err(classify::failed(&Told::from_value(&response)));
            }
            "error" => return Err(error(data)),
            _ => None,
        };
        Ok(Step::Tell(tell))
    }

    /// The server closed before the response was whole.
    pub(super) fn ended(&self, strange: usize) -> Failure {
        let skipped = self.skipped + strange;
        tracing::debug!(understood = self.understood, skipped, "a model's stream ended early");
        match (self.understood, skipped) {
            (0, 1..) => Failure::new(
                Fault::Garbage,
                Again::Stream,
                format!("the model's server said nothing we understand in {skipped} lines"),
            ),
            _ => Failure::new(
                Fault::Transport,
                Again::Stream,
                "the model's server closed before its answer was whole",
            ),
        }
    }

    fn begun(&mut self, item: Value) -> Option<ModelEvent> {
        if let (Some(id), Some(call)) = (item["id"].as_str(), item["call_id"].as_str()) {
            self.calls.push((id.to_owned(), call.to_owned()));
        }
        Some(ModelEvent::ItemBegun(self.names.restore(read(item)?)))
    }

    /// Some servers tell the items in the response alone.
    fn completed(&mut self, mut response: Value) -> Step {
        let output = match response["output"].take() {
            Value::Array(items) if self.items == 0 => items,
            _ => Vec::new(),
        };
        let told = output.into_iter().filter_map(|item| self.done(item)).collect();
        Step::Done(answered(&response), told)
    }

    fn done(&mut self, item: Value) -> Option<ModelEvent> {
        self.items += 1;
        Some(ModelEvent::ItemDone(self.names.restore(read(item)?)))
    }

    fn call(&self, item_id: &str) -> Option<String> {
        self.calls.iter().rev().find(|(id, _)| id == item_id).map(|(_, call)| call.clone())
    }
}

/// An item as the history keeps it. One of a kind that we know and in a shape that nobody does is
/// skipped, as Codex skips it: sent back, it would be refused in every turn that follows.
pub(super) fn read(item: Value) -> Option<HistoryItem> {
    match HistoryItem::from_value(item) {
        Open::Unknown { raw, why } if !raw.is_object() || is_known(tag_of(&raw, "type")) => {
            tracing::warn!(why, "skipped an item of a model's that cannot be read");
            None
        }
        item => Some(item),
    }
}

fn is_known(kind: &str) -> bool {
    let known = ["message", "reasoning", "function_call", "custom_tool_call"];
    kind.is_empty() || known.contains(&kind.trim_end_matches("_output"))
}

/// The end of a response, from the response itself.
pub(super) fn answered(response: &Value) -> Answered {
    let text = |key: &str| response[key].as_str().map(str::to_owned);
    Answered {
        id: text("id"),
        usage: response.get("usage").filter(|usage| usage.is_object()).map(usage),
        end_turn: response["end_turn"].as_bool(),
        model: text("model"),
        counts_old_thoughts: false,
    }
}

/// A response whose server stopped before its end.
pub(super) fn incomplete(response: &Value) -> Failure {
    let reason = response["incomplete_details"]["reason"].as_str().unwrap_or("unknown");
    let words = format!("the model's server ended its answer early: {reason}");
    Failure::new(Fault::Incomplete, Again::Never, words)
}

fn error(data: &str) -> Failure {
    let mut value: Value = serde_json::from_str(&mended(data).0).unwrap_or_default();
    // Here `type` names the event and not the error.
    if let Some(fields) = value.as_object_mut() {
        fields.remove("type");
    }
    classify::failed(&Told::from_value(&value))
}

fn usage(usage: &Value) -> TokenCount {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let (input, output) = (number("/input_tokens"), number("/output_tokens"));
    let total = usage["total_tokens"].as_u64().unwrap_or(input + output);
    TokenCount {
        input_tokens: input,
        cached_input_tokens: number("/input_tokens_details/cached_tokens"),
        cache_write_input_tokens: number("/input_tokens_details/cache_write_tokens"),
        output_tokens: output,
        reasoning_output_tokens: number("/output_tokens_details/reasoning_tokens"),
        total_tokens: total,
    }
}
