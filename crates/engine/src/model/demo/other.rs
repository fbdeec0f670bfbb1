//! Requests that are no conversation: a summary, a review, an answer in a given shape.

use serde_json::{Map, Value, json};

use super::super::ModelRequest;
use super::scene::{said, shortened};
use super::{LABEL, say};
use crate::item::{Item, Message, Role};

/// Deeper schemas get `null`.
const MAX_DEPTH: usize = 16;

/// The answer, if it is such a request.
pub(super) fn answer(request: &ModelRequest) -> Option<Vec<Item>> {
    let json = |value: Value| {
        // JSON has no room for a label before it, so it is inside.
        vec![Item::Message(Message::text(Role::Assistant, value.to_string()))]
    };
    match request.purpose {
        Some("compact") => Some(vec![say(&summary(request))]),
        Some("review") => Some(json(review())),
        _ => request.output_schema.as_ref().map(|schema| json(shaped(schema, 0))),
    }
}

fn summary(request: &ModelRequest) -> String {
    // The last message is the wish for a summary.
    let mut said = said(request);
    said.pop();
    let said: Vec<String> = said.iter().map(|text| format!("- {}", shortened(text, 200))).collect();
    match said.is_empty() {
        true => "Nothing was said yet; there is nothing to sum up.".to_owned(),
        false => format!("So far the person said:\n{}", said.join("\n")),
    }
}

fn review() -> Value {
    json!({
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation":
            format!("{LABEL} The demo model reads no code and so has nothing to find."),
        "overall_confidence_score": 0.0,
    })
}

/// The smallest value a schema takes, with the label where there is room for words.
fn shaped(schema: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema["enum"].get(0) {
        return value.clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = schema[key].get(0) {
            return shaped(first, depth + 1);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => json!(format!("{LABEL} no real model was asked")),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(0.0)),
        Some("boolean") => json!(false),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or_default().min(16);
            (0..count).map(|_| shaped(&schema["items"], depth + 1)).collect()
        }
        Some("null") => Value::Null,
        _ => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields: Map<String, Value> =
                fields.map(|(name, schema)| (name.clone(), shaped(schema, depth + 1))).collect();
            Value::Object(fields)
        }
    }
}
