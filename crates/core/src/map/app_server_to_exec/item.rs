//! Thread items → items of `codex exec --json`.

use serde_json::{Map, Value, json};

use crate::item::{ChangeKind, FileChange};
use crate::wire::app_server::item::{AgentCall, ThreadItem};
use crate::wire::app_server::notification::ItemNote;
use crate::wire::exec::event::{Body, Change, McpResult, Message};

/// The item; none for one that the vocabulary has no word for, or that says nothing.
pub(super) fn body(note: &ItemNote) -> Option<Body> {
    Some(match note.item.known()? {
        ThreadItem::AgentMessage { text, .. } => Body::AgentMessage { text: text.clone() },
        ThreadItem::Reasoning { summary, .. } => {
            let text = summary.join("\n");
            if text.trim().is_empty() {
                return None;
            }
            Body::Reasoning { text }
        }
        ThreadItem::CommandExecution(command) => Body::CommandExecution {
            command: command.command.clone(),
            aggregated_output: command.aggregated_output.clone().unwrap_or_default(),
            exit_code: command.exit_code,
            status: snake(&command.status),
        },
        ThreadItem::FileChange { changes, status } => Body::FileChange {
            changes: changes.iter().map(change).collect(),
            // A patch that nobody allowed has no word of its own.
            status: if status == "declined" { "failed".to_owned() } else { snake(status) },
        },
        ThreadItem::McpToolCall(call) => Body::McpToolCall {
            server: call.server.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            result: mcp_result(&note.raw),
            error: mcp_error(&note.raw),
            status: snake(&call.status),
        },
        ThreadItem::CollabAgentToolCall(call) => agents(call, &note.raw),
        ThreadItem::WebSearch { query, action, .. } => {
            Body::WebSearch { query: query.clone(), action: searched(action.as_ref()) }
        }
        _ => return None,
    })
}

fn change(change: &FileChange) -> Change {
    let kind = match change.kind {
        ChangeKind::Add => "add",
        ChangeKind::Delete => "delete",
        ChangeKind::Update { .. } => "update",
    };
    Change { path: change.path.clone(), kind }
}

fn mcp_result(raw: &Value) -> Option<McpResult> {
    let result = raw.get("result").filter(|result| result.is_object())?;
    let field = |key: &str| result.get(key).filter(|value| !value.is_null()).cloned();
    Some(McpResult {
        content: field("content").unwrap_or_else(|| json!([])),
        structured_content: field("structuredContent").unwrap_or_default(),
        meta: field("_meta"),
    })
}

fn mcp_error(raw: &Value) -> Option<Message> {
    let message = raw.get("error")?.get("message")?.as_str()?;
    Some(Message { message: message.to_owned() })
}

fn agents(call: &AgentCall, raw: &Value) -> Body {
    let sender = raw.get("senderThreadId").and_then(Value::as_str).unwrap_or_default();
    let states = raw.get("agentsStates").and_then(Value::as_object).cloned().unwrap_or_default();
    let state = |(thread, mut state): (String, Value)| {
        if let Some(status) = state.get("status").and_then(Value::as_str).map(snake) {
            state["status"] = json!(status);
        }
        (thread, state)
    };
    Body::CollabToolCall {
        tool: snake(&call.tool),
        sender_thread_id: sender.to_owned(),
        receiver_thread_ids: call.receiver_thread_ids.clone(),
        prompt: call.prompt.clone(),
        agents_states: Value::Object(states.into_iter().map(state).collect::<Map<_, _>>()),
        status: snake(&call.status),
    }
}

/// What a search did; nothing at all is `other`.
fn searched(action: Option<&Value>) -> Value {
    let Some(mut action) = action.filter(|action| action.is_object()).cloned() else {
        return json!({ "type": "other" });
    };
    if let Some(kind) = action.get("type").and_then(Value::as_str).map(snake) {
        action["type"] = json!(kind);
    }
    // The app-server says `null` where exec says nothing.
    if let Some(fields) = action.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    action
}

/// `inProgress` → `in_progress`.
fn snake(word: &str) -> String {
    let mut snake = String::with_capacity(word.len() + 4);
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
