//! Items as files keep them (`CommandExecution`, `aggregated_output`), as clients know them.

use serde_json::{Map, Value, json};

use crate::write::shown::camel;

/// The item of the app-server protocol for one of a file.
pub fn shown(item: &Value) -> Value {
    let kind = camel(item["type"].as_str().unwrap_or_default());
    let mut fields = Map::from_iter([("type".to_owned(), Value::from(kind.as_str()))]);
    for (key, value) in item.as_object().into_iter().flatten().filter(|(key, _)| *key != "type") {
        fields.insert(camel(key), value.clone());
    }
    match kind.as_str() {
        "userMessage" => user(&mut fields),
        "agentMessage" => {
            let parts = fields.remove("content").unwrap_or_default();
            let parts = parts.as_array().into_iter().flatten();
            let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
            fields.insert("text".to_owned(), Value::from(text));
            fields.entry("phase").or_insert(Value::Null);
        }
        "reasoning" => {
            for (from, to) in [("summaryText", "summary"), ("rawContent", "content")] {
                let value = fields.remove(from).unwrap_or_else(|| json!([]));
                fields.insert(to.to_owned(), value);
            }
        }
        "commandExecution" => command(&mut fields),
        "fileChange" => changes(&mut fields),
        "mcpToolCall" | "dynamicToolCall" | "collabAgentToolCall" => call(&mut fields),
        "webSearch" => {
            if let Some(action) = fields.get_mut("action") {
                *action = camel_keys(action);
            }
        }
        "imageView" => path(&mut fields, "path"),
        "enteredReviewMode" => {
            fields.remove("target");
            renamed(&mut fields, "userFacingHint", "review");
        }
        "exitedReviewMode" => {
            let output = fields.remove("reviewOutput").unwrap_or_default();
            fields.insert("review".to_owned(), Value::from(review(&output)));
        }
        _ => {}
    }
    Value::Object(fields)
}

fn renamed(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// Keys and the values of `type` as the protocol spells them.
fn camel_keys(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(camel_keys).collect(),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| match (key.as_str(), value) {
                ("type", Value::String(kind)) => (key.clone(), Value::from(camel(kind))),
                // The protocol spells this one as files do.
                ("text_elements", value) => (key.clone(), camel_keys(value)),
                _ => (camel(key), camel_keys(value)),
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn user(fields: &mut Map<String, Value>) {
    let content = fields.remove("content").unwrap_or_else(|| json!([]));
    let mut content = camel_keys(&content);
    for part in content.as_array_mut().into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            renamed(part, "imageUrl", "url");
        }
    }
    fields.insert("content".to_owned(), content);
    fields.entry("clientId").or_insert(Value::Null);
}

fn command(fields: &mut Map<String, Value>) {
    let argv = fields.remove("command").unwrap_or_default();
    let argv = argv.as_array().into_iter().flatten().filter_map(Value::as_str);
    // Words with NULs cannot be quoted, nor run.
    let text = shlex::try_join(argv.clone()).unwrap_or_else(|_| argv.collect::<Vec<_>>().join(" "));
    fields.insert("command".to_owned(), Value::from(text));
    path(fields, "cwd");
    let actions = fields.remove("parsedCmd").unwrap_or_else(|| json!([]));
    let mut actions = camel_keys(&actions);
    let cwd = fields.get("cwd").and_then(Value::as_str).unwrap_or_default().to_owned();
    for action in actions.as_array_mut().into_iter().flatten() {
        let Some(action) = action.as_object_mut() else { continue };
        renamed(action, "cmd", "command");
        if action.get("type").is_some_and(|kind| kind == "read")
            && let Some(path) = action.get("path").and_then(Value::as_str)
        {
            let whole = std::path::Path::new(&cwd).join(path);
            action.insert("path".to_owned(), json!(whole));
        }
    }
    fields.insert("commandActions".to_owned(), actions);
    word(fields, "source");
    call(fields);
    if fields.get("aggregatedOutput").is_some_and(|output| output == "") {
        fields.remove("aggregatedOutput");
    }
    for key in ["aggregatedOutput", "exitCode", "durationMs", "processId"] {
        fields.entry(key).or_insert(Value::Null);
    }
}

fn changes(fields: &mut Map<String, Value>) {
    let by_path = fields.remove("changes").unwrap_or_default();
    let listed = by_path.as_object().into_iter().flatten().map(|(path, change)| {
        let kind = change["type"].as_str().unwrap_or("update");
        match kind {
            "add" | "delete" => {
                json!({ "path": path, "kind": { "type": kind }, "diff": change["content"] })
            }
            _ => json!({
                "path": path,
                "kind": { "type": "update", "move_path": change["move_path"] },
                "diff": change["unified_diff"],
            }),
        }
    });
    let listed: Vec<Value> = listed.collect();
    fields.insert("changes".to_owned(), Value::from(listed));
    for inner in ["stdout", "stderr", "autoApproved"] {
        fields.remove(inner);
    }
    word(fields, "status");
}

fn call(fields: &mut Map<String, Value>) {
    word(fields, "status");
    if fields.get("type").is_some_and(|kind| kind == "collabAgentToolCall") {
        word(fields, "tool");
        fields.remove("receiverAgents");
        states(fields);
    }
    // The protocol tells this by the status.
    if let Some(result) = fields.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("isError");
    }
    if let Some(duration) = fields.remove("duration") {
        let seconds = duration["secs"].as_u64().unwrap_or(0);
        let nanos = duration["nanos"].as_u64().unwrap_or(0);
        fields.insert("durationMs".to_owned(), json!(seconds * 1_000 + nanos / 1_000_000));
    }
}

