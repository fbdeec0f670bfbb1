//! What a thread's doings are called in a session file.

use bindery_sessions::write::shown::{self, Completed};
use bindery_sessions::write::{Format, Record};
use serde_json::{Value, json};

use crate::thread::Entry;
use crate::thread::journal::TurnContext;
use crate::tokens::TokenCount;

/// The lines for an entry.
pub(super) fn records(entry: &Entry, thread: &str, format: Format) -> Vec<Record> {
    match entry {
        Entry::Item(item) => vec![Record::ResponseItem(value(item))],
        Entry::ItemCompleted { turn_id, item, at_ms } => {
            let started_ms = item["startedAtMs"].as_i64().unwrap_or(*at_ms);
            let at = Completed { thread, turn: turn_id, started_ms, completed_ms: *at_ms };
            shown::records(format, at, item)
        }
        Entry::TurnContext(context) => vec![Record::TurnContext(turn_context(context))],
        // Under a name of our own: Codex's shape of it is another.
        Entry::WorldState(told) => {
            vec![Record::WorldState(json!({ "full": true, "state": { "bindery": told } }))]
        }
        Entry::Compacted { message, history } => {
            let history: Vec<Value> = history.iter().map(value).collect();
            let payload = json!({ "message": message, "replacement_history": history });
            vec![Record::Compacted(payload)]
        }
        entry => vec![Record::Event(event(entry))],
    }
}

fn event(entry: &Entry) -> Value {
    match entry {
        Entry::TurnStarted { turn_id, started_at, window } => json!({
            "type": "task_started",
            "turn_id": turn_id,
            "started_at": started_at,
            "model_context_window": window,
            "collaboration_mode_kind": "default",
        }),
        Entry::TokenCount { total, last, window, .. } => json!({
            "type": "token_count",
            "info": {
                "total_token_usage": tokens(total),
                "last_token_usage": tokens(last),
                "model_context_window": window,
            },
            "rate_limits": null,
        }),
        Entry::TurnCompleted { turn_id, last_message, error, completed_at, duration_ms } => {
            let mut event = json!({
                "type": "task_complete",
                "turn_id": turn_id,
                "last_agent_message": last_message,
                "completed_at": completed_at,
                "duration_ms": duration_ms,
            });
            if let Some(error) = error {
                event["error"] = error.clone();
            }
            event
        }
        Entry::TurnAborted { turn_id, reason, completed_at, duration_ms } => json!({
            "type": "turn_aborted",
            "turn_id": turn_id,
            "reason": reason,
            "completed_at": completed_at,
            "duration_ms": duration_ms,
        }),
        other => json!({ "type": "warning", "message": format!("not written: {other:?}") }),
    }
}

fn turn_context(context: &TurnContext) -> Value {
    json!({
        "turn_id": context.turn_id,
        "cwd": context.cwd,
        "approval_policy": context.approval_policy,
        "sandbox_policy": sandbox(&context.sandbox_policy),
        "model": context.model,
        "effort": context.effort,
        "summary": context.summary.as_deref().unwrap_or("auto"),
    })
}

/// The protocol writes its words in one way, session files in another.
fn sandbox(policy: &Value) -> Value {
    let Some(fields) = policy.as_object() else { return policy.clone() };
    let spelt = fields.iter().map(|(key, value)| match (key.as_str(), value.as_str()) {
        ("type", Some(word)) => (key.clone(), Value::from(split(word, '-'))),
        _ => (split(key, '_'), value.clone()),
    });
    Value::Object(spelt.collect())
}

/// `workspaceWrite` as `workspace-write`, or `workspace_write`.
fn split(word: &str, with: char) -> String {
    let mut spelt = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            spelt.push(with);
        }
        spelt.push(letter.to_ascii_lowercase());
    }
    spelt
}

fn tokens(count: &TokenCount) -> Value {
    json!({
        "input_tokens": count.input_tokens,
        "cached_input_tokens": count.cached_input_tokens,
        "cache_write_input_tokens": count.cache_write_input_tokens,
        "output_tokens": count.output_tokens,
        "reasoning_output_tokens": count.reasoning_output_tokens,
        "total_tokens": count.total_tokens,
    })
}

fn value(item: &impl serde::Serialize) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_spelt_as_session_files_spell_it() {
        let policy = json!({ "type": "workspaceWrite", "writableRoots": ["/x"] });
        let want = json!({ "type": "workspace-write", "writable_roots": ["/x"] });
        assert_eq!(sandbox(&policy), want);
    }
}
