//! The schemas that are written by hand against the types they are of: each variant there is has
//! its schema, and fits it.

use std::path::Path;

use bindery_core::call::Tool;
use bindery_core::interrupt::{Answer, Ask};
use bindery_core::part::{Part, Warning};
use bindery_daemon::http::openapi;
use bindery_testkit::api_tools::{Python, run};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads JSON as a type of ours, and writes it again as that type does.
fn written<T: DeserializeOwned + Serialize>(values: &[Value]) -> Vec<(T, Value)> {
    let read = |value: &Value| {
        let typed: T =
            serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
        let again = serde_json::to_value(&typed).unwrap();
        (typed, again)
    };
    values.iter().map(read).collect()
}

/// The schema of a part. A new variant does not compile before it has one.
fn part_schema(part: &Part) -> &'static str {
    match part {
        Part::StreamStart { .. } => "StreamStartPart",
        Part::ResponseMetadata { .. } => "ResponseMetadataPart",
        Part::TextStart(_) => "TextStartPart",
        Part::TextDelta(_) => "TextDeltaPart",
        Part::TextEnd { .. } => "TextEndPart",
        Part::ReasoningStart(_) => "ReasoningStartPart",
        Part::ReasoningDelta(_) => "ReasoningDeltaPart",
        Part::ReasoningEnd(_) => "ReasoningEndPart",
        Part::ToolInputStart(_) => "ToolInputStartPart",
        Part::ToolInputDelta(_) => "ToolInputDeltaPart",
        Part::ToolInputEnd(_) => "ToolInputEndPart",
        Part::ToolCall(_) => "ToolCallPart",
        Part::ToolResult(_) => "ToolResultPart",
        Part::ToolApprovalRequest { .. } => "ToolApprovalRequestPart",
        Part::File { .. } => "FileOutputPart",
        Part::ReasoningFile { .. } => "ReasoningFilePart",
        Part::Source(_) => "SourcePart",
        Part::Custom { .. } => "CustomPart",
        Part::Finish { .. } => "FinishPart",
        Part::Raw { .. } => "RawPart",
        Part::Error { .. } => "ErrorPart",
        Part::Ping => "PingPart",
    }
}

#[rustfmt::skip]
fn parts() -> Vec<Value> {
    let metadata = json!({ "codex": { "itemId": "i" } });
    let usage = json!({ "inputTokens": { "total": 3, "noCache": 1, "cacheRead": 2, "cacheWrite": 0 },
        "outputTokens": { "total": 2, "text": 1, "reasoning": 1 }, "raw": { "x": 1 } });
    vec![
        json!({ "type": "stream-start", "warnings": [] }),
        json!({ "type": "response-metadata", "id": "r", "timestamp": "2026-01-01T00:00:00Z", "modelId": "m" }),
        json!({ "type": "text-start", "id": "1", "providerMetadata": metadata }),
        json!({ "type": "text-delta", "id": "1", "delta": "a" }),
        json!({ "type": "text-end", "id": "1", "citations": [] }),
        json!({ "type": "reasoning-start", "id": "1" }),
        json!({ "type": "reasoning-delta", "id": "1", "delta": "a" }),
        json!({ "type": "reasoning-end", "id": "1" }),
        json!({ "type": "tool-input-start", "id": "c", "toolName": "t", "inputEncoding": "text",
            "providerExecuted": true, "dynamic": true, "title": "T" }),
        json!({ "type": "tool-input-delta", "id": "c", "delta": "{" }),
        json!({ "type": "tool-input-end", "id": "c" }),
        json!({ "type": "tool-call", "toolCallId": "c", "toolName": "t", "input": "{}", "dynamic": true }),
        json!({ "type": "tool-result", "toolCallId": "c", "toolName": "t", "result": [1], "isError": true }),
        json!({ "type": "tool-approval-request", "approvalId": "a", "toolCallId": "c" }),
        json!({ "type": "file", "mediaType": "image/png", "data": { "type": "data", "data": "AA==" } }),
        json!({ "type": "file", "mediaType": "image/png", "data": { "type": "url", "url": "http://x" } }),
        json!({ "type": "file", "mediaType": "a/b", "data": { "type": "reference", "reference": { "id": 1 } } }),
        json!({ "type": "reasoning-file", "mediaType": "text/plain", "data": { "type": "text", "text": "x" } }),
        json!({ "type": "source", "sourceType": "url", "id": "s", "url": "http://x", "title": "X" }),
        json!({ "type": "source", "sourceType": "document", "id": "s", "mediaType": "a/b", "title": "X" }),
        json!({ "type": "custom", "kind": "codex.diff", "providerMetadata": metadata }),
        json!({ "type": "finish", "usage": usage, "finishReason": { "unified": "tool-calls", "raw": "x" } }),
        json!({ "type": "finish", "usage": { "inputTokens": {}, "outputTokens": {} },
            "finishReason": { "unified": "interrupted" } }),
        json!({ "type": "raw", "rawValue": null }),
        json!({ "type": "error", "error": { "message": "m" } }),
        json!({ "type": "ping" }),
    ]
}

