//! A history as chat messages.
//!
//! The wire wants every answer of a tool right behind the message with its call, one message for
//! the calls made at once, and nothing in between; histories are looser than that. What a profile
//! asks for beyond that is done by [`shape`](super::shape).

use std::collections::{HashMap, VecDeque};

use bindery_core::open::{Open, tag_of};
use serde_json::{Value, json};

use super::super::Placement;
use super::super::chat_profile::{ChatProfile, ReasoningScope};
use super::shape::shape_messages;
use crate::item::{Content, FunctionCall, HistoryItem, Item, Message, Output, Reasoning, Role};

/// All messages, the base prompt first.
pub(super) fn build_messages(
    base: String,
    input: Vec<HistoryItem>,
    placement: Placement,
    profile: &ChatProfile,
) -> Vec<Value> {
    let mut builder = Builder::new(profile);
    if !base.is_empty() {
        let role = match placement {
            Placement::Developer => Role::Developer,
            Placement::Instructions | Placement::System => Role::System,
        };
        builder.say(Message::text(role, base));
    }
    let is_user =
        |item: &HistoryItem| matches!(item, Open::Known(Item::Message(m)) if m.role == Role::User);
    let last_user = input.iter().rposition(is_user).map_or(0, |index| index + 1);
    let (items, outputs) = apart(input);
    builder.outputs = outputs;
    let all_thoughts = profile.reasoning_scope == ReasoningScope::All;
    for (index, item) in items.into_iter().enumerate() {
        builder.add(item, all_thoughts || index >= last_user);
    }
    builder.answer_calls();
    shape_messages(builder.messages, profile)
}

/// An entry, or the place where an output was.
enum Entry {
    Item(HistoryItem),
    Answered,
}

type Outputs = HashMap<String, VecDeque<Output>>;

/// Takes the outputs out of the history; ids may repeat, so they are kept in order.
fn apart(input: Vec<HistoryItem>) -> (Vec<Entry>, Outputs) {
    let mut outputs = Outputs::new();
    let entries = input.into_iter().map(|item| match item {
        Open::Known(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            outputs.entry(output.call_id).or_default().push_back(output.output);
            Entry::Answered
        }
        item => Entry::Item(item),
    });
    (entries.collect(), outputs)
}

struct Builder<'a> {
    profile: &'a ChatProfile,
    messages: Vec<Value>,
    outputs: Outputs,
    /// Calls of the last message that are still to be answered.
    calls: Vec<OpenCall>,
    /// Whether an answer to one of them has been passed: the next call was made later.
    answered: bool,
    /// Thoughts for the next message of the model's.
    thoughts: Option<String>,
}

