//! The API document, made from the handlers.

pub mod shape;

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
use crate::store::InterruptState;

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
        threads::remove,
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
        uploads::remove,
        ai_sdk::models,
        ai_sdk::models_of,
        ai_sdk::stream,
        ai_sdk::prepare,
        ai_sdk::steer,
        ai_sdk::interrupt,
    ),
    components(schemas(Problem, InterruptState))
)]
struct Document;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = json!(Document::openapi());
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    document["info"]["license"] = json!({ "name": "Apache-2.0", "identifier": "Apache-2.0" });
    document["servers"] = json!([{ "url": "/", "description": "The daemon that serves this." }]);
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "A tenant's token; `bindery tenant token` makes one.",
    });
    document["security"] = json!([{ "token": [] }]);
    document["tags"] = TAGS
        .iter()
        .map(|(name, description)| json!({ "name": name, "description": description }))
        .collect();
    let schemas = document["components"]["schemas"].as_object_mut();
    schemas.into_iter().for_each(|known| known.extend(shape::all()));
    document["components"]["responses"]["Problem"] = json!({
        "description": "A problem: `code` is stable, `hint` says what to do next.",
        "content": { "application/problem+json": {
            "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    document["webhooks"]["event"]["post"] = json!({
        "operationId": "receive_event",
        "summary": "Something happened; sent to a tenant's webhooks in the form of Standard \
            Webhooks.",
        "security": [],
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/WebhookEvent" } } } },
        "responses": {
            "2XX": { "description": "It is taken." },
            "4XX": { "description": "It is not taken, and tried again." },
        },
    });
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.for_each(|(path, methods)| complete(path, methods));
    document
});

const TAGS: [(&str, &str); 8] = [
    ("threads", "Conversations."),
    ("turns", "Runs of a thread, and what they say."),
    ("interrupts", "Questions that stop a turn, and their answers."),
    ("deliveries", "Webhooks that wait or were given up."),
    ("sessions", "What Codex has written down."),
    ("uploads", "Images that prompts speak of."),
    ("AI SDK", "What the npm provider speaks to."),
    ("server", "The server itself."),
];

/// Adds what is the same everywhere: names in paths, how events look, and how errors are told.
fn complete(path: &str, methods: &mut Value) {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let names: Vec<&str> = names.collect();
    for (method, operation) in methods.as_object_mut().into_iter().flatten() {
        let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" });
        let known = operation["parameters"].as_array().cloned().unwrap_or_default();
        let named = names.iter().map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": schema,
                "description": format!("The {name}'s name.") })
        });
        let all: Vec<Value> = named.chain(known).collect();
        if !all.is_empty() {
            operation["parameters"] = json!(all);
        }
        for status in problems(path, method, operation) {
            operation["responses"][status] = json!({ "$ref": "#/components/responses/Problem" });
        }
        for (status, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
            if answer["description"] == "" {
                answer["description"] = json!(told(status));
            }
        }
        if let Some(events) = operation.pointer_mut(EVENTS) {
            let one = if path.starts_with("/v1/turns") { "TurnEvent" } else { "CallEvent" };
            // One event, as a reader of such streams has it.
            *events = json!({ "$ref": format!("#/components/schemas/{one}") });
        }
    }
}

/// A status in words.
fn told(status: &str) -> &'static str {
    match status {
        "200" => "It is so.",
        "201" => "It is made.",
        "202" => "It is under way.",
        "204" => "There is nothing more to say.",
        _ => "As it says.",
    }
}

const EVENTS: &str = "/responses/200/content/text~1event-stream/schema";

/// The statuses that an operation is known to tell problems with; the default is for the others.
fn problems(path: &str, method: &str, operation: &Value) -> Vec<&'static str> {
    let mut all = vec!["default"];
    if !super::OPEN.contains(&path) {
        all.extend(["401", "403", "429"]);
    }
    all.push("421");
    if path == "/readyz" {
        all.push("503");
    }
    if path.contains('{') {
        all.push("404");
    }
    if method == "post" || method == "delete" {
        all.push("409");
    }
    if operation["parameters"].is_array() || operation["requestBody"].is_object() {
        all.push("422");
    }
    all
}

/// The document.
pub fn document() -> Value {
    DOCUMENT.clone()
}

/// The API document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server",
    operation_id = "get_openapi",
    security(()),
    responses((status = 200, body = shape::Nothing)))]
pub async fn show() -> Response {
    json(StatusCode::OK, &*DOCUMENT)
}
