//! What people are shown of an item: app-server items in, lines of a session out.
//!
//! Numbered files keep each item whole, in Codex's inner spelling (`CommandExecution`,
//! `aggregated_output`); legacy files keep events of the older kinds, and nothing of what those
//! had no word for. [`resume`](crate::resume) reads both back.

mod legacy;

mod spelling;

use serde_json::{Map, Value, json};

use super::meta::Format;
use super::record::Record;
pub(crate) use spelling::camel;
use spelling::{pascal, snake};

/// When and where an item was completed.
#[derive(Clone, Copy, Debug)]
pub struct Completed<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The turn.
    pub turn: &'a str,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it was done.
    pub completed_ms: i64,
}

/// The lines for a completed item of the app-server protocol.
pub fn records(format: Format, at: Completed<'_>, item: &Value) -> Vec<Record> {
    match format {
        Format::Paginated => vec![completed(at, &inner(item))],
        Format::Legacy => legacy::records(at, item),
    }
}

fn completed(at: Completed<'_>, item: &Value) -> Record {
    Record::Event(json!({
        "type": "item_completed",
        "thread_id": at.thread,
        "turn_id": at.turn,
        "item": item,
        "started_at_ms": at.started_ms,
        "completed_at_ms": at.completed_ms,
    }))
}

/// An item in Codex's inner spelling.
fn inner(item: &Value) -> Value {
    let kind = item["type"].as_str().unwrap_or_default();
    let mut fields = Map::from_iter([("type".to_owned(), Value::from(pascal(kind)))]);
    for (key, value) in item.as_object().into_iter().flatten() {
        let is_envelope = matches!(key.as_str(), "type" | "startedAtMs" | "completedAtMs");
        if !is_envelope && !value.is_null() {
            fields.insert(snake(key), value.clone());
        }
    }
    match kind {
        "userMessage" => user(&mut fields),
        "agentMessage" => {
            let text = fields.remove("text").unwrap_or_default();
            fields.insert("content".to_owned(), json!([{ "type": "Text", "text": text }]));
        }
        "reasoning" => {
            renamed(&mut fields, "summary", "summary_text");
            renamed(&mut fields, "content", "raw_content");
        }
        "commandExecution" => command(&mut fields),
        "fileChange" => changes(&mut fields),
        "mcpToolCall" | "dynamicToolCall" => call(&mut fields),
        "webSearch" => respell(&mut fields, "action", true),
        "imageView" => uri(&mut fields, "path"),
        "enteredReviewMode" => entered_review(&mut fields),
        "exitedReviewMode" => exited_review(&mut fields),
        "collabAgentToolCall" => collaboration(&mut fields),
        _ => {}
    }
    Value::Object(fields)
}

fn renamed(fields: &mut Map<String, Value>, from: &str, to: &str) {
    let value = fields.remove(from).unwrap_or_else(|| json!([]));
    fields.insert(to.to_owned(), value);
}

/// Spells keys as Codex does inside, and the value of `type`, too.
fn respell(fields: &mut Map<String, Value>, key: &str, kinds: bool) {
    if let Some(value) = fields.get_mut(key) {
        *value = spelling::snake_keys(value, kinds);
    }
}

fn user(fields: &mut Map<String, Value>) {
    respell(fields, "content", true);
    for part in fields.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(part) = part.as_object_mut() else { continue };
        if part.get("type").is_some_and(|kind| kind == "image")
            && let Some(url) = part.remove("url")
        {
            part.insert("image_url".to_owned(), url);
        }
    }
}

fn command(fields: &mut Map<String, Value>) {
    let text = fields.get("command").and_then(Value::as_str).unwrap_or_default();
    let argv = shlex::split(text).unwrap_or_else(|| vec![text.to_owned()]);
    fields.insert("command".to_owned(), json!(argv));
    uri(fields, "cwd");
    let actions = fields.remove("command_actions").unwrap_or_else(|| json!([]));
    let mut actions = spelling::snake_keys(&actions, true);
    for action in actions.as_array_mut().into_iter().flatten() {
        if let Some(action) = action.as_object_mut()
            && let Some(text) = action.remove("command")
        {
            action.insert("cmd".to_owned(), text);
        }
    }
    fields.insert("parsed_cmd".to_owned(), actions);
    fields.entry("aggregated_output").or_insert_with(|| json!(""));
    word(fields, "source", "agent");
    word(fields, "status", "completed");
    duration(fields);
}

