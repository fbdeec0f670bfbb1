//! The AI SDK's calls, with a real Codex.

use std::time::Duration;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::stage::{Events, HANG, Stage, on, value};

fn call(text: &str) -> Value {
    json!({
        "specification": "v3",
        "modelId": "default",
        "options": {
            "prompt": [{ "role": "user", "content": [{ "type": "text", "text": text }] }],
        },
    })
}

const STREAM: &str = "/v1/language-model/stream";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_streamed_part_by_part() {
    let model = Model::start(Script::always("hello there"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let events = Events::of(stage.post(STREAM, &call("hi")).await).rest().await;
    assert_eq!(events[0].name, "session");
    assert_eq!(events[0].json()["backend"], "codex");
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let parts: Vec<Value> = events[1..events.len() - 1].iter().map(|event| event.json()).collect();
    let of = |kind: &str| parts.iter().filter(|part| part["type"] == kind).collect::<Vec<_>>();
    let text: String = of("text-delta").iter().filter_map(|part| part["delta"].as_str()).collect();
    assert_eq!(text, "hello there");
    assert_eq!(of("finish").len(), 1);
    let models: Value = value(stage.get("/v1/models").await).await;
    assert_eq!(models["backend"], "codex");
    assert!(models["models"].as_array().is_some_and(|models| !models.is_empty()));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_gathered_on_request() {
    let model = Model::start(Script::always("all at once"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    assert_eq!(stage.post("/v1/language-model/prepare", &call("hi")).await.status(), 204);
    let mut request = call("hi");
    request["generate"] = json!(true);
    let mut events = Events::of(stage.post(STREAM, &request).await);
    let generated = events.until("generated").await.json();
    assert_eq!(generated["content"][0]["text"], "all at once", "{generated}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_begun_before_the_model_says_anything() {
    for (generate, at_once) in [(false, false), (false, true), (true, false), (true, true)] {
        let script = Script::new([Reply::new([Step::gate("speak"), Step::text("now")])]);
        let model = Model::start(script);
        let codex = RealCodex::with(&model, &Options::unrestricted());
        let stage = Stage::own(&codex).await;
        let mut request = call("hi");
        request["generate"] = json!(generate);
        request["settings"] = json!({ "sessionAtOnce": at_once });
        let mut events = Events::of(stage.post(STREAM, &request).await);
        assert_eq!(events.next().await.unwrap().name, "session");
        model.open("speak");
        assert_eq!(events.rest().await.last().unwrap().data, "[DONE]");
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_the_settings_is_answered_while_the_stream_is_open() {
    let script = Script::new([
        Reply::new([Step::call("add", json!({ "a": 1 }), "c1")]).when_after_tool(false),
        Reply::text("done").when_after_tool(true),
    ]);
    let model = Model::start(script);
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let mut request = call("add");
    let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } } });
    request["settings"]["tools"] =
        json!([{ "name": "add", "description": "adds", "inputSchema": schema }]);
    let mut events = Events::of(stage.post(STREAM, &request).await);
    let asked = events.until("interrupt").await.json();
    assert_eq!(asked["kind"], "toolCall");
    let path = format!("/v1/interrupts/{}/answer", asked["id"].as_str().unwrap());
    let content = json!([{ "type": "inputText", "text": "2" }]);
    let answer = json!({ "kind": "toolResult", "content": content, "success": true });
    assert_eq!(stage.post(&path, &answer).await.status(), 204);
    assert_eq!(stage.post(&path, &answer).await.status(), 409);
    let rest = events.rest().await;
    assert!(rest.iter().all(|event| event.name != "withdrawn"), "{rest:?}");
    assert_eq!(rest.last().unwrap().data, "[DONE]");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_stream_stops_its_turn() {
    let script = Script::new([Reply::new([Step::begin("on and on"), Step::gate("never")])]);
    let model = Model::start(script);
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let mut events = Events::of(stage.post(STREAM, &call("hi")).await);
    events.until("").await;
    let front = stage.app.fronts.known(&tenant(&stage).await).unwrap();
    assert_eq!(front.stats().turns, 1);
    drop(events);
    let wait = async {
        while front.stats().turns > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(HANG, wait).await.expect("the turn goes on");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_shared_server_is_held_to_the_tenants_root() {
    let model = Model::start(Script::always("no"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::with(on(codex.program(), codex.home()), codex.project()).await;
    let code = async |change: Value| {
        let mut request = call("hi");
        let (place, put) = (change["at"].as_str().unwrap(), change["value"].clone());
        *request.pointer_mut(place).unwrap() = put;
        let response = stage.post(STREAM, &request).await;
        let status = response.status().as_u16();
        (status, value(response).await["code"].as_str().unwrap().to_owned())
    };
    let options = |codex: Value| {
        json!({ "at": "/options", "value": {
        "prompt": [], "providerOptions": codex } })
    };
    let outside = json!({ "codex": { "cwd": "/" } });
    assert_eq!(code(options(outside.clone())).await, (422, "invalid".to_owned()));
    let alias = json!({ "bindery": { "cwd": "/" } });
    assert_eq!(code(options(alias)).await, (422, "invalid".to_owned()));
    let image = json!([{ "role": "user", "content": [
        { "type": "file", "data": "file:///etc/hostname", "mediaType": "image/png" }] }]);
    let image = json!({ "at": "/options/prompt", "value": image });
    assert_eq!(code(image).await, (422, "invalid".to_owned()));
    let mut request = call("hi");
    request["settings"] = json!({ "codexHome": "/tmp" });
    assert_eq!(stage.post(STREAM, &request).await.status(), 403);
    request["settings"] = json!({ "env": { "PATH": "/tmp" } });
    assert_eq!(stage.post(STREAM, &request).await.status(), 403);
    // A tenant must not make the daemon speak to whom it likes.
    request["settings"] = json!({ "appServer": { "url": "ws://127.0.0.1:9" } });
    assert_eq!(stage.post(STREAM, &request).await.status(), 403);
    let models = json!({ "settings": request["settings"] });
    assert_eq!(stage.post("/v1/models", &models).await.status(), 403);
    stage.end().await;
}

async fn tenant(stage: &Stage) -> bindery_daemon::tenant::Tenant {
    stage.app.tenants.find("default").await.unwrap()
}

/// A server that is shared, whose first tenant may not override anything, and a folder beside.
async fn shared(codex: &RealCodex) -> Stage {
    let stage = Stage::with(on(codex.program(), codex.home()), codex.project()).await;
    let mut tenant = stage.app.tenants.find("default").await.unwrap();
    tenant.settings.policy = bindery_daemon::tenant::Policy::default();
    stage.app.tenants.set(&tenant).await.unwrap();
    stage
}

fn call_in(cwd: &str) -> Value {
    let mut request = call("hi");
    let codex = json!({ "cwd": cwd, "sandbox": "workspace-write" });
    request["options"]["providerOptions"] = json!({ "codex": codex });
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_starts_no_server_that_its_project_declares() {
    let model = Model::start(Script::always("ok"));
    let codex = RealCodex::with(&model, &Options::default());
    let (project, ran) = (codex.project(), codex.user_home().join("ran"));
    std::fs::create_dir_all(project.join(".codex")).unwrap();
    let script = format!("touch {}; exec cat", ran.display());
    let server = format!("[mcp_servers.c]\ncommand = '/bin/sh'\nargs = ['-c', '{script}']\n");
    std::fs::write(project.join(".codex/config.toml"), server).unwrap();
    let stage = shared(&codex).await;
    assert_eq!(stage.post("/v1/language-model/prepare", &call_in("src")).await.status(), 204);
    for cwd in ["src", "."] {
        let events = Events::of(stage.post(STREAM, &call_in(cwd)).await).rest().await;
        assert_eq!(events.last().unwrap().data, "[DONE]");
        assert!(!ran.exists(), "the project's server was started in {cwd}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_stopped_when_its_folder_is_replaced() {
    let script = Script::new([Reply::new([
        Step::begin("one"),
        Step::gate("swap"),
        Step::text("two"),
        Step::begin("three"),
        Step::gate("never"),
    ])]);
    let model = Model::start(script);
    let codex = RealCodex::with(&model, &Options::default());
    let stage = shared(&codex).await;
    let mut events = Events::of(stage.post(STREAM, &call_in("src")).await);
    events.until("session").await;
    tokio::time::timeout(HANG, model.wait_for_gate("swap", 1)).await.unwrap();
    let folder = codex.project().join("src");
    std::fs::rename(&folder, codex.project().join("kept")).unwrap();
    std::os::unix::fs::symlink(codex.user_home(), &folder).unwrap();
    model.open("swap");
    let rest = events.rest().await;
    let told = rest.iter().any(|event| event.data.contains("folder_moved"));
    assert!(told, "{rest:#?}");
    let response = stage.post(STREAM, &call_in("src")).await;
    assert_eq!(response.status(), 422);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelled_guard_is_refused_before_the_model_is_asked() {
    let model = Model::start(Script::always("never said"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::own(&codex).await;
    let thread = |thread: Value| json!({ "settings": { "thread": thread } });
    let options = |own: Value| json!({ "options": { "providerOptions": { "codex": own } } });
    for (given, place) in [
        (thread(json!({ "sandbox": "readonly" })), "settings.thread.sandbox"),
        (thread(json!({ "sandboxMode": "read-only" })), "settings.thread.sandboxMode"),
        (options(json!({ "sandbox": "readOnly" })), "providerOptions.codex.sandbox"),
        (options(json!({ "approvalPolicy": "ask" })), "providerOptions.codex.approvalPolicy"),
        (json!({ "options": { "sandbox": "read-only" } }), "options.sandbox"),
        (json!({ "settings": { "sandbox": "read-only" } }), "sandbox"),
        (json!({ "sandbox": "read-only" }), "sandbox"),
    ] {
        let mut request = call("write something");
        for (name, value) in given.as_object().unwrap() {
            match request[name].as_object_mut() {
                Some(known) => known.extend(value.as_object().unwrap().clone()),
                None => request[name] = value.clone(),
            }
        }
        for route in [STREAM, "/v1/language-model/prepare"] {
            let response = stage.post(route, &request).await;
            assert!(response.status().is_client_error(), "{given}: {}", response.status());
            let body = response.text().await.unwrap();
            assert!(body.contains(place), "{given}: {body}");
        }
    }
    assert_eq!(model.requests().len(), 0);
    stage.end().await;
}