/// A call that is told and not answered yet.
struct OpenCall {
    id: String,
    name: String,
    /// What the model wrote, where it is no JSON object.
    refused_arguments: Option<String>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a ChatProfile) -> Self {
        Self {
            profile,
            messages: Vec::new(),
            outputs: Outputs::new(),
            calls: Vec::new(),
            answered: false,
            thoughts: None,
        }
    }

    fn add(&mut self, entry: Entry, with_thoughts: bool) {
        match entry {
            Entry::Answered => self.answered = true,
            Entry::Item(Open::Known(Item::Message(message))) => self.say(message),
            Entry::Item(Open::Known(Item::FunctionCall(call))) => self.call(call),
            Entry::Item(Open::Known(Item::Reasoning(thoughts))) if with_thoughts => {
                self.think(&thoughts);
            }
            Entry::Item(Open::Unknown { raw, .. }) => match shell_call(&raw) {
                Some(call) => self.call(call),
                None => {
                    let kind = tag_of(&raw, "type");
                    tracing::debug!(kind, "the Chat wire has no place for this entry");
                }
            },
            Entry::Item(Open::Known(_)) => {}
        }
    }

    fn say(&mut self, message: Message) {
        self.answer_calls();
        if message.role == Role::Assistant {
            return self.say_as_model(&message);
        }
        self.thoughts = None;
        let content = content(&message.content);
        self.messages.push(json!({ "role": role_name(message.role), "content": content }));
    }

    fn say_as_model(&mut self, message: &Message) {
        let text = texts(&message.content);
        let repeats = self.last_of_model().is_some_and(|last| last["content"] == text);
        if text.is_empty() || repeats {
            return;
        }
        self.messages.push(json!({ "role": "assistant", "content": text }));
        self.give_thoughts();
    }

    fn call(&mut self, call: FunctionCall) {
        if self.answered {
            self.answer_calls();
        }
        if self.last_of_model().is_none() {
            self.messages.push(json!({ "role": "assistant", "content": null }));
        }
        let is_object = is_json_object(&call.arguments);
        let arguments = if is_object { call.arguments.as_str() } else { "{}" };
        let mut told = json!({
            "id": call.call_id, "type": "function",
            "function": { "name": call.name, "arguments": arguments },
        });
        if let Some(extra) = call.extra_content {
            told["extra_content"] = extra;
        }
        if let Some(last) = self.last_of_model() {
            match last["tool_calls"].as_array_mut() {
                Some(calls) => calls.push(told),
                None => last["tool_calls"] = json!([told]),
            }
        }
        let refused = (!is_object && !call.arguments.trim().is_empty()).then_some(call.arguments);
        let (id, name) = (call.call_id, call.name);
        self.calls.push(OpenCall { id, name, refused_arguments: refused });
        self.give_thoughts();
    }

    /// Thoughts go to the model's message before them, or to the next one.
    fn think(&mut self, thoughts: &Reasoning) {
        let parts = thoughts.content.as_ref().unwrap_or(&thoughts.summary).iter();
        let text: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        if text.is_empty() {
            return;
        }
        self.thoughts = Some(text.join("\n\n"));
        if self.calls.is_empty() && self.last_of_model().is_some() {
            self.give_thoughts();
        }
    }

    fn give_thoughts(&mut self) {
        let field = self.profile.reasoning_field.as_str();
        let Some(text) = self.thoughts.take().filter(|_| !field.is_empty()) else { return };
        if let Some(last) = self.last_of_model() {
            let text = match last[field].as_str() {
                Some(before) => format!("{before}\n\n{text}"),
                None => text,
            };
            last[field] = json!(text);
        }
    }

    /// The model's message at the end, if that is what the end is.
    fn last_of_model(&mut self) -> Option<&mut Value> {
        self.messages.last_mut().filter(|last| last["role"] == "assistant")
    }

    fn answer_calls(&mut self) {
        self.answered = false;
        let mut pictures = Vec::new();
        for OpenCall { id, name, refused_arguments } in std::mem::take(&mut self.calls) {
            let output = self.outputs.get_mut(&id).and_then(VecDeque::pop_front);
            let text = match output {
                Some(Output::Text(text)) => text,
                Some(Output::Content(parts)) => {
                    pictures.extend(parts.iter().filter_map(picture));
                    texts(&parts)
                }
                None => "aborted".to_owned(),
            };
            let text = match refused_arguments {
                Some(written) => format!("the arguments are no JSON object: {written}\n{text}"),
                None => text,
            };
            self.messages.push(json!({
                "role": "tool", "tool_call_id": id, "name": name, "content": text,
            }));
        }
        // Only a user may show pictures on this wire.
        if !pictures.is_empty() {
            let note = json!({ "type": "text", "text": "Pictures from the tools' answers:" });
            pictures.insert(0, note);
            self.messages.push(json!({ "role": "user", "content": pictures }));
        }
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Servers hand arguments to a template as an object; anything else fails the whole history.
fn is_json_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok()
}

/// Old sessions have calls of a shell that the server offered.
fn shell_call(raw: &Value) -> Option<FunctionCall> {
    (tag_of(raw, "type") == "local_shell_call").then_some(())?;
    Some(FunctionCall {
        id: None,
        name: "local_shell".to_owned(),
        namespace: None,
        arguments: raw["action"].to_string(),
        call_id: raw["call_id"].as_str()?.to_owned(),
        extra_content: None,
    })
}

/// A string, or parts where there is a picture among them.
fn content(parts: &[Open<Content>]) -> Value {
    if !parts.iter().any(|part| picture(part).is_some()) {
        return json!(texts(parts));
    }
    let parts = parts.iter().filter_map(|part| {
        let told = || text(part).map(|text| json!({ "type": "text", "text": text }));
        picture(part).or_else(told)
    });
    Value::Array(parts.collect())
}

fn picture(part: &Open<Content>) -> Option<Value> {
    let Some(Content::InputImage { image_url, detail }) = part.known() else { return None };
    let mut picture = json!({ "url": image_url });
    // `original` is known to the Responses API alone.
    if let Some(detail @ ("low" | "high" | "auto")) = detail.as_deref() {
        picture["detail"] = json!(detail);
    }
    Some(json!({ "type": "image_url", "image_url": picture }))
}

fn texts(parts: &[Open<Content>]) -> String {
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn text(part: &Open<Content>) -> Option<&str> {
    match part {
        Open::Known(Content::InputText { text } | Content::OutputText { text }) => Some(text),
        Open::Known(Content::InputImage { .. }) => None,
        Open::Unknown { raw, .. } => raw["text"].as_str().or_else(|| raw["refusal"].as_str()),
    }
}

#[cfg(test)]
mod tests;