fn ask_schema(ask: &Ask) -> &'static str {
    match ask {
        Ask::Command { .. } => "CommandAsk",
        Ask::FileChange { .. } => "FileChangeAsk",
        Ask::Permissions { .. } => "PermissionsAsk",
        Ask::UserInput { .. } => "UserInputAsk",
        Ask::Elicitation { .. } => "ElicitationAsk",
        Ask::ToolCall { .. } => "ToolCallAsk",
    }
}

#[rustfmt::skip]
fn asks() -> Vec<Value> {
    let kinds = [json!({ "type": "add" }), json!({ "type": "update", "move_path": "b" })];
    let changes: Vec<Value> = kinds.iter().map(|kind| json!({ "path": "a", "kind": kind, "diff": "" })).collect();
    vec![
        json!({ "kind": "command", "command": "ls", "cwd": "/", "reason": null, "intoRunning": false,
            "personRequired": true, "rule": ["ls"], "network": null, "networkRules": [{ "host": "x" }] }),
        json!({ "kind": "fileChange", "changes": changes, "reason": "r", "grantRoot": "/" }),
        json!({ "kind": "permissions", "permissions": {}, "reason": null, "cwd": "/" }),
        json!({ "kind": "userInput", "questions": [{ "id": "q" }] }),
        json!({ "kind": "elicitation", "server": "s", "message": "m", "mode": "form", "schema": {},
            "toolParams": null, "persist": ["session"] }),
        json!({ "kind": "toolCall", "tool": "t", "namespace": null, "arguments": { "a": 1 } }),
    ]
}

fn answer_schema(answer: &Answer) -> &'static str {
    match answer {
        Answer::Decision { .. } => "DecisionAnswer",
        Answer::Permissions { .. } => "PermissionsAnswer",
        Answer::UserInput { .. } => "UserInputAnswer",
        Answer::Elicitation { .. } => "ElicitationAnswer",
        Answer::ToolResult { .. } => "ToolResultAnswer",
    }
}

#[rustfmt::skip]
fn answers() -> Vec<Value> {
    let words = ["accept", "acceptForSession", "decline", "cancel"].map(|word| json!(word));
    let rules = [json!({ "acceptWithRule": ["ls"] }), json!({ "applyNetworkRule": { "host": "x" } })];
    let decisions = words.into_iter().chain(rules);
    let mut all: Vec<Value> = decisions.map(|one| json!({ "kind": "decision", "decision": one })).collect();
    all.extend([
        json!({ "kind": "permissions", "granted": {}, "forSession": true }),
        json!({ "kind": "userInput", "answers": { "q": ["a"] } }),
        json!({ "kind": "elicitation", "action": "accept", "content": { "a": 1 } }),
        json!({ "kind": "elicitation", "action": "cancel", "content": null }),
        json!({ "kind": "toolResult", "success": true, "content": [
            { "type": "inputText", "text": "t" }, { "type": "inputImage", "imageUrl": "data:," }] }),
    ]);
    all
}

fn warnings() -> Vec<Value> {
    vec![
        json!({ "type": "unsupported", "feature": "f", "details": "d" }),
        json!({ "type": "compatibility", "feature": "f" }),
        json!({ "type": "deprecated", "setting": "s", "message": "m" }),
        json!({ "type": "other", "message": "m" }),
    ]
}

fn cases() -> Vec<Value> {
    let mut cases = Vec::new();
    let mut add = |union: &str, one: &str, value: Value| {
        cases.push(json!({ "schema": union, "value": value }));
        cases.push(json!({ "schema": one, "value": value }));
    };
    for (part, json) in written::<Part>(&parts()) {
        add("Part", part_schema(&part), json);
    }
    for (ask, json) in written::<Ask>(&asks()) {
        add("Ask", ask_schema(&ask), json);
    }
    for (answer, json) in written::<Answer>(&answers()) {
        add("Answer", answer_schema(&answer), json);
    }
    for (_, json) in written::<Warning>(&warnings()) {
        add("Warning", "Warning", json);
    }
    let tool = json!({ "type": "function", "name": "t", "inputSchema": { "type": "object" },
        "description": "d", "strict": true, "inputExamples": [{}], "providerOptions": {} });
    for (_, json) in written::<Tool>(&[tool]) {
        add("Tool", "Tool", json);
    }
    cases
}

#[test]
fn every_variant_fits_its_schema() {
    let Some(python) = Python::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (document, file) = (folder.path().join("openapi.json"), folder.path().join("cases.json"));
    let cases = cases();
    std::fs::write(&document, openapi::document().to_string()).unwrap();
    std::fs::write(&file, json!(cases).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/conformance.py");
    let (said, _) = run(python.command(folder.path()).arg(script).arg(document).arg(file));
    let seen: Vec<String> = serde_json::from_str(&said).unwrap();
    // Each kind of part that the document knows was tried.
    let described = openapi::document()["components"]["schemas"]["Part"]["oneOf"].clone();
    for one in described.as_array().unwrap() {
        let name = one["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        assert!(seen.iter().any(|seen| seen == name), "{name} is a schema of no part");
    }
}
