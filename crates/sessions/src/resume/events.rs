//! Events of legacy files as items of the app-server protocol.

use serde_json::{Value, json};

use super::items::shown;

/// The item of an event; none if people are shown nothing of it.
pub(super) fn item(kind: &str, event: &Value, id: String) -> Option<Value> {
    let call = event["call_id"].as_str().map_or(id.clone(), str::to_owned);
    let inner = match kind {
        "user_message" => return Some(user(event, id)),
        "agent_message" => json!({
            "type": "AgentMessage",
            "id": id,
            "content": [{ "type": "Text", "text": event["message"] }],
            "phase": event["phase"],
        }),
        "agent_reasoning" => {
            json!({ "type": "Reasoning", "id": id, "summary_text": [event["text"]] })
        }
        "agent_reasoning_raw_content" => {
            json!({ "type": "Reasoning", "id": id, "raw_content": [event["text"]] })
        }
        "exec_command_end" => of(event, "CommandExecution", &call),
        "patch_apply_end" => of(event, "FileChange", &call),
        "mcp_tool_call_end" => mcp(event, &call),
        "web_search_end" => of(event, "WebSearch", &call),
        "view_image_tool_call" => of(event, "ImageView", &call),
        "image_generation_end" => of(event, "ImageGeneration", &call),
        "context_compacted" => json!({ "type": "ContextCompaction", "id": id }),
        "entered_review_mode" => of(event, "EnteredReviewMode", &id),
        "exited_review_mode" => of(event, "ExitedReviewMode", &id),
        _ => return None,
    };
    Some(shown(&inner))
}

/// An event that has the fields of an item.
fn of(event: &Value, kind: &str, id: &str) -> Value {
    let mut item = event.clone();
    if let Some(fields) = item.as_object_mut() {
        for key in ["call_id", "turn_id", "success", "stdout", "stderr", "formatted_output"] {
            fields.remove(key);
        }
        let status = match event["success"].as_bool() {
            Some(true) => Some("completed"),
            Some(false) => Some("failed"),
            None => match event["exit_code"].as_i64() {
                Some(0) => Some("completed"),
                Some(_) => Some("failed"),
                None => None,
            },
        };
        if let Some(status) = status {
            fields.entry("status").or_insert(Value::from(status));
        }
        fields.insert("type".to_owned(), Value::from(kind));
        fields.insert("id".to_owned(), Value::from(id));
    }
    item
}

fn user(event: &Value, id: String) -> Value {
    let list = |key: &str| event[key].as_array().cloned().unwrap_or_default();
    let mut content = Vec::new();
    if let Some(text) = event["message"].as_str().filter(|text| !text.is_empty()) {
        content.push(json!({
            "type": "text",
            "text": text,
            "text_elements": list("text_elements"),
        }));
    }
    content.extend(list("images").iter().map(|url| json!({ "type": "image", "image_url": url })));
    let local = list("local_images");
    content.extend(local.iter().map(|path| json!({ "type": "local_image", "path": path })));
    shown(&json!({ "type": "UserMessage", "id": id, "content": content }))
}

fn mcp(event: &Value, id: &str) -> Value {
    let call = &event["invocation"];
    let (ok, error) = (&event["result"]["Ok"], &event["result"]["Err"]);
    let failed = !error.is_null() || ok["isError"] == true;
    let error = error.as_str().map(|message| json!({ "message": message }));
    json!({
        "type": "McpToolCall",
        "id": id,
        "server": call["server"],
        "tool": call["tool"],
        "arguments": call["arguments"],
        "status": if failed { "failed" } else { "completed" },
        "result": ok,
        "error": error,
        "duration": event["duration"],
    })
}
