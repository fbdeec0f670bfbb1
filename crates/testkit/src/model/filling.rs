//! Blanks in a call's arguments, filled from the outputs of earlier calls.
//!
//! A script cannot know the id of an agent or of a shell session beforehand, yet the next call
//! must name it: `"${call_1.agent_id}"` is the field `agent_id` of the output of `call_1`.

use serde_json::Value;

use super::choice::history;

/// Fills all blanks; one that cannot be filled stays as it is and so shows in the request.
pub(super) fn filled(arguments: &Value, body: &Value) -> Value {
    match arguments {
        Value::String(text) => blank(text, body).unwrap_or_else(|| arguments.clone()),
        Value::Array(values) => values.iter().map(|value| filled(value, body)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), filled(value, body)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn blank(text: &str, body: &Value) -> Option<Value> {
    let (call_id, field) = text.strip_prefix("${")?.strip_suffix('}')?.split_once('.')?;
    let items = history(body).as_array()?.iter();
    let output = items.rev().find_map(|item| output_of(item, call_id))?;
    let text = output.as_str().or_else(|| output[0]["text"].as_str())?;
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    json.get(field).cloned().or_else(|| (field == "session_id").then(|| session(text)).flatten())
}

fn output_of<'a>(item: &'a Value, call_id: &str) -> Option<&'a Value> {
    match item["tool_call_id"] == call_id {
        true => item.get("content"),
        false => item.get("output").filter(|_| item["call_id"] == call_id),
    }
}

/// Codex 0.166 names a shell session in a sentence: `Process running with session ID 123`.
fn session(text: &str) -> Option<Value> {
    let (_, rest) = text.split_once("session ID ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u64>().ok().map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::filled;

    #[test]
    fn blanks_are_filled_from_outputs() {
        let output = |id: &str, text: &str| json!({ "call_id": id, "output": text });
        let shell = "Process running with session ID 42\nOutput:\n";
        let body = json!({ "input": [
            json!({ "call_id": "a", "name": "spawn_agent" }),
            output("a", r#"{"agent_id":"t-1"}"#),
            output("b", shell),
        ] });
        #[rustfmt::skip]
        let table = [
            (json!({ "targets": ["${a.agent_id}"] }), json!({ "targets": ["t-1"] })),
            (json!("${b.session_id}"),                json!(42)),
            (json!("${c.agent_id}"),                  json!("${c.agent_id}")),
            (json!("plain"),                          json!("plain")),
            (Value::Null,                             Value::Null),
        ];
        for (arguments, want) in table {
            assert_eq!(filled(&arguments, &body), want);
        }
    }
}
