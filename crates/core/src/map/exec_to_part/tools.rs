//! Tool calls and results in the shapes of a live turn.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{steps, without_nulls, word};
use crate::ids::{CallId, PartId};
use crate::json_text::JsonText;
use crate::ndjson::{Parameters, PlanItem, Status, ToolResult, ToolUse};
use crate::part::{self, Delta, Part, Run, Source, ToolInputStart};

/// A tool is called.
pub(super) fn call(call: &ToolUse<'_>, out: &mut Vec<Part>) {
    let (id, name) = (call.tool_id.decode(), call.tool_name.decode());
    announce(&id, &name, input(&call.parameters).to_string(), out);
    if let Parameters::Search { action: Some(action), .. } = &call.parameters {
        out.extend(page(&value(action)));
    }
}

/// It has answered.
pub(super) fn result(result: &ToolResult<'_>, out: &mut Vec<Part>) {
    let name = result.tool_name.decode();
    let details = json!({
        "status": word(&result.state),
        output_key(&name): result.output.decode(),
        "exitCode": result.exit_code,
        "result": result.result.map(value),
    });
    // There is no third way to say it here: what is not known to be good is not told as good.
    let is_error = result.status != Status::Success;
    out.push(answer(&result.tool_id.decode(), &name, without_nulls(details), is_error));
}

/// A plan is a call of its own, answered at once.
pub(super) fn plan(
    count: u32,
    explanation: Option<&JsonText<'_>>,
    items: &[PlanItem],
    out: &mut Vec<Part>,
) {
    let (id, name, steps) = (format!("plan-{count}"), "codex_plan_update", steps(items));
    let input = json!({ "explanation": explanation.map(JsonText::decode), "plan": steps });
    announce(&id, name, input.to_string(), out);
    out.push(answer(&id, name, json!({ "plan": steps }), false));
}

/// The page that a search opens.
fn page(action: &Value) -> Option<Part> {
    let url = action.get("url")?.as_str()?.to_owned();
    Some(Part::Source(Source::Url { id: url.clone(), url, title: None, provider_metadata: None }))
}

fn announce(id: &str, name: &str, input: String, out: &mut Vec<Part>) {
    out.push(Part::ToolInputStart(ToolInputStart {
        id: CallId::new(id),
        tool_name: name.to_owned(),
        input_encoding: None,
        provider_executed: true,
        dynamic: true,
        title: None,
        provider_metadata: None,
    }));
    let (run, delta) = (PartId::new(id), input.clone());
    out.push(Part::ToolInputDelta(Delta { id: run.clone(), delta, provider_metadata: None }));
    out.push(Part::ToolInputEnd(Run { id: run, provider_metadata: None }));
    out.push(Part::ToolCall(part::ToolCall {
        tool_call_id: CallId::new(id),
        tool_name: name.to_owned(),
        input,
        provider_executed: true,
        dynamic: true,
        provider_metadata: None,
    }));
}

fn answer(id: &str, name: &str, result: Value, is_error: bool) -> Part {
    Part::ToolResult(part::ToolResult {
        tool_call_id: CallId::new(id),
        tool_name: name.to_owned(),
        result,
        is_error,
        preliminary: false,
        dynamic: true,
        provider_metadata: None,
    })
}

/// Where a live turn has what a tool printed.
fn output_key(name: &str) -> &'static str {
    if name == "codex_command_execution" { "aggregatedOutput" } else { "output" }
}

fn input(parameters: &Parameters<'_>) -> Value {
    let mut value = match parameters {
        Parameters::Raw(raw) => return value(raw),
        Parameters::Changes { changes } => json!({ "changes": value(changes) }),
        other => serde_json::to_value(other).unwrap_or_else(|_| json!({})),
    };
    if let Some(Value::Array(changes)) = value.get_mut("changes") {
        changes.iter_mut().filter_map(Value::as_object_mut).for_each(change);
    }
    value
}

/// `exec` names the kind of a change by a word and tells no diff; a live turn has an object.
fn change(change: &mut Map<String, Value>) {
    let kind = change.get("kind").cloned().unwrap_or_default();
    let move_path = change.remove("move_path");
    let kind = without_nulls(json!({ "type": kind, "move_path": move_path }));
    change.insert("kind".to_owned(), kind);
    change.entry("diff").or_insert_with(|| json!(""));
}

/// JSON that is nested too deeply for us stays text.
fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| json!(raw.get()))
}
