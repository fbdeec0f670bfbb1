//! The caller's own words, come back.
//!
//! They say which thread an answer belongs to, as its first text or call does; a caller who has
//! that and the words does not want them in every answer of the history. An answer that says and
//! does nothing has nothing else to be gone on with by.

use super::Part;
use crate::spec::{Metadata, codex_of};

/// The kind of part that brings them.
pub(super) const ECHO: &str = "codex.user-message";

/// Leaves the echo out of an answer that has something else to be gone on with by.
#[derive(Debug, Default)]
pub struct EchoFilter {
    held: Option<Part>,
}

impl EchoFilter {
    /// Takes a part, and gives what is to be told of it, in order.
    pub fn push(&mut self, part: Part) -> impl Iterator<Item = Part> + use<> {
        let told = match part {
            part if is_echo(&part) => {
                self.held = Some(part);
                [None, None]
            }
            Part::Finish { .. } => [self.held.take(), Some(part)],
            part => {
                self.held.take_if(|_| names_thread(&part));
                [None, Some(part)]
            }
        };
        told.into_iter().flatten()
    }
}

/// Words that somebody adds while the turn runs are news.
fn is_echo(part: &Part) -> bool {
    let Part::Custom { kind, provider_metadata } = part else { return false };
    let steers =
        codex_of(provider_metadata.as_ref()).is_some_and(|own| own.contains_key("steering"));
    kind == ECHO && !steers
}

/// Whether the history will say by this part which thread it is.
fn names_thread(part: &Part) -> bool {
    let named = |metadata: &Option<Metadata>| {
        codex_of(metadata.as_ref()).is_some_and(|own| own.contains_key("threadId"))
    };
    match part {
        Part::TextStart(run) | Part::ReasoningStart(run) => named(&run.provider_metadata),
        Part::ToolCall(call) => named(&call.provider_metadata),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn part(mut value: Value) -> Part {
        if value["type"] == "finish" {
            value["usage"] = json!({ "inputTokens": {}, "outputTokens": {} });
            value["finishReason"] = json!({ "unified": "stop", "raw": "completed" });
        }
        serde_json::from_value(value).unwrap()
    }

    fn told(parts: Vec<Value>) -> Vec<Value> {
        let mut filter = EchoFilter::default();
        let told = parts.into_iter().flat_map(|value| filter.push(part(value)));
        told.map(|part| serde_json::to_value(part).unwrap()["type"].clone()).collect()
    }

    fn echo(more: Value) -> Value {
        json!({ "type": "custom", "kind": ECHO, "providerMetadata": { "codex": more } })
    }

    fn named(mut value: Value) -> Value {
        value["providerMetadata"] = json!({ "codex": { "threadId": "t" } });
        value
    }

    #[test]
    fn an_answer_that_says_or_does_something_goes_without() {
        let start = json!({ "type": "stream-start", "warnings": [] });
        let finish = json!({ "type": "finish" });
        let call =
            json!({ "type": "tool-call", "toolCallId": "c", "toolName": "x", "input": "{}" });
        for first in ["text-start", "reasoning-start", "tool-call"] {
            let mut value = if first == "tool-call" { call.clone() } else { json!({ "id": "1" }) };
            value["type"] = json!(first);
            let parts = vec![start.clone(), echo(json!({})), named(value), finish.clone()];
            assert_eq!(told(parts), ["stream-start", first, "finish"]);
        }
    }

    #[test]
    fn an_answer_without_words_can_be_gone_on_with() {
        let notice = json!({ "type": "custom", "kind": "codex.notice" });
        let nameless = json!({ "type": "text-start", "id": "1" });
        let finish = json!({ "type": "finish" });
        let parts = vec![echo(json!({})), notice, nameless, finish];
        assert_eq!(told(parts), ["custom", "text-start", "custom", "finish"]);
    }

    #[test]
    fn words_that_somebody_adds_are_told() {
        let text = named(json!({ "type": "text-start", "id": "1" }));
        let parts = vec![echo(json!({})), text, echo(json!({ "steering": true }))];
        assert_eq!(told(parts), ["text-start", "custom"]);
    }
}
