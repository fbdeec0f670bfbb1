//! Tools for models whose server or template knows none: described in the prompt, called in text.

use serde_json::{Value, json};

use super::super::ToolSpec;

/// What opens a call in the model's text.
pub(super) const OPEN: &str = "<tool_call>";

/// What closes it.
pub(super) const CLOSE: &str = "</tool_call>";

/// How the tools are told in the prompt; none without tools.
pub(super) fn describe_tools(tools: &[ToolSpec]) -> Option<String> {
    let described: Vec<String> = tools.iter().filter_map(describe_tool).collect();
    let tools = described.join("\n");
    (!tools.is_empty()).then(|| {
        format!(
            "# Tools\n\nEach line is a tool you may call, with the JSON Schema of its arguments:\n\
             \n{tools}\n\nTo call one, answer with this and nothing after it:\n\n\
             {OPEN}{{\"name\": \"TOOL\", \"arguments\": {{}}}}{CLOSE}\n\n\
             The result comes with the next message."
        )
    })
}

fn describe_tool(tool: &ToolSpec) -> Option<String> {
    let ToolSpec::Function { name, description, parameters } = tool else { return None };
    let described = json!({ "name": name, "description": description, "parameters": parameters });
    Some(described.to_string())
}

/// Turns calls and their answers into text.
pub(super) fn tell_calls_as_text(messages: Vec<Value>) -> Vec<Value> {
    messages.into_iter().map(tell_message).collect()
}

fn tell_message(mut message: Value) -> Value {
    if message["role"] == "tool" {
        let name = message["name"].as_str().unwrap_or("tool");
        let text = message["content"].as_str().unwrap_or_default();
        return json!({ "role": "user", "content": format!("Result of `{name}`:\n{text}") });
    }
    let Some(Value::Array(calls)) = message.as_object_mut().and_then(|m| m.remove("tool_calls"))
    else {
        return message;
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(message["content"].as_str().filter(|text| !text.is_empty()).map(str::to_owned));
    lines.extend(calls.iter().map(|call| {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or("{}");
        format!("{OPEN}{{\"name\": {}, \"arguments\": {arguments}}}{CLOSE}", function["name"])
    }));
    message["content"] = json!(lines.join("\n"));
    message
}

/// The name and the arguments of a call in text; none where it is no call.
pub(super) fn parse_call(text: &str) -> Option<(String, String)> {
    let call: Value = serde_json::from_str(text.trim()).ok()?;
    let function = call.get("function").filter(|function| function.is_object()).unwrap_or(&call);
    let name = function["name"].as_str()?.to_owned();
    let arguments = function.get("arguments").or_else(|| function.get("parameters"));
    let arguments = match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    Some((name, arguments))
}
