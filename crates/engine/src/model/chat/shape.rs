//! Brings messages into the shape that a profile asks for.
//!
//! Each rule is one pass over the messages; a profile switches passes on. The order matters: roles
//! are decided before neighbours are merged, and texts are filled in last.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::chat_profile::{
    ChatProfile, DeveloperRole, EmptyContent, SystemPlacement, ToolCallIds,
};
use super::tools_as_text::tell_calls_as_text;

/// Stands where a template wants a user's message and the history has none.
const CONTINUE: &str = "Continue.";

/// Stands between a tool's answer and a user's message.
const INTERRUPTED: &str = "(The turn was interrupted here.)";

/// Stands for a text that may not be empty.
const NO_TEXT: &str = "-";

/// Applies all that the profile asks for.
pub(super) fn shape_messages(messages: Vec<Value>, profile: &ChatProfile) -> Vec<Value> {
    let mut messages = place_roles(messages, profile);
    if profile.tools_as_text {
        messages = tell_calls_as_text(messages);
    }
    if profile.system == SystemPlacement::Unsupported {
        messages = fold_system_into_user(messages);
    }
    if profile.bridge_tool_to_user {
        messages = bridge_tool_to_user(messages);
    }
    if profile.alternate_roles {
        messages = merge_neighbours(messages);
    }
    messages = ensure_user(messages, profile.alternate_roles);
    if profile.split_text_from_calls {
        messages = split_text_from_calls(messages);
    }
    if profile.single_tool_calls {
        messages = split_parallel_calls(messages);
    }
    if profile.tool_call_ids == ToolCallIds::Alnum9 {
        rename_calls(&mut messages);
    }
    messages.iter_mut().for_each(|message| fill_content(message, profile));
    messages
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

fn has_calls(message: &Value) -> bool {
    message["tool_calls"].is_array()
}

/// Decides what system and developer messages are called, and joins those that stand together.
fn place_roles(messages: Vec<Value>, profile: &ChatProfile) -> Vec<Value> {
    let mut placed: Vec<Value> = Vec::with_capacity(messages.len());
    let mut leading = true;
    for mut message in messages {
        let is_system = matches!(role(&message), "system" | "developer");
        leading &= is_system;
        if is_system {
            message["role"] = json!(placed_role(role(&message), leading, profile));
        }
        match placed.last_mut().filter(|last| role(last) == "system") {
            // Many templates take one system message and no more.
            Some(last) if role(&message) == "system" => append_content(last, &message["content"]),
            _ => placed.push(message),
        }
    }
    placed
}

fn placed_role(role: &str, leading: bool, profile: &ChatProfile) -> &'static str {
    match (profile.developer_role, profile.system) {
        (DeveloperRole::Developer, _) if role == "developer" => "developer",
        _ if leading => "system",
        (DeveloperRole::User, _) | (_, SystemPlacement::First | SystemPlacement::Unsupported) => {
            "user"
        }
        (DeveloperRole::System | DeveloperRole::Developer, SystemPlacement::Anywhere) => "system",
    }
}

/// Puts the text of the system message before the first user message.
fn fold_system_into_user(mut messages: Vec<Value>) -> Vec<Value> {
    let Some(first) = messages.first().filter(|first| role(first) == "system") else {
        return messages;
    };
    let text = first["content"].clone();
    messages.remove(0);
    if messages.first().is_none_or(|message| role(message) != "user") {
        messages.insert(0, json!({ "role": "user", "content": text }));
        return messages;
    }
    let mut folded = json!({ "role": "user", "content": text });
    append_content(&mut folded, &messages[0]["content"]);
    messages[0] = folded;
    messages
}

fn bridge_tool_to_user(messages: Vec<Value>) -> Vec<Value> {
    let mut bridged: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        if role(&message) == "user" && bridged.last().is_some_and(|last| role(last) == "tool") {
            bridged.push(json!({ "role": "assistant", "content": INTERRUPTED }));
        }
        bridged.push(message);
    }
    bridged
}

/// Joins messages of one role that stand together. A message with calls takes the text before it.
fn merge_neighbours(messages: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        let joins = |last: &&mut Value| {
            let same = role(last) == role(&message) && role(last) != "tool";
            same && !has_calls(last)
        };
        match merged.last_mut().filter(joins) {
            Some(last) => {
                append_content(last, &message["content"]);
                if let Some(calls) = message.get("tool_calls") {
                    last["tool_calls"] = calls.clone();
                }
            }
            None => merged.push(message),
        }
    }
    merged
}

