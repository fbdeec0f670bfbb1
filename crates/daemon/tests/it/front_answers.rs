//! What of a turn is the answer of an AI SDK call, and what is said on the way to it.

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script, Step};
use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::{Events, Stage};

const STREAM: &str = "/v1/language-model/stream";

fn call(more: Value) -> Value {
    let mut options = more;
    options["prompt"] = json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] }]);
    json!({ "specification": "v3", "modelId": "default", "options": options })
}

fn as_object() -> Value {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } },
        "required": ["a"], "additionalProperties": false });
    json!({ "responseFormat": { "type": "json", "schema": schema } })
}

fn final_answer(text: &str) -> Step {
    Step::Text { text: text.to_owned(), chunk: 2, phase: Some("final_answer".to_owned()) }
}

/// A turn that says something, runs a command, and answers.
fn script(first: Step, answer: Step) -> Script {
    Script::new([
        Reply::new([first, Step::exec("true", "c1")]).when_after_tool(false),
        Reply::new([answer]).when_after_tool(true),
    ])
}

async fn parts(script: Script, request: &Value) -> Vec<Value> {
    let model = Model::start(script);
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let events = Events::of(stage.post(STREAM, request).await).rest().await;
    let parts = events[1..events.len() - 1].iter().map(|event| event.json()).collect();
    stage.end().await;
    parts
}

fn joined(parts: &[Value], kind: &str) -> String {
    let deltas = parts.iter().filter(|part| part["type"] == kind);
    deltas.filter_map(|part| part["delta"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_the_last_message_alone() {
    let object = r#"{"a":1}"#;
    for (first, answer) in [
        (Step::commentary("I'll look."), final_answer(object)),
        (Step::text("I'll look."), Step::text(object)),
    ] {
        let told = parts(script(first.clone(), answer.clone()), &call(as_object())).await;
        assert_eq!(joined(&told, "text-delta"), object, "{told:?}");
        assert_eq!(joined(&told, "reasoning-delta"), "I'll look.");
        let mut whole = call(as_object());
        whole["generate"] = json!(true);
        let told = parts(script(first, answer), &whole).await;
        let content = told[0]["content"].as_array().unwrap();
        let of = |kind: &str| -> Vec<&str> {
            let pieces = content.iter().filter(|piece| piece["type"] == kind);
            pieces.filter_map(|piece| piece["text"].as_str()).collect()
        };
        assert_eq!((of("text"), of("reasoning")), (vec![object], vec!["I'll look."]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_parts_of_their_own_and_never_run_together() {
    let told = parts(script(Step::text("I'll look."), Step::text("Done.")), &call(json!({}))).await;
    assert_eq!(joined(&told, "text-delta"), "I'll look.\n\nDone.");
    let starts = told.iter().filter(|part| part["type"] == "text-start");
    // Each message has its own words, and a part between them sets them off.
    assert_eq!(starts.count(), 3);
    let commentary = script(Step::commentary("I'll look."), final_answer("Done."));
    let told = parts(commentary, &call(json!({}))).await;
    assert_eq!(joined(&told, "text-delta"), "Done.");
    assert_eq!(joined(&told, "reasoning-delta"), "I'll look.");
    let start = told.iter().find(|part| part["type"] == "reasoning-start").unwrap();
    assert_eq!(start["providerMetadata"]["codex"]["phase"], "commentary");
    let start = told.iter().find(|part| part["type"] == "text-start").unwrap();
    assert_eq!(start["providerMetadata"]["codex"]["phase"], "final_answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_costs_no_call() {
    let model = Model::start(Script::always("ok"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let body = call(json!({})).to_string().replace("\"go\"", r#""cut \ud83d""#);
    let request = stage.ask(Method::POST, STREAM).header("content-type", "application/json");
    let events = Events::of(request.body(body).send().await.unwrap()).rest().await;
    let start =
        events.iter().map(|event| event.data.as_str()).find(|data| data.contains("stream-start"));
    assert!(start.unwrap().contains("U+FFFD"), "{start:?}");
    assert!(model.bodies()[0]["input"].to_string().contains("cut \u{fffd}"));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_with_a_name_of_codexs_own_is_refused_by_name() {
    let model = Model::start(Script::always("ok"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let tool = json!({ "type": "function", "name": "exec_command", "inputSchema": {} });
    let declared = call(json!({ "tools": [tool] }));
    let mut set = call(json!({}));
    set["settings"]["tools"] = json!([{ "name": "exec_command", "inputSchema": {} }]);
    for request in [declared, set] {
        let response = stage.post(STREAM, &request).await;
        assert!(response.status().is_client_error(), "{}", response.status());
        let said = response.text().await.unwrap();
        assert!(said.contains("`exec_command`"), "{said}");
    }
    assert_eq!(model.count(), 0);
    stage.end().await;
}
