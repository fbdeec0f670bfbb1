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
