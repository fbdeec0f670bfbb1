//! What is posted, whole.

use bindery_engine::item::{HistoryItem, Message, Role};
use bindery_engine::model::{ModelRequest, Placement, Provider, ToolSpec, Wire};
use bindery_testkit::model::{Model, Script};
use serde_json::{Value, json};

use crate::wires::{ask, provider};

fn tools() -> Vec<ToolSpec> {
    let function = |name: &str| ToolSpec::Function {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    };
    let patch = ToolSpec::Freeform {
        name: "apply_patch".to_owned(),
        description: "Edits files.".to_owned(),
        syntax: "lark".to_owned(),
        definition: "start: \"x\"".to_owned(),
    };
    let docs = ToolSpec::Namespace {
        name: "mcp__docs".to_owned(),
        description: "Docs.".to_owned(),
        tools: vec![function("find")],
    };
    let search = ToolSpec::Hosted(json!({ "type": "web_search", "external_web_access": false }));
    vec![function("exec_command"), patch, docs, search]
}

fn history() -> Vec<HistoryItem> {
    let say = |role, text: &str| HistoryItem::from(Message::text(role, text));
    let item = HistoryItem::from_value;
    vec![
        say(Role::Developer, "Permissions."),
        say(Role::User, "What is in the picture?"),
        item(json!({ "type": "message", "role": "user", "content": [
            { "type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "high" }] })),
        item(json!({ "type": "reasoning", "id": "rs_1", "summary": [
            { "type": "summary_text", "text": "Thinking." }], "encrypted_content": "secret",
            "content": [{ "type": "reasoning_text", "text": "Raw." }] })),
        item(json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "I look.", "annotations": [] }] })),
        item(json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1",
            "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}" })),
        item(json!({ "type": "function_call", "id": "local-7", "call_id": "call_2",
            "namespace": "mcp__docs", "name": "find", "arguments": "{}" })),
        item(json!({ "type": "function_call_output", "id": "fco_1", "call_id": "call_1",
            "output": "a" })),
        item(json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_3",
            "name": "apply_patch", "input": "*** Begin Patch", "status": "completed" })),
        item(json!({ "type": "custom_tool_call_output", "call_id": "call_3", "output": "ok" })),
        item(json!({ "type": "function_call_output", "call_id": "gone", "output": "orphan" })),
        item(json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" })),
        item(json!({ "type": "future_item", "id": "odd", "field": 1 })),
    ]
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "gpt-test".to_owned(),
        base: "Be brief.".to_owned(),
        input: history(),
        tools: tools(),
        parallel_tool_calls: true,
        effort: Some("low".to_owned()),
        summary: Some("auto".to_owned()),
        verbosity: Some("low".to_owned()),
        output_schema: Some(json!({ "type": "object" })),
        thread_id: "thread-1".to_owned(),
        purpose: None,
    }
}

async fn posted(wire: Wire, request: ModelRequest, change: impl FnOnce(&mut Provider)) -> Value {
    let model = Model::start(Script::always("ok"));
    let mut provider = provider(wire, &model);
    change(&mut provider);
    ask(&provider, request).await.ended.expect("an answer");
    model.bodies().remove(0)
}

#[tokio::test]
async fn responses_are_asked_for_as_codex_asks() {
    let body = posted(Wire::Responses, request(), |provider| {
        provider.placement = Placement::Developer;
        provider.service_tier = Some("priority".to_owned());
    });
    insta::assert_json_snapshot!(body.await);
}

#[tokio::test]
async fn a_server_that_knows_less_is_asked_for_less() {
    let body = posted(Wire::Responses, request(), |provider| {
        provider.namespaces = false;
        provider.freeform = false;
        provider.images = false;
    });
    insta::assert_json_snapshot!(body.await);
}

#[tokio::test]
async fn chats_are_asked_for_in_full() {
    let body = posted(Wire::Chat, request(), |_| {});
    insta::assert_json_snapshot!(body.await);
}

#[tokio::test]
async fn a_small_request_is_small() {
    let small = || ModelRequest {
        model: "m".to_owned(),
        input: vec![Message::text(Role::User, "hi").into()],
        ..ModelRequest::default()
    };
    let chat = posted(Wire::Chat, small(), |_| {});
    insta::assert_json_snapshot!([posted(Wire::Responses, small(), |_| {}).await, chat.await]);
}
