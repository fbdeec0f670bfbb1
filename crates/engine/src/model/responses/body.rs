//! The body of a request to the Responses API.

use bindery_core::open::Open;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::dialect::{Dialect, Names};
use super::super::fit::fit;
use super::super::{ModelRequest, Placement, Provider, ToolSpec};
use crate::item::{HistoryItem, Item, Message, Role};

/// Ids that servers gave and know again, by how they begin. Those of thoughts are not among them:
/// a server that stores nothing does not find them.
const KNOWN_IDS: &[&str] =
    &["msg_", "fc_", "fco_", "ctc_", "ctco_", "ws_", "ig_", "lsh_", "cmp_", "tsc_"];

/// Codex's name for the schema of an answer.
pub(in crate::model) const SCHEMA_NAME: &str = "codex_output_schema";

/// The whole of a request, in the order Codex has.
#[derive(Debug, Serialize)]
pub(super) struct Body {
    model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    input: Vec<HistoryItem>,
    tools: Vec<Value>,
    tool_choice: &'static str,
    parallel_tool_calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    store: bool,
    stream: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    prompt_cache_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
}

/// Builds it, and what the names of tools in the answer will mean.
pub(super) fn body(request: ModelRequest, provider: &Provider) -> (Body, Names) {
    let dialect = Dialect { namespaces: provider.namespaces, freeform: provider.freeform };
    let (tools, names) = dialect.tools(request.tools);
    let told = |item| told(dialect.tell(item));
    let mut input: Vec<HistoryItem> =
        fit(request.input, provider.images).into_iter().filter_map(told).collect();
    let mut instructions = request.base;
    let role = match provider.placement {
        Placement::Instructions => None,
        Placement::Developer => Some(Role::Developer),
        Placement::System => Some(Role::System),
    };
    if let Some(role) = role.filter(|_| !instructions.is_empty()) {
        input.insert(0, Message::text(role, std::mem::take(&mut instructions)).into());
    }
    let body = Body {
        model: request.model,
        instructions,
        input,
        tools: tools.into_iter().map(tool).collect(),
        tool_choice: "auto",
        parallel_tool_calls: request.parallel_tool_calls,
        reasoning: object([("effort", request.effort), ("summary", request.summary)]),
        store: false,
        stream: true,
        include: ["reasoning.encrypted_content"],
        service_tier: provider.service_tier.clone(),
        prompt_cache_key: request.thread_id,
        text: text(request.verbosity, request.output_schema),
    };
    (body, names)
}

fn text(verbosity: Option<String>, schema: Option<Value>) -> Option<Value> {
    let mut text = object([("verbosity", verbosity)]);
    if let Some(schema) = schema {
        text.get_or_insert_with(|| json!({}))["format"] = json!({
            "type": "json_schema", "strict": true, "name": SCHEMA_NAME, "schema": schema,
        });
    }
    text
}

/// An object of the fields that are set; none where none is.
fn object<const N: usize>(fields: [(&str, Option<String>); N]) -> Option<Value> {
    let fields =
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
    let fields: serde_json::Map<String, Value> = fields.collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn tool(tool: ToolSpec) -> Value {
    match tool {
        ToolSpec::Function { name, description, parameters } => json!({
            "type": "function", "name": name, "description": description, "strict": false,
            "parameters": parameters,
        }),
        ToolSpec::Freeform { name, description, syntax, definition } => json!({
            "type": "custom", "name": name, "description": description,
            "format": { "type": "grammar", "syntax": syntax, "definition": definition },
        }),
        ToolSpec::Namespace { name, description, tools } => {
            let tools: Vec<Value> = tools.into_iter().map(self::tool).collect();
            json!({
                "type": "namespace", "name": name, "description": description, "tools": tools,
            })
        }
        ToolSpec::Hosted(value) => value,
    }
}

/// An entry without what the server must not see again; none where nothing is left of it.
fn told(item: HistoryItem) -> Option<HistoryItem> {
    let known = |id: &String| KNOWN_IDS.iter().any(|start| id.starts_with(start));
    let mut item = item;
    match &mut item {
        Open::Known(Item::Reasoning(thoughts)) => {
            thoughts.id = None;
            // Raw thoughts are for the reader; a server takes back only what it has encrypted.
            thoughts.content = None;
            if thoughts.summary.is_empty() && thoughts.encrypted_content.is_none() {
                return None;
            }
        }
        Open::Known(Item::Message(message)) => message.id = message.id.take().filter(known),
        Open::Known(Item::FunctionCall(call)) => {
            call.id = call.id.take().filter(known);
            call.extra_content = None;
        }
        Open::Known(Item::CustomToolCall(call)) => {
            call.id = call.id.take().filter(known);
            call.extra_content = None;
        }
        Open::Known(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            output.id = output.id.take().filter(known);
        }
        Open::Unknown { raw, .. } => {
            let is_known = raw["id"].as_str().is_some_and(|id| known(&id.to_owned()));
            if let Some(fields) = raw.as_object_mut().filter(|_| !is_known) {
                fields.remove("id");
            }
        }
    }
    Some(item)
}
