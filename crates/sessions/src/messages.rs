//! The transcript as messages: the shape that viewers of Claude-like sessions understand.
//!
//! User messages carry `tool_result` blocks tied to their call, assistant messages `tool_use`
//! blocks under canonical names, system entries what is neither.

use bindery_core::item::{Body, Item, Status, Tool};
use bindery_core::transcript::{Transcript, TurnRecord};
use bindery_core::usage::Unified;
use serde_json::{Map, Value, json};

use crate::clock::rfc3339;
use crate::normalise::canonical_name;

/// What to leave in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Instructions and context that the model was given, as system entries.
    pub setup: bool,
}

/// All messages of a transcript.
pub fn messages(transcript: &Transcript, options: Options) -> Vec<Value> {
    transcript.turns.iter().flat_map(|turn| of_turn(turn, options)).collect()
}

/// The messages of one turn.
pub fn of_turn(turn: &TurnRecord, options: Options) -> Vec<Value> {
    let mut messages = Vec::new();
    if options.setup {
        messages.extend(turn.setup.iter().map(|setup| {
            let uuid = format!("setup-{}", setup.origin.lines.first().copied().unwrap_or_default());
            let text = setup.text.as_str();
            json!({
                "uuid": uuid, "type": "system", "subtype": "setup", "isMeta": true,
                "topic": setup.topic, "content": text,
            })
        }));
    }
    for item in &turn.items {
        of_item(item, &mut messages);
    }
    if let Some(reason) = turn.finish.as_ref().filter(|f| f.unified == Unified::Interrupted) {
        let mut entry = json!({
            "type": "system", "subtype": "turn_aborted",
            "uuid": format!("{}-aborted", turn.id.as_ref().map_or("turn", |id| id.as_str())),
            "content": "turn aborted", "reason": reason.raw,
        });
        stamp(&mut entry, turn.span.completed_at_ms);
        messages.push(entry);
    }
    for error in &turn.errors {
        let content = error.get("message").cloned().unwrap_or_default();
        messages.push(json!({
            "type": "system", "subtype": "error", "content": content, "error": error,
            "uuid": format!("{}-error", turn.id.as_ref().map_or("turn", |id| id.as_str())),
        }));
    }
    if turn.rolled_back {
        messages.iter_mut().for_each(|entry| entry["rolledBack"] = json!(true));
    }
    messages
}

fn of_item(item: &Item, messages: &mut Vec<Value>) {
    match &item.body {
        Body::User { text, attachments } => {
            let mut content = Vec::new();
            if !text.is_empty() || attachments.is_empty() {
                content.push(json!({ "type": "text", "text": text }));
            }
            content.extend(attachments.iter().cloned());
            messages.push(message(item, "user", content));
        }
        Body::Message { text, phase } => {
            let content = vec![json!({ "type": "text", "text": text })];
            let mut entry = message(item, "assistant", content);
            if let Some(phase) = phase {
                entry["phase"] = json!(phase);
            }
            messages.push(entry);
        }
        Body::Reasoning { summary, raw } => {
            let texts = if summary.is_empty() { raw } else { summary };
            if !texts.is_empty() {
                let content = vec![json!({ "type": "thinking", "thinking": texts.join("\n\n") })];
                messages.push(message(item, "assistant", content));
            }
        }
        Body::Tool(tool) => of_tool(item, tool, messages),
        Body::Notice { topic, text, data } => {
            let subtype = if topic == "compaction" { "compact_boundary" } else { topic.as_str() };
            let words = if topic == "compaction" { "Context compacted" } else { text.as_str() };
            let mut entry = system(item, subtype, words);
            entry["data"] = data.clone();
            messages.push(entry);
        }
        Body::Unknown { tag, why, raw } => {
            let mut entry = system(item, "unknown", &format!("{tag}: {why}"));
            entry["tag"] = json!(tag);
            entry["raw"] = raw.clone();
            messages.push(entry);
        }
        Body::File { media_type, data } => {
            let content = vec![json!({ "type": "file", "mediaType": media_type, "data": data })];
            messages.push(message(item, "assistant", content));
        }
        Body::Source { source } => {
            let content = vec![json!({ "type": "source", "source": source })];
            messages.push(message(item, "assistant", content));
        }
    }
}