fn states(fields: &mut Map<String, Value>) {
    let states = fields.remove("agentsStates").unwrap_or_default();
    let states = states.as_object().into_iter().flatten().map(|(id, state)| {
        let (status, message) = match state {
            Value::String(status) => (status.as_str(), Value::Null),
            Value::Object(map) => match map.iter().next() {
                Some((status, message)) => (status.as_str(), message.clone()),
                None => ("", Value::Null),
            },
            _ => ("", Value::Null),
        };
        (id.clone(), json!({ "status": camel(status), "message": message }))
    });
    let states = Value::Object(states.collect());
    fields.insert("agentsStates".to_owned(), states);
}

fn word(fields: &mut Map<String, Value>, key: &str) {
    if let Some(word) = fields.get(key).and_then(Value::as_str).map(camel) {
        fields.insert(key.to_owned(), Value::from(word));
    }
}

fn path(fields: &mut Map<String, Value>, key: &str) {
    if let Some(uri) = fields.get(key).and_then(Value::as_str) {
        let path = path_of(uri);
        fields.insert(key.to_owned(), Value::from(path));
    }
}

/// A path from `file://…`; what is no such URI stays as it is.
fn path_of(uri: &str) -> String {
    let Some(encoded) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A review in words.
fn review(output: &Value) -> String {
    let said = output["overall_explanation"].as_str().unwrap_or_default().trim();
    let findings = output["findings"].as_array().into_iter().flatten();
    let findings: Vec<String> = findings
        .map(|finding| {
            let place = &finding["code_location"];
            let file = place["absolute_file_path"].as_str().unwrap_or_default();
            let range = &place["line_range"];
            let title = finding["title"].as_str().unwrap_or_default();
            let body = finding["body"].as_str().unwrap_or_default().replace('\n', "\n  ");
            format!("- {title} — {file}:{}-{}\n  {body}", range["start"], range["end"])
        })
        .collect();
    let heading = match findings.len() {
        0 => return said.to_owned(),
        1 => "Review comment:",
        _ => "Full review comments:",
    };
    let listed = format!("{heading}\n\n{}", findings.join("\n\n"));
    if said.is_empty() { listed } else { format!("{said}\n\n{listed}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_uris() {
        assert_eq!(path_of("file:///a%20b/%C3%BC%25.txt"), "/a b/ü%.txt");
        assert_eq!(path_of("/plain%20"), "/plain%20");
        assert_eq!(path_of("file:///cut%2"), "/cut%2");
    }
}
