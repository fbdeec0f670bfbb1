//! What legacy files keep for people: the events that Codex kept before 0.150.

use serde_json::{Value, json};

use super::super::record::Record;
use super::{Completed, completed, inner};

/// The events of an item; none for what legacy files have no word for.
pub(super) fn records(at: Completed<'_>, item: &Value) -> Vec<Record> {
    let kind = item["type"].as_str().unwrap_or_default();
    let event = match kind {
        "userMessage" => user(item),
        "agentMessage" => json!({
            "type": "agent_message",
            "message": item["text"],
            "phase": item["phase"],
            "memory_citation": null,
        }),
        "reasoning" => return reasoning(item),
        "commandExecution" => command(at, item, &inner(item)),
        "fileChange" => patch(at, &inner(item)),
        "mcpToolCall" => mcp(at, &inner(item)),
        "webSearch" => web_search(&inner(item)),
        "imageView" => json!({
            "type": "view_image_tool_call",
            "call_id": item["id"],
            "path": item["path"],
        }),
        "contextCompaction" => json!({ "type": "context_compacted" }),
        "enteredReviewMode" => review("entered_review_mode", &inner(item)),
        "exitedReviewMode" => review("exited_review_mode", &inner(item)),
        "plan" => return vec![completed(at, &inner(item))],
        _ => return Vec::new(),
    };
    vec![Record::Event(event)]
}

fn user(item: &Value) -> Value {
    let inner = inner(item);
    let parts = inner["content"].as_array().into_iter().flatten();
    let (mut text, mut elements) = (String::new(), Vec::new());
    let (mut images, mut local) = (Vec::new(), Vec::new());
    for part in parts {
        match part["type"].as_str() {
            Some("text") => {
                elements.extend(shifted(&part["text_elements"], text.len()));
                text.push_str(part["text"].as_str().unwrap_or_default());
            }
            Some("image") => images.push(part["image_url"].clone()),
            Some("local_image") => local.push(part["path"].clone()),
            _ => {}
        }
    }
    json!({
        "type": "user_message",
        "message": text,
        "images": images,
        "local_images": local,
        "text_elements": elements,
    })
}

/// Marks of a text that stands behind others.
fn shifted(elements: &Value, by: usize) -> Vec<Value> {
    let mut elements = elements.as_array().cloned().unwrap_or_default();
    for element in &mut elements {
        for end in ["start", "end"] {
            if let Some(at) = element["byte_range"][end].as_u64() {
                element["byte_range"][end] = json!(at + by as u64);
            }
        }
    }
    elements
}

fn reasoning(item: &Value) -> Vec<Record> {
    let texts = |key: &str, kind: &'static str| {
        let texts = item[key].as_array().cloned().unwrap_or_default();
        texts.into_iter().map(move |text| Record::Event(json!({ "type": kind, "text": text })))
    };
    texts("summary", "agent_reasoning")
        .chain(texts("content", "agent_reasoning_raw_content"))
        .collect()
}

fn command(at: Completed<'_>, shown: &Value, item: &Value) -> Value {
    let output = item["aggregated_output"].as_str().unwrap_or_default();
    json!({
        "type": "exec_command_end",
        "call_id": item["id"],
        "process_id": item["process_id"],
        "turn_id": at.turn,
        "command": item["command"],
        "cwd": shown["cwd"],
        "parsed_cmd": item["parsed_cmd"],
        "source": item["source"],
        "stdout": "",
        "stderr": "",
        "aggregated_output": output,
        "exit_code": item["exit_code"].as_i64().unwrap_or(-1),
        "duration": duration(at, item),
        "formatted_output": output,
        "status": item["status"],
    })
}

fn patch(at: Completed<'_>, item: &Value) -> Value {
    json!({
        "type": "patch_apply_end",
        "call_id": item["id"],
        "turn_id": at.turn,
        "stdout": item["stdout"],
        "stderr": item["stderr"],
        "success": item["status"] == "completed",
        "changes": item["changes"],
        "status": item["status"],
    })
}

fn mcp(at: Completed<'_>, item: &Value) -> Value {
    let result = match item["error"]["message"].as_str() {
        Some(message) => json!({ "Err": message }),
        None if item["result"].is_object() => json!({ "Ok": item["result"] }),
        None => json!({ "Err": "no result" }),
    };
    json!({
        "type": "mcp_tool_call_end",
        "call_id": item["id"],
        "turn_id": at.turn,
        "invocation": {
            "server": item["server"],
            "tool": item["tool"],
            "arguments": item["arguments"],
        },
        "duration": duration(at, item),
        "result": result,
    })
}

fn duration(at: Completed<'_>, item: &Value) -> Value {
    match &item["duration"] {
        Value::Null => {
            let millis = at.completed_ms.saturating_sub(at.started_ms);
            super::span(u64::try_from(millis).unwrap_or(0))
        }
        known => known.clone(),
    }
}

fn web_search(item: &Value) -> Value {
    let action = match &item["action"] {
        Value::Null => json!({ "type": "other" }),
        action => action.clone(),
    };
    json!({
        "type": "web_search_end",
        "call_id": item["id"],
        "query": item["query"],
        "action": action,
    })
}

fn review(kind: &str, item: &Value) -> Value {
    let mut event = item.clone();
    event["type"] = Value::from(kind);
    if let Some(fields) = event.as_object_mut() {
        fields.remove("id");
    }
    event
}
