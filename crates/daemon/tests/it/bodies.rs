//! Every route that takes a body against bodies that it must not take.

use serde_json::{Value, json};

use crate::matrix::{all, filled, raw, sends, stage, things, told};
use crate::stage::{Stage, value};

/// A body with all fields that a route knows.
fn full(route: &str) -> Value {
    let call = json!({ "specification": "v3", "modelId": "m", "generate": true, "settings": {},
        "options": { "prompt": [
            { "role": "user", "content": [{ "type": "text", "text": "hi" }] }] } });
    let thread = json!({ "title": "t", "cwd": ".", "backend": "engine", "settings": {},
        "tools": [{ "type": "function", "name": "f", "inputSchema": {} }], "sessionId": "s" });
    match route {
        "/v1/threads" | "/v1/threads/{thread}/fork" => thread,
        "/v1/threads/{thread}" => json!({ "title": "mine" }),
        "/v1/threads/{thread}/turns" => json!({ "input": "hi", "settings": {}, "tools": [],
            "outputSchema": { "type": "object" } }),
        "/v1/turns/{turn}/steer" => json!({ "input": "hi" }),
        "/v1/threads/{thread}/review" => json!({ "target": { "type": "uncommittedChanges" } }),
        "/v1/interrupts/{token}/answer" => json!({ "kind": "decision", "decision": "accept" }),
        "/v1/language-model/calls/{call}/steer" => json!({ "text": "hi", "input": [] }),
        "/v1/language-model/stream" | "/v1/language-model/prepare" => call,
        "/v1/models" => json!({ "settings": {} }),
        "/v1/threads/{thread}/archive"
        | "/v1/threads/{thread}/unarchive"
        | "/v1/threads/{thread}/compact"
        | "/v1/turns/{turn}/interrupt"
        | "/v1/interrupts/{token}/ask-again"
        | "/v1/language-model/calls/{call}/interrupt" => json!({}),
        other => panic!("{other} takes a body that no test knows"),
    }
}

/// What a body must not be made into, each with what it is.
fn spoilt(full: &Value) -> Vec<(&'static str, String)> {
    let fields = full.as_object().unwrap();
    let values: Vec<&Value> = fields.values().collect();
    let mut all = vec![
        ("a list", json!([]).to_string()),
        ("a list of its values", json!(values).to_string()),
        ("a list of it", json!([full]).to_string()),
        ("a text", "\"text\"".to_owned()),
        ("a number", "7".to_owned()),
        ("a flag", "true".to_owned()),
        ("null", "null".to_owned()),
        ("half of it", "{\"input\":".to_owned()),
    ];
    let with = |name: &str, value: Value| {
        let mut fields = fields.clone();
        fields.insert(name.to_owned(), value);
        Value::Object(fields).to_string()
    };
    all.push(("an unknown key", with("zebra", json!(1))));
    all.push(("a key twice", r#"{"title":"a","title":"a"}"#.to_owned()));
    for (name, value) in fields {
        let wrong = if value.is_boolean() { json!("yes") } else { json!(7) };
        // A schema may be any JSON, which the model's provider judges.
        if name != "outputSchema" {
            all.push(("a wrong type", with(name, wrong)));
        }
        if value.is_object() && name != "outputSchema" {
            let inner: Vec<&Value> = value.as_object().unwrap().values().collect();
            all.push(("a list for an object", with(name, json!([]))));
            all.push(("a list of an object's values", with(name, json!(inner))));
        }
        if value.as_array().is_some_and(|list| !list.is_empty()) {
            all.push(("lists for objects", with(name, json!([["function", "f", {}]]))));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_takes_a_body_that_is_not_the_object_it_knows() {
    let (stage, folder) = stage(|_| ()).await;
    let name = things(&stage, &folder.path().join("home")).await;
    let mut seen = 0;
    let taking = all("x").into_iter().filter(|(method, ..)| sends(method));
    for (method, _, route) in taking.filter(|(.., route)| *route != "/v1/uploads") {
        let path = filled(route, &name);
        for (what, body) in spoilt(&full(route)) {
            let request = stage.ask(method.clone(), &path);
            let request = request.header("content-type", "application/json").body(body.clone());
            let refused = (422, "invalid".to_owned());
            assert_eq!(told(request).await, refused, "{method} {route}: {what}: {body}");
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
    stage.end().await;
}

/// The problem with settings of a new thread, and with the same of a turn.
async fn told_of_settings(stage: &Stage, thread: &str, settings: Value) -> [String; 2] {
    let turns = format!("/v1/threads/{thread}/turns");
    let turn = json!({ "input": "hi", "settings": settings });
    let mut told = Vec::new();
    for (path, body) in [("/v1/threads", json!({ "settings": settings })), (&*turns, turn)] {
        let response = stage.post(path, &body).await;
        assert_eq!(response.status(), 422, "{path} {body}");
        told.push(value(response).await["detail"].as_str().unwrap().to_owned());
    }
    told.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_would_be_passed_over_or_fail_late_are_named_at_once() {
    let (stage, folder) = stage(|_| ()).await;
    let name = things(&stage, &folder.path().join("home")).await;
    for (settings, named) in [
        (json!({ "cwd": "." }), "settings.cwd"),
        (json!({ "threadId": "s" }), "settings.threadId"),
        (json!({ "fork": true }), "settings.fork"),
        (json!({ "approvalPolicy": { "granular": {} } }), "`sandbox_approval`, `rules`"),
        (json!({ "approvalPolicy": {} }), "granular"),
        (json!({ "model": null }), "settings.model"),
    ] {
        for told in told_of_settings(&stage, &name("thread"), settings.clone()).await {
            assert!(told.contains(named), "{settings}: {told}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_is_bounded_however_its_pieces_come() {
    let (stage, _folder) = stage(|_| ()).await;
    let host = stage.url.trim_start_matches("http://").to_owned();
    let ask = |bytes: usize, headers: usize| {
        let value = "y".repeat(bytes / headers);
        let fields: String = (0..headers).map(|n| format!("x-{n:02}: {value}\r\n")).collect();
        format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{fields}\r\n")
    };
    for headers in [1, 10, 90] {
        let fine = ask(60 << 10, headers);
        assert!(raw(&stage, fine.as_bytes()).await.starts_with("HTTP/1.1 200"), "{headers}");
        for bytes in [66 << 10, 80 << 10, 100 << 10, 130 << 10] {
            let answer = raw(&stage, ask(bytes, headers).as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 431"), "{bytes} {headers}: {answer}");
        }
    }
    let long = format!("GET /healthz?{} HTTP/1.1\r\nhost: {host}\r\n\r\n", "x".repeat(70 << 10));
    let answer = raw(&stage, long.as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    stage.end().await;
}
