//! Tests of the whole arrow, from a call's JSON to a plan.

mod files;

mod history;

mod input;

mod laws;

mod settings;

mod thread;

use serde_json::{Value, json};

use super::{PlanContext, PlanError, TurnPlan, plan};
use crate::call::CallOptions;
use crate::part::Warning;

/// The smallest PNG header that is recognised, as base64.
const PNG: &str = "iVBORw0KGgo=";

fn try_plan(options: Value, context: &PlanContext) -> Result<TurnPlan, PlanError> {
    let options: CallOptions = serde_json::from_value(options).unwrap();
    plan(&options, context)
}

fn planned(options: Value) -> TurnPlan {
    try_plan(options, &PlanContext::default()).unwrap()
}

/// The plan of a prompt without options.
fn of_prompt(prompt: Value) -> TurnPlan {
    planned(json!({ "prompt": prompt }))
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

/// An answer that a thread of Codex's gave.
fn answer(text: &str, thread: &str) -> Value {
    let options = json!({ "codex": { "threadId": thread, "turnId": format!("turn of {text}") } });
    json!({ "role": "assistant", "content": [
        { "type": "text", "text": text, "providerOptions": options }] })
}

fn result(call: &str, output: Value) -> Value {
    json!({ "role": "tool", "content": [
        { "type": "tool-result", "toolCallId": call, "toolName": "add", "output": output }] })
}

/// One word for the kind and the name of what was warned of.
fn warned(plan: &TurnPlan) -> Vec<String> {
    plan.warnings.iter().map(sketch_warning).collect()
}

fn sketch_warning(warning: &Warning) -> String {
    match warning {
        Warning::Unsupported { feature, .. } => format!("no {feature}"),
        Warning::Compatibility { feature, .. } => format!("other {feature}"),
        other => format!("{other:?}"),
    }
}

/// Items as `role: text`, `call id name(input)`, `result id: text`.
fn sketch(items: &[Value]) -> Vec<String> {
    items.iter().map(sketch_item).collect()
}

fn sketch_item(item: &Value) -> String {
    let field = |name: &str| item[name].as_str().unwrap_or("?").to_owned();
    match item["type"].as_str() {
        Some("message") => format!("{}: {}", field("role"), sketch_content(&item["content"])),
        Some("function_call") => {
            format!("call {} {}({})", field("call_id"), field("name"), field("arguments"))
        }
        Some("function_call_output") => {
            format!("result {}: {}", field("call_id"), sketch_content(&item["output"]))
        }
        _ => format!("? {item}"),
    }
}

fn sketch_content(content: &Value) -> String {
    let piece = |piece: &Value| match (piece["text"].as_str(), piece["image_url"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (_, Some(url)) => format!("<{url}>"),
        _ => format!("? {piece}"),
    };
    match content {
        Value::Array(pieces) => pieces.iter().map(piece).collect::<Vec<_>>().join(" + "),
        Value::String(text) => text.clone(),
        _ => "?".to_owned(),
    }
}

/// Input as JSON, for comparison.
fn input(plan: &TurnPlan) -> Value {
    serde_json::to_value(&plan.input).unwrap()
}