/// The changes of a patch by path, as the file keeps them.
fn changes(fields: &mut Map<String, Value>) {
    let listed = fields.remove("changes").unwrap_or_default();
    let listed = listed.as_array().into_iter().flatten();
    let by_path = listed.map(|change| {
        let path = change["path"].as_str().unwrap_or_default().to_owned();
        let diff = &change["diff"];
        let kind = change["kind"]["type"].as_str().unwrap_or("update");
        let change = match kind {
            "add" | "delete" => json!({ "type": kind, "content": diff }),
            _ => {
                let target = &change["kind"]["move_path"];
                json!({ "type": "update", "unified_diff": diff, "move_path": target })
            }
        };
        (path, change)
    });
    let by_path = Value::Object(by_path.collect());
    fields.insert("changes".to_owned(), by_path);
    word(fields, "status", "completed");
    fields.entry("stdout").or_insert_with(|| json!(""));
    fields.entry("stderr").or_insert_with(|| json!(""));
}

fn call(fields: &mut Map<String, Value>) {
    word(fields, "status", "completed");
    let failed = fields.get("status").is_some_and(|status| status == "failed");
    if let Some(result) = fields.get_mut("result").and_then(Value::as_object_mut)
        && failed
    {
        result.insert("isError".to_owned(), Value::from(true));
    }
    duration(fields);
}

fn entered_review(fields: &mut Map<String, Value>) {
    let text = fields.remove("review").unwrap_or_else(|| json!(""));
    fields.insert("target".to_owned(), json!({ "type": "custom", "instructions": text }));
    fields.insert("user_facing_hint".to_owned(), text);
}

fn exited_review(fields: &mut Map<String, Value>) {
    let text = fields.remove("review").unwrap_or_else(|| json!(""));
    let output = json!({
        "findings": [],
        "overall_correctness": "",
        "overall_explanation": text,
        "overall_confidence_score": 0.0,
    });
    fields.entry("review_output").or_insert(output);
}

fn collaboration(fields: &mut Map<String, Value>) {
    word(fields, "tool", "spawn_agent");
    word(fields, "status", "completed");
    let states = fields.remove("agents_states").unwrap_or_default();
    let states = states.as_object().into_iter().flatten().map(|(id, state)| {
        let status = state["status"].as_str().map(snake);
        let state = match (status.as_deref(), state["message"].as_str()) {
            (Some(status @ ("completed" | "errored")), message) => json!({ status: message }),
            (Some(status), _) => json!(status),
            (None, _) => state.clone(),
        };
        (id.clone(), state)
    });
    let states = Value::Object(states.collect());
    fields.insert("agents_states".to_owned(), states);
}

/// A word of the protocol (`inProgress`) as the file spells it.
fn word(fields: &mut Map<String, Value>, key: &str, usual: &str) {
    let word = fields.get(key).and_then(Value::as_str).map_or_else(|| usual.to_owned(), snake);
    fields.insert(key.to_owned(), Value::from(word));
}

fn duration(fields: &mut Map<String, Value>) {
    if let Some(millis) = fields.remove("duration_ms").and_then(|value| value.as_u64()) {
        fields.insert("duration".to_owned(), span(millis));
    }
}

fn span(millis: u64) -> Value {
    json!({ "secs": millis / 1_000, "nanos": millis % 1_000 * 1_000_000 })
}

fn uri(fields: &mut Map<String, Value>, key: &str) {
    if let Some(path) = fields.get(key).and_then(Value::as_str) {
        let uri = spelling::file_uri(path);
        fields.insert(key.to_owned(), Value::from(uri));
    }
}
