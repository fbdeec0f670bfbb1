//! The caller's tools → Codex's dynamic tools.

use serde_json::{Value, json};

use super::notes::Notes;
use crate::call::Tool;
use crate::open::{Open, tag_of};

/// Declares function tools; all others are noted.
pub(super) fn declare(tools: &[Open<Tool>], notes: &mut Notes<'_>) -> Vec<Value> {
    tools.iter().filter_map(|tool| declared(tool, notes)).collect()
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
