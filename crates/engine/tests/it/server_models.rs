//! What servers say that they offer, each in its own words and places.

use std::time::Duration;

use bindery_engine::model::{Provider, Wire};
use bindery_engine::server_models::{Detail, ListError, ListFault, ServerModel, ServerModels};
use bindery_testkit::model::Model;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::wires::LIMIT;

fn served(pages: &[(&str, Value)]) -> Model {
    let model = Model::start(vec![]);
    for (path, body) in pages {
        model.serve_page(path, 200, body.clone());
    }
    model
}

fn provider(model: &Model) -> Provider {
    Provider { key: Some("sk-secret".to_owned()), ..Provider::new(Wire::Chat, model.base_url()) }
}

async fn list(provider: &Provider, detail: Detail) -> Result<ServerModels, ListError> {
    bindery_engine::server_models::list_models(provider, detail, LIMIT).await
}

async fn everything(model: &Model) -> Vec<ServerModel> {
    let found = list(&provider(model), Detail::Everything).await.unwrap();
    assert_eq!(found.notes, Vec::<String>::new());
    found.models
}

fn row(id: &str, owner: &str) -> Value {
    json!({ "id": id, "object": "model", "owned_by": owner })
}

fn named(id: &str) -> ServerModel {
    ServerModel { id: id.to_owned(), ..ServerModel::default() }
}

fn paths(model: &Model) -> Vec<String> {
    model.visits().into_iter().map(|visit| visit.path).collect()
}

#[tokio::test]
async fn ollama_tells_what_is_set_what_is_loaded_and_what_could_be() {
    let model = served(&[
        ("/v1/models", json!({ "data": [row("small", "library"), row("big", "library")] })),
        ("/api/ps", json!({ "models": [{ "name": "big", "context_length": 16384 }] })),
        (
            "/api/show",
            json!({
                "parameters": "num_ctx 8192",
                "model_info": { "qwen3.context_length": 40960 },
                "capabilities": ["completion", "tools"],
            }),
        ),
    ]);
    let both = ServerModel {
        context_window: Some(8192),
        max_context_window: Some(40960),
        images: Some(false),
        tools: Some(true),
        chat: Some(true),
        ..named("small")
    };
    let big = ServerModel {
        id: "big".to_owned(),
        context_window: Some(16384),
        loaded: Some(true),
        ..both.clone()
    };
    assert_eq!(everything(&model).await, [both, big]);
    let asked = model.visits().into_iter().filter(|visit| visit.path == "/api/show");
    let mut asked: Vec<Value> = asked.map(|visit| visit.body).collect();
    asked.sort_by_key(Value::to_string);
    assert_eq!(asked, [json!({ "model": "big" }), json!({ "model": "small" })]);
}

#[tokio::test]
async fn an_ollama_without_the_common_list_tells_its_own() {
    let model = served(&[
        ("/api/tags", json!({ "models": [{ "name": "small", "model": "small" }] })),
        ("/api/ps", json!({ "models": [] })),
        ("/api/show", json!({ "model_info": { "llama.context_length": 8192 } })),
    ]);
    model.serve_page("/v1/models", 404, json!("404 page not found"));
    let want = ServerModel { max_context_window: Some(8192), ..named("small") };
    assert_eq!(everything(&model).await, [want]);
}

#[tokio::test]
async fn lm_studio_tells_more_in_its_own_list() {
    let model = served(&[
        ("/v1/models", json!({ "data": [row("m", "organization_owner")] })),
        (
            "/api/v0/models",
            json!({ "data": [{
                "id": "m", "type": "vlm", "state": "loaded", "max_context_length": 131_072,
                "loaded_context_length": 4096,
            }] }),
        ),
    ]);
    let want = ServerModel {
        context_window: Some(4096),
        max_context_window: Some(131_072),
        images: Some(true),
        chat: Some(true),
        loaded: Some(true),
        ..named("m")
    };
    assert_eq!(everything(&model).await, [want]);
    assert_eq!(paths(&model), ["/v1/models", "/api/v0/models"]);
}