/// The call as the assistant's, the result as the user's.
fn of_tool(item: &Item, tool: &Tool, messages: &mut Vec<Value>) {
    let name = canonical_name(tool);
    let mut call = message(
        item,
        "assistant",
        vec![json!({
            "type": "tool_use", "id": tool.call_id, "name": name, "input": tool.input,
        })],
    );
    if name != tool.name {
        call["codexToolName"] = json!(tool.name);
    }
    call["status"] = json!(item.status);
    messages.push(call);
    let Some(output) = &tool.output else { return };
    let mut block = json!({
        "type": "tool_result", "tool_use_id": tool.call_id, "content": output_text(tool),
    });
    // An end that we have no word for is no success, and no failure either.
    if item.status != Status::Unknown {
        block["is_error"] = json!(!matches!(item.status, Status::Ok | Status::Pending));
    }
    let mut result = message(item, "user", vec![block]);
    result["uuid"] = json!(format!("{}-result", item.id));
    stamp(&mut result, item.span.completed_at_ms);
    result["toolUseResult"] = json!({
        "status": item.status, "exitCode": tool.exit_code, "durationMs": tool.duration_ms,
        "output": output,
    });
    messages.push(result);
}

/// What a tool printed or answered, as text.
pub fn output_text(tool: &Tool) -> String {
    let Some(output) = &tool.output else { return String::new() };
    let mut text = main_text(output);
    // Pieces of an output that are no text.
    for piece in output.get("content").and_then(Value::as_array).into_iter().flatten() {
        let kind = piece.get("type").and_then(Value::as_str).unwrap_or("piece");
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match kind {
            "input_image" | "encrypted_content" => text.push_str(&format!("[{kind}]")),
            _ => text.push_str(&format!("[{kind}] {piece}")),
        }
    }
    text
}

fn main_text(output: &Value) -> String {
    for key in ["aggregatedOutput", "stdout", "output", "result", "contentItems"] {
        match output.get(key) {
            Some(Value::String(text)) if !text.is_empty() => return text.clone(),
            Some(value @ (Value::Object(_) | Value::Array(_))) => return content_text(value),
            _ => {}
        }
    }
    let stderr = output.get("stderr").and_then(Value::as_str);
    stderr.unwrap_or_default().to_owned()
}

/// The texts of MCP content, else the JSON.
fn content_text(value: &Value) -> String {
    let content = value.get("content").unwrap_or(value).as_array();
    let texts: Vec<&str> =
        content.into_iter().flatten().filter_map(|piece| piece.get("text")?.as_str()).collect();
    if texts.is_empty() { value.to_string() } else { texts.join("\n") }
}

fn message(item: &Item, role: &str, content: Vec<Value>) -> Value {
    let mut entry = json!({
        "uuid": item.id, "type": role,
        "message": { "role": role, "content": content },
    });
    if let Some(mark) = &item.origin.mark {
        entry["mark"] = json!(mark);
    }
    stamp(&mut entry, item.span.started_at_ms);
    source(&mut entry, item);
    entry
}

fn system(item: &Item, subtype: &str, content: &str) -> Value {
    let mut entry = json!({
        "uuid": item.id, "type": "system", "subtype": subtype, "content": content,
    });
    stamp(&mut entry, item.span.started_at_ms);
    source(&mut entry, item);
    entry
}

fn source(entry: &mut Value, item: &Item) {
    if !item.origin.left_out.is_empty() {
        entry["leftOut"] = json!(item.origin.left_out);
    }
    if !item.origin.lines.is_empty() {
        let mut source = Map::new();
        source.insert("lines".to_owned(), json!(item.origin.lines));
        entry["source"] = Value::Object(source);
    }
}

fn stamp(entry: &mut Value, time: Option<i64>) {
    if let Some(time) = time {
        entry["timestamp"] = json!(rfc3339(time));
    }
}
