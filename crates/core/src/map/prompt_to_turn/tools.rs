//! The caller's tools → Codex's dynamic tools.

use serde_json::{Map, Value, json};

use super::instructions::digest;
use super::notes::Notes;
use crate::call::Tool;
use crate::open::{Open, tag_of};

/// Declares function tools; all others are noted.
pub(super) fn declare(tools: &[Open<Tool>], notes: &mut Notes<'_>) -> Vec<Value> {
    tools.iter().filter_map(|tool| declared(tool, notes)).collect()
}

/// A digest for each tool, by name.
pub(super) fn marks(tools: &[Value]) -> Map<String, Value> {
    let mark = |tool: &Value| (tag_of(tool, "name").to_owned(), json!(digest(&tool.to_string())));
    tools.iter().map(mark).collect()
}

/// Tools of Codex's own (0.166, 0.169), some of them with some models or settings only. Of two
/// tools of one name Codex runs its own, and says nothing.
pub const RESERVED: &[&str] = &[
    "apply_patch",
    "close_agent",
    "create_goal",
    "exec",
    "exec_command",
    "get_goal",
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "read_mcp_resource",
    "request_user_input",
    "resume_agent",
    "send_input",
    "shell_command",
    "spawn_agent",
    "tool_search",
    "update_goal",
    "update_plan",
    "view_image",
    "wait",
    "wait_agent",
    "web_search",
    "write_stdin",
];

/// The first tool whose name is taken.
pub(super) fn reserved(tools: &[Open<Tool>]) -> Option<&str> {
    let name = |tool: &'_ Open<Tool>| match tool {
        Open::Known(Tool::Function { name, .. }) => RESERVED.iter().find(|taken| *taken == name),
        _ => None,
    };
    tools.iter().find_map(name).copied()
}

/// What a thread of these marks was not told of, in words; none if it knows all, or nobody knows.
pub(super) fn unknown_to(marks: &Map<String, Value>, tools: &[Value]) -> Option<String> {
    let before = marks.get("tools")?.as_object()?;
    let now = self::marks(tools).into_iter();
    let unknown: Map<String, Value> =
        now.filter(|(name, mark)| before.get(name) != Some(mark)).collect();
    let known = before.iter().filter(|(name, _)| unknown.contains_key(*name));
    difference(&known.map(|(name, mark)| (name.clone(), mark.clone())).collect(), &unknown)
}

/// What is new, gone or changed, in words; none if nothing is.
pub(super) fn difference(before: &Map<String, Value>, now: &Map<String, Value>) -> Option<String> {
    let names = |words: &str, found: Vec<&String>| {
        let names: Vec<String> = found.into_iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("{words} {}", names.join(", ")))
    };
    let new = now.keys().filter(|name| !before.contains_key(*name)).collect();
    let gone = before.keys().filter(|name| !now.contains_key(*name)).collect();
    let changed = now.iter().filter(|(name, mark)| before.get(*name).is_some_and(|b| b != *mark));
    let changed = changed.map(|(name, _)| name).collect();
    let told: Vec<String> =
        [names("new are", new), names("gone are", gone), names("changed are", changed)]
            .into_iter()
            .flatten()
            .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn declared(tool: &Open<Tool>, notes: &mut Notes<'_>) -> Option<Value> {
    match tool {
        Open::Known(Tool::Function {
            name,
            description,
            input_schema,
            input_examples,
            strict,
            ..
        }) => {
            if *strict == Some(true) {
                notes.unsupported(format!("strict of tool `{name}`"), "Codex sends tools as lax");
            }
            if input_examples.is_some() {
                let feature = format!("inputExamples of tool `{name}`");
                notes.unsupported(feature, "Codex passes on name, description and schema");
            }
            // Codex requires a description.
            let description = description.as_deref().unwrap_or_default();
            Some(json!({
                "type": "function",
                "name": name,
                "description": description,
                "inputSchema": input_schema,
            }))
        }
        Open::Known(Tool::Provider { id, name, .. }) => {
            let feature = format!("provider tool `{id}` (`{name}`)");
            notes.unsupported(feature, "Codex has its own tools; see its `config`");
            None
        }
        Open::Unknown { raw, why } => {
            notes.unsupported(format!("tool `{}`", tag_of(raw, "name")), why);
            None
        }
    }
}
