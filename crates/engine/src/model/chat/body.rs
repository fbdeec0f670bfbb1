//! The body of a request, as the profile asks for it.

use serde_json::{Map, Value, json};

use super::super::chat_profile::{ChatProfile, StructuredOutput};
use super::super::dialect::{Dialect, Names};
use super::super::fit::fit;
use super::super::responses::SCHEMA_NAME;
use super::super::{ModelRequest, Provider, ToolSpec};
use super::messages::build_messages;
use super::tools_as_text::describe_tools;

const DIALECT: Dialect = Dialect { namespaces: false, freeform: false };

/// The body, and what the names of the functions in it stand for.
pub(super) fn build_body(
    request: ModelRequest,
    provider: &Provider,
    profile: &ChatProfile,
) -> (Map<String, Value>, Names) {
    let (tools, mut names) = DIALECT.tools(request.tools);
    names.note_ids(&request.input);
    let mut base = request.base;
    if profile.tools_as_text {
        add_paragraph(&mut base, describe_tools(&tools));
    }
    if profile.structured_output != StructuredOutput::JsonSchema {
        add_paragraph(&mut base, request.output_schema.as_ref().map(describe_schema));
    }
    let offered = tools.into_iter().filter(|_| !profile.tools_as_text);
    let offered: Vec<Value> = offered.filter_map(|tool| offer_tool(tool, profile)).collect();
    let input = fit(request.input, provider.images);
    let input = input.into_iter().map(|item| DIALECT.tell(item)).collect();

    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    let messages = build_messages(base, input, provider.placement, profile);
    body.insert("messages".to_owned(), Value::Array(messages));
    body.insert("stream".to_owned(), json!(true));
    if profile.stream_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    // Allowed unless it is forbidden, and not every server knows the word.
    let forbids = !offered.is_empty() && !request.parallel_tool_calls;
    if forbids && profile.send_parallel_tool_calls {
        body.insert("parallel_tool_calls".to_owned(), json!(false));
    }
    if !offered.is_empty() {
        body.insert("tools".to_owned(), Value::Array(offered));
    }
    set_path(&mut body, &profile.effort_field, request.effort.map(Value::String));
    set_path(&mut body, "verbosity", request.verbosity.map(Value::String));
    set_path(&mut body, &profile.max_tokens_field, profile.max_tokens.map(Value::from));
    set_path(&mut body, "temperature", profile.temperature.map(Value::from));
    let format = request.output_schema.and_then(|schema| response_format(schema, profile));
    set_path(&mut body, "response_format", format);
    for (key, value) in &profile.extra_body {
        body.insert(key.clone(), value.clone());
    }
    (body, names)
}

fn add_paragraph(text: &mut String, paragraph: Option<String>) {
    let Some(paragraph) = paragraph else { return };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&paragraph);
}

fn describe_schema(schema: &Value) -> String {
    format!("Give your final answer as JSON alone, matching this JSON Schema:\n{schema}")
}

fn response_format(schema: Value, profile: &ChatProfile) -> Option<Value> {
    match profile.structured_output {
        StructuredOutput::JsonSchema => {
            let schema = json!({ "name": SCHEMA_NAME, "strict": true, "schema": schema });
            Some(json!({ "type": "json_schema", "json_schema": schema }))
        }
        StructuredOutput::JsonObject => Some(json!({ "type": "json_object" })),
        StructuredOutput::Prompt => None,
    }
}

/// Sets a field, nested where its name has dots; an empty name or no value sets nothing.
fn set_path(body: &mut Map<String, Value>, path: &str, value: Option<Value>) {
    let Some(value) = value.filter(|_| !path.is_empty()) else { return };
    match path.split_once('.') {
        None => {
            body.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let nested = body.entry(first).or_insert_with(|| json!({}));
            if let Some(nested) = nested.as_object_mut() {
                set_path(nested, rest, Some(value));
            }
        }
    }
}

fn offer_tool(tool: ToolSpec, profile: &ChatProfile) -> Option<Value> {
    match tool {
        ToolSpec::Function { name, description, mut parameters } => {
            drop_keywords(&mut parameters, &profile.schema_drop);
            if profile.describe_parameters {
                describe_parameters(&mut parameters);
            }
            let function =
                json!({ "name": name, "description": description, "parameters": parameters });
            Some(json!({ "type": "function", "function": function }))
        }
        other => {
            tracing::debug!(?other, "the Chat wire cannot offer this tool");
            None
        }
    }
}

/// Removes keywords from a schema at every depth; the names of properties are no keywords.
fn drop_keywords(schema: &mut Value, keywords: &[String]) {
    if keywords.is_empty() {
        return;
    }
    match schema {
        Value::Object(fields) => {
            fields.retain(|key, _| !keywords.contains(key));
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(|value| drop_keywords(value, keywords));
                    }
                    ("enum" | "const" | "required", _) => {}
                    (_, value) => drop_keywords(value, keywords),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| drop_keywords(value, keywords)),
        _ => {}
    }
}

fn describe_parameters(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        if let Some(fields) = property.as_object_mut() {
            fields.entry("description").or_insert_with(|| json!(""));
        }
        describe_parameters(property);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{describe_parameters, drop_keywords, set_path};

    #[test]
    fn keywords_are_dropped_at_every_depth_and_properties_are_none() {
        let mut schema = json!({
            "additionalProperties": false,
            "properties": {
                "default": { "type": "object", "default": 1, "additionalProperties": {} },
                "list": { "anyOf": [{ "default": 2 }], "enum": ["default"] },
            },
        });
        drop_keywords(&mut schema, &["additionalProperties".to_owned(), "default".to_owned()]);
        let want = json!({ "properties": {
            "default": { "type": "object" },
            "list": { "anyOf": [{}], "enum": ["default"] },
        } });
        assert_eq!(schema, want);
    }

    #[test]
    fn every_parameter_is_described() {
        let mut schema = json!({ "properties": { "a": { "properties": { "b": {} } } } });
        describe_parameters(&mut schema);
        assert_eq!(schema["properties"]["a"]["properties"]["b"], json!({ "description": "" }));
    }

    #[test]
    fn a_field_with_dots_is_nested_and_one_without_a_name_is_not_sent() {
        let mut body = Map::new();
        set_path(&mut body, "reasoning.effort", Some(json!("low")));
        set_path(&mut body, "", Some(json!(1)));
        set_path(&mut body, "x", None);
        assert_eq!(json!(body), json!({ "reasoning": { "effort": "low" } }));
    }
}