#[tokio::test]
async fn servers_of_one_model_tell_its_window_beside_the_list() {
    let props = json!({ "default_generation_settings": { "n_ctx": 4096 } });
    let info = json!({ "model_id": "m", "max_total_tokens": 2048 });
    for (owner, path, body, window) in
        [("llamacpp", "/props", props, 4096), ("meta", "/info", info, 2048)]
    {
        let model = served(&[("/v1/models", json!({ "data": [row("m", owner)] })), (path, body)]);
        let want = ServerModel { context_window: Some(window), ..named("m") };
        assert_eq!(everything(&model).await, [want], "{owner}");
    }
}

#[tokio::test]
async fn nothing_more_is_asked_than_is_wanted_or_missing() {
    let vllm = json!({ "data": [{ "id": "m", "owned_by": "vllm", "max_model_len": 32768 }] });
    let model = served(&[("/v1/models", vllm)]);
    let want = ServerModel { context_window: Some(32768), ..named("m") };
    assert_eq!(everything(&model).await, [want]);
    let plain = served(&[("/v1/models", json!({ "data": [row("m", "x"), row("m", "x")] }))]);
    let found = list(&provider(&plain), Detail::List).await.unwrap();
    assert_eq!(found.models, [named("m")]);
    assert_eq!(
        (paths(&model), paths(&plain)),
        (vec!["/v1/models".into()], vec!["/v1/models".into()])
    );
}

#[tokio::test]
async fn the_settings_of_the_provider_go_along() {
    let model = served(&[]);
    let mut provider = provider(&model);
    provider.headers = vec![("x-team".to_owned(), "almanac".to_owned())];
    provider.query = vec![("api-version".to_owned(), "preview".to_owned())];
    list(&provider, Detail::List).await.unwrap();
    let visit = model.visits().remove(0);
    assert_eq!(visit.path, "/v1/models?api-version=preview");
    assert_eq!(visit.headers["authorization"], "Bearer sk-secret");
    assert_eq!(visit.headers["x-team"], "almanac");
}

#[tokio::test]
async fn what_goes_wrong_is_told_by_what_one_does_about_it_and_without_secrets() {
    let model = served(&[]);
    model.serve_page("/api/v0/models", 404, json!("no"));
    let said = |words: &str| json!({ "error": { "message": words } });
    for (status, body, fault) in [
        (401, said("wrong key sk-secret"), ListFault::Unauthorized),
        (403, json!("no"), ListFault::Unauthorized),
        (404, said("nothing here"), ListFault::NotServed),
        (500, json!("<html>sk-secret"), ListFault::Refused),
        (302, json!(""), ListFault::Refused),
        (200, json!("a page"), ListFault::Garbage),
        (200, json!({ "object": "error" }), ListFault::Garbage),
    ] {
        model.serve_page("/v1/models", status, body);
        let error = list(&provider(&model), Detail::Everything).await.unwrap_err();
        assert_eq!(error.fault, fault, "{error}");
        assert!(!error.message.contains("sk-secret"), "{error}");
        assert!(error.message.contains("/v1/models"), "{error}");
    }
    for address in ["", "localhost:1/v1", "ftp://localhost"] {
        let wrong = Provider::new(Wire::Chat, address);
        let error = list(&wrong, Detail::List).await.unwrap_err();
        assert_eq!(error.fault, ListFault::Address, "{error}");
    }
    let error = list(&Provider::demo(), Detail::List).await.unwrap_err();
    assert_eq!(error.fault, ListFault::NotServed);
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let silent = Provider::new(Wire::Chat, &url);
    let limit = Duration::from_millis(20);
    let listed = bindery_engine::server_models::list_models(&silent, Detail::List, limit).await;
    assert_eq!(listed.unwrap_err().fault, ListFault::Slow);
    drop(listener);
    let error = list(&silent, Detail::List).await.unwrap_err();
    assert_eq!(error.fault, ListFault::Unreachable, "{error}");
}