/// Sees to it that there is a user's message; where roles take turns, first and last.
fn ensure_user(mut messages: Vec<Value>, alternate: bool) -> Vec<Value> {
    let user = || json!({ "role": "user", "content": CONTINUE });
    let leading = |message: &Value| matches!(role(message), "system" | "developer");
    let start = messages.iter().position(|m| !leading(m)).unwrap_or(messages.len());
    let has_user = messages.iter().any(|message| role(message) == "user");
    let starts_with_user = messages.get(start).is_some_and(|message| role(message) == "user");
    if !has_user || (alternate && !starts_with_user) {
        messages.insert(start, user());
    }
    let ends_with_model =
        messages.last().is_some_and(|last| role(last) == "assistant" && !has_calls(last));
    if alternate && ends_with_model {
        messages.push(user());
    }
    messages
}

fn split_text_from_calls(messages: Vec<Value>) -> Vec<Value> {
    let mut split = Vec::with_capacity(messages.len());
    for mut message in messages {
        let says = message["content"].as_str().is_some_and(|text| !text.is_empty());
        if has_calls(&message) && says {
            let text = std::mem::replace(&mut message["content"], Value::Null);
            split.push(json!({ "role": "assistant", "content": text }));
        }
        split.push(message);
    }
    split
}

/// One call after the other, each with its answer behind it.
fn split_parallel_calls(messages: Vec<Value>) -> Vec<Value> {
    let mut split = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().peekable();
    while let Some(mut message) = messages.next() {
        let calls = match message.get_mut("tool_calls") {
            Some(Value::Array(calls)) if calls.len() > 1 => std::mem::take(calls),
            _ => {
                split.push(message);
                continue;
            }
        };
        let mut answers = Vec::new();
        while let Some(answer) = messages.next_if(|next| role(next) == "tool") {
            answers.push(answer);
        }
        let mut answers = answers.into_iter();
        for (index, call) in calls.into_iter().enumerate() {
            if index > 0 {
                message = json!({ "role": "assistant", "content": null });
            }
            message["tool_calls"] = json!([call]);
            split.push(std::mem::take(&mut message));
            split.extend(answers.next());
        }
        split.extend(answers);
    }
    split
}

/// Gives every call an id of nine letters and digits, the same for the same id.
fn rename_calls(messages: &mut [Value]) {
    let mut names = CallNames::default();
    for message in messages {
        for call in
            message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let id = call["id"].as_str().unwrap_or_default();
            call["id"] = json!(names.rename(id));
        }
        if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
            message["tool_call_id"] = json!(names.rename(id));
        }
    }
}

#[derive(Default)]
struct CallNames(HashMap<String, String>);

impl CallNames {
    fn rename(&mut self, id: &str) -> String {
        if let Some(name) = self.0.get(id) {
            return name.clone();
        }
        let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mut name = if fits { id.to_owned() } else { alnum9(id) };
        while self.0.values().any(|taken| *taken == name) {
            name = alnum9(&format!("{name}{id}"));
        }
        self.0.insert(id.to_owned(), name.clone());
        name
    }
}

/// The same nine letters and digits for the same text in every run, which keeps servers' caches.
fn alnum9(text: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = super::super::dialect::hash_name(text.as_bytes());
    let digit = |_| {
        let digit = DIGITS[usize::try_from(rest % 62).unwrap_or_default()];
        rest /= 62;
        char::from(digit)
    };
    (0..9).map(digit).collect()
}

fn fill_content(message: &mut Value, profile: &ChatProfile) {
    if role(message) == "tool" && !profile.tool_message_name {
        message.as_object_mut().map(|fields| fields.remove("name"));
    }
    let is_empty = match &message["content"] {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    };
    if !is_empty {
        return;
    }
    if !has_calls(message) {
        let text = if profile.non_empty_text { NO_TEXT } else { "" };
        // A tool that printed nothing but blanks printed them.
        if profile.non_empty_text || !message["content"].is_string() {
            message["content"] = json!(text);
        }
        return;
    }
    match profile.empty_content {
        EmptyContent::Null => message["content"] = Value::Null,
        EmptyContent::Empty => message["content"] = json!(""),
        EmptyContent::Omit => {
            message.as_object_mut().map(|fields| fields.remove("content"));
        }
    }
}

/// Adds content behind that of a message; parts stay parts.
fn append_content(message: &mut Value, more: &Value) {
    let before = std::mem::take(&mut message["content"]);
    message["content"] = match (before, more) {
        (Value::String(before), Value::String(more)) if before.is_empty() => json!(more),
        (Value::String(before), Value::String(more)) if more.is_empty() => json!(before),
        (Value::String(before), Value::String(more)) => json!(format!("{before}\n\n{more}")),
        (Value::Null, more) => more.clone(),
        (before, Value::Null) => before,
        (before, more) => Value::Array([as_parts(before), as_parts(more.clone())].concat()),
    };
}

fn as_parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        other => vec![other],
    }
}

#[cfg(test)]
mod tests;
