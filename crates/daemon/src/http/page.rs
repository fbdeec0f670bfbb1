//! Pages for people: what runs here, and the API document in a readable form.
//!
//! They are made here, whole: no scripts, nothing from elsewhere.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::app::App;
use super::openapi;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:3rem auto;\
padding:0 1rem;color:#1c1c1c;background:#fdfdfc}code,pre{font:14px/1.5 ui-monospace,monospace}\
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}details{margin:.4rem 0}summary{cursor:pointer}\
pre{background:#f3f3f0;padding:.8rem;overflow:auto}b{display:inline-block;min-width:4rem}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#e6e6e6}pre{background:#222}\
h2{border-color:#444}a{color:#8ab4f8}}";

/// What runs here.
#[utoipa::path(get, path = "/", tag = "server",
    operation_id = "get_home",
    security(()),
    responses((status = 200, body = String, content_type = "text/html")))]
pub async fn home(State(app): State<App>) -> Response {
    let backend = match app.runner.workers().default_backend() {
        "codex" => "Codex",
        _ => "the native engine",
    };
    let version = env!("CARGO_PKG_VERSION");
    let body = format!(
        "<h1>Bindery</h1><p>Bindery {version} serves {backend} here, over HTTP.</p>\
        <ul><li><a href=\"/docs\">The API, to read</a></li>\
        <li><a href=\"/v1/openapi.json\">The API document</a> (OpenAPI)</li>\
        <li><a href=\"/healthz\">Health</a>, <a href=\"/readyz\">readiness</a></li></ul>\
        <p>Everything under <code>/v1</code> wants <code>Authorization: Bearer</code> and a token; \
        <code>bindery tenant token</code> makes one.</p>"
    );
    page("Bindery", &body)
}

/// The API document, to read.
#[utoipa::path(get, path = "/docs", tag = "server",
    operation_id = "get_docs",
    security(()),
    responses((status = 200, body = String, content_type = "text/html")))]
pub async fn docs() -> Response {
    page("Bindery: the API", &readable(&openapi::document()))
}

/// The document as HTML.
fn readable(document: &Value) -> String {
    let mut html = String::from("<h1>The API</h1>");
    let empty = serde_json::Map::new();
    let paths = document["paths"].as_object().unwrap_or(&empty);
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap_or(&empty) {
            let said = operation["summary"].as_str().or(operation["description"].as_str());
            let details = serde_json::to_string_pretty(operation).unwrap_or_default();
            // Writing to a text cannot fail.
            let _ = write!(
                html,
                "<details><summary><b>{}</b> <code>{}</code> {}</summary><pre>{}</pre></details>",
                escaped(&method.to_uppercase()),
                escaped(path),
                escaped(said.unwrap_or_default()),
                escaped(&details),
            );
        }
    }
    html.push_str("<h2>Shapes</h2>");
    for (name, shape) in document["components"]["schemas"].as_object().unwrap_or(&empty) {
        let shape = serde_json::to_string_pretty(shape).unwrap_or_default();
        let (name, shape) = (escaped(name), escaped(&shape));
        let _ = write!(
            html,
            "<details><summary><code>{name}</code></summary><pre>{shape}</pre></details>"
        );
    }
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn page(title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
        <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
        <style>{STYLE}</style>{body}</html>",
        escaped(title)
    );
    let digest = ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes());
    let style = STANDARD.encode(digest);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; \
        base-uri 'none'; form-action 'none'"
    );
    let kind = "text/html; charset=utf-8".to_owned();
    let headers = [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, policy)];
    (StatusCode::OK, headers, html).into_response()
}
