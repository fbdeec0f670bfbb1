//! The API document, made from the handlers.

use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::body::json;
use super::problem::Problem;
use super::{
    ai_sdk, deliveries, health, interrupts, metrics, page, sessions, threads, turns, uploads,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Bindery",
        description = "Codex as a service: threads, turns and their events, questions and answers."
    ),
    paths(
        page::home,
        page::docs,
        show,
        health::live,
        health::ready,
        metrics::show,
        threads::list,
        threads::create,
        threads::read,
        threads::rename,
        threads::fork,
        threads::archive,
        threads::unarchive,
        threads::compact,
        threads::review,
        turns::list,
        turns::start,
        turns::read,
        turns::events,
        turns::steer,
        turns::interrupt,
        interrupts::list,
        interrupts::read,
        interrupts::answer,
        interrupts::ask_again,
        deliveries::list,
        sessions::list,
        sessions::read,
        sessions::transcript,
        uploads::create,
        ai_sdk::models,
        ai_sdk::models_of,
        ai_sdk::stream,
        ai_sdk::prepare,
        ai_sdk::steer,
        ai_sdk::interrupt,
    ),
    components(schemas(Problem))
)]
struct Document;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = json!(Document::openapi());
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    document["components"]["securitySchemes"]["token"] =
        json!({ "type": "http", "scheme": "bearer" });
    document["security"] = json!([{ "token": [] }]);
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.for_each(|(path, methods)| complete(path, methods));
    document
});

/// Adds what is the same everywhere: names in paths, and how errors are told.
fn complete(path: &str, methods: &mut Value) {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let names: Vec<&str> = names.collect();
    for operation in methods.as_object_mut().into_iter().flatten().map(|(_, value)| value) {
        let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" });
        let known = operation["parameters"].as_array().cloned().unwrap_or_default();
        let named = names
            .iter()
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        let all: Vec<Value> = named.chain(known).collect();
        if !all.is_empty() {
            operation["parameters"] = json!(all);
        }
        let problem = json!({
            "description": "A problem",
            "content": { "application/problem+json": {
                "schema": { "$ref": "#/components/schemas/Problem" } } },
        });
        operation["responses"]["default"] = problem;
    }
}

/// The document.
pub fn document() -> Value {
    DOCUMENT.clone()
}

/// The API document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", security(()),
    responses((status = 200, body = Value)))]
pub async fn show() -> Response {
    json(StatusCode::OK, &*DOCUMENT)
}
