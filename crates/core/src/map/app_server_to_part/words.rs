//! What an item says, by which it is known where its name is not.
//!
//! Codex lists a thread of the older form by numbers of its own, `item-1`, `item-2`, not by the
//! names under which it told the items while they happened.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ids::{ItemId, PartId};
use crate::open::tag_of;
use crate::part::{Part, Run};
use crate::spec::{Metadata, codex_of};

/// An item that says something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// Its kind: `userMessage`, `agentMessage`, `plan` or `reasoning`.
    pub kind: &'static str,
    /// All that it says.
    pub text: String,
}

impl Words {
    /// The words of an item as Codex has it; none if it is of a kind that keeps its name.
    pub fn of_item(item: &Value) -> Option<Self> {
        let texts = |key: &str| item[key].as_array().into_iter().flatten().map(text_of).collect();
        let (kind, text) = match tag_of(item, "type") {
            "userMessage" => ("userMessage", texts("content")),
            "agentMessage" => ("agentMessage", text_of(item).to_owned()),
            "plan" => ("plan", text_of(item).to_owned()),
            "reasoning" => {
                let summary: String = texts("summary");
                ("reasoning", summary + &texts("content"))
            }
            _ => return None,
        };
        Some(Self { kind, text })
    }

    /// The items that these parts tell to their end, and their words.
    pub fn of_parts(told: &[Part]) -> Vec<(ItemId, Self)> {
        let mut open: BTreeMap<PartId, String> = BTreeMap::new();
        let mut said: Vec<(ItemId, Self)> = Vec::new();
        for part in told {
            match part {
                Part::TextStart(run) | Part::ReasoningStart(run) => {
                    open.insert(run.id.clone(), String::new());
                }
                Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                    open.entry(delta.id.clone()).or_default().push_str(&delta.delta);
                }
                Part::TextEnd { id, provider_metadata, .. } => {
                    let text = open.remove(id).unwrap_or_default();
                    said.extend(message(text, provider_metadata.as_ref()));
                }
                Part::ReasoningEnd(run) => {
                    think(&mut said, open.remove(&run.id).unwrap_or_default(), run);
                }
                Part::Custom { kind, provider_metadata } if kind == "codex.user-message" => {
                    said.extend(asked(provider_metadata.as_ref()));
                }
                _ => {}
            }
        }
        said
    }
}

/// A text, or an object's `text`.
fn text_of(value: &Value) -> &str {
    value.as_str().or_else(|| value["text"].as_str()).unwrap_or_default()
}

fn message(told: String, metadata: Option<&Metadata>) -> Option<(ItemId, Words)> {
    let details = codex_of(metadata)?;
    if details.contains_key("discarded") || details.contains_key("incomplete") {
        return None;
    }
    let item = details.get("itemId")?.as_str()?;
    let is_plan = details.get("phase").is_some_and(|phase| phase == "plan");
    // What stands in the end, where that is not what was told.
    let text = details.get("text").and_then(Value::as_str).map_or(told, str::to_owned);
    let kind = if is_plan { "plan" } else { "agentMessage" };
    Some((ItemId::new(item), Words { kind, text }))
}

/// An item of reasoning is told in several runs.
fn think(said: &mut Vec<(ItemId, Words)>, text: String, run: &Run) {
    let Some((item, words)) = message(text, run.provider_metadata.as_ref()) else { return };
    match said.iter_mut().find(|(known, _)| *known == item) {
        Some((_, earlier)) => earlier.text.push_str(&words.text),
        None => said.push((item, Words { kind: "reasoning", text: words.text })),
    }
}

fn asked(metadata: Option<&Metadata>) -> Option<(ItemId, Words)> {
    let details = codex_of(metadata)?;
    let item = details.get("itemId")?.as_str()?;
    let content = details.get("content").and_then(Value::as_array).into_iter().flatten();
    let words = Words { kind: "userMessage", text: content.map(text_of).collect() };
    Some((ItemId::new(item), words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{TurnContext, TurnMapper};
    use super::*;
    use crate::ids::{ThreadId, TurnId};
    use crate::wire::app_server::notification::Notification;

    fn told(items: &[Value]) -> Vec<Part> {
        let mut mapper = TurnMapper::new(TurnContext::new(ThreadId::new("t"), TurnId::new("u")));
        let note = |item: &Value| {
            let params = json!({ "threadId": "t", "turnId": "u", "item": item });
            let params = serde_json::value::to_raw_value(&params).unwrap();
            Notification::decode("item/completed", &params)
        };
        items.iter().flat_map(|item| mapper.notify(&note(item))).collect()
    }

    #[test]
    fn an_item_and_the_parts_that_tell_it_say_the_same() {
        let input = json!([{ "type": "text", "text": "go" }, { "type": "text", "text": " on" }]);
        let items = [
            json!({ "type": "userMessage", "id": "a", "content": input }),
            json!({ "type": "reasoning", "id": "b", "summary": ["x", "y"], "content": ["z"] }),
            json!({ "type": "agentMessage", "id": "c", "text": "said" }),
            json!({ "type": "plan", "id": "d", "text": "planned" }),
        ];
        let of_items = items
            .iter()
            .map(|item| (ItemId::new(item["id"].as_str().unwrap()), Words::of_item(item).unwrap()));
        assert_eq!(Words::of_parts(&told(&items)), of_items.collect::<Vec<_>>());
    }

    #[test]
    fn what_keeps_its_name_needs_no_words() {
        let command = json!({ "type": "commandExecution", "id": "c1", "command": "ls" });
        assert_eq!(Words::of_item(&command), None);
        assert_eq!(Words::of_item(&json!(null)), None);
    }

    #[test]
    fn a_text_that_was_never_finished_is_not_said() {
        let mut parts = told(&[json!({ "type": "agentMessage", "id": "c", "text": "said" })]);
        parts.retain(|part| !matches!(part, Part::TextEnd { .. }));
        assert_eq!(Words::of_parts(&parts), []);
    }
}
