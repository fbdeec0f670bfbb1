//! The HTTP API: versioned JSON under `/v1`, events as SSE, errors as problem+json.
//!
//! Read: [`app`] (what handlers share), [`security`] (who gets in at all), [`auth`] (who asks),
//! [`access`] (which role that takes), [`limits`], [`connections`], [`wrong_tokens`] and
//! [`body_budget`] (how much), [`extract`] and [`body`] (what they send), [`idempotency`] (whether
//! they sent it before), [`problem`] (how errors are told), then one file for each kind of thing,
//! and [`openapi`] (all of it, described).

pub mod app;

pub mod security;

pub mod access;

pub mod auth;

pub mod limits;

pub mod connections;

pub mod wrong_tokens;

pub mod body_budget;

pub mod extract;

pub mod token_watch;

mod unique_keys;

pub mod body;

pub mod problem;

pub mod idempotency;

pub mod sse;

pub mod pages;

pub mod threads;

pub mod turns;

pub mod interrupts;

pub mod deliveries;

pub mod sessions;

pub mod uploads;

pub mod ai_sdk;

pub mod health;

pub mod metrics;

pub mod openapi;

pub mod page;

pub mod listen;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};

use self::app::App;
use crate::error::Error;

/// A path and what it knows.
pub struct Route {
    /// With `{names}`.
    pub path: &'static str,
    /// Methods, in capitals.
    pub methods: &'static [&'static str],
    handlers: MethodRouter<App>,
}

const GET: &[&str] = &["GET"];
const POST: &[&str] = &["POST"];

/// All routes.
pub fn routes() -> Vec<Route> {
    let mut all = native();
    all.extend(fronts());
    all
}

fn native() -> Vec<Route> {
    let route = |path, methods, handlers| Route { path, methods, handlers };
    vec![
        route("/v1/threads", &["GET", "POST"], get(threads::list).post(threads::create)),
        route(
            "/v1/threads/{thread}",
            &["GET", "PATCH", "DELETE"],
            get(threads::read).patch(threads::rename).delete(threads::remove),
        ),
        route("/v1/threads/{thread}/fork", POST, post(threads::fork)),
        route("/v1/threads/{thread}/archive", POST, post(threads::archive)),
        route("/v1/threads/{thread}/unarchive", POST, post(threads::unarchive)),
        route("/v1/threads/{thread}/compact", POST, post(threads::compact)),
        route("/v1/threads/{thread}/review", POST, post(threads::review)),
        route("/v1/threads/{thread}/turns", &["GET", "POST"], get(turns::list).post(turns::start)),
        route("/v1/turns/{turn}", GET, get(turns::read)),
        route("/v1/turns/{turn}/events", GET, get(turns::events)),
        route("/v1/turns/{turn}/steer", POST, post(turns::steer)),
        route("/v1/turns/{turn}/interrupt", POST, post(turns::interrupt)),
        route("/v1/interrupts", GET, get(interrupts::list)),
        route("/v1/interrupts/{token}", GET, get(interrupts::read)),
        route("/v1/interrupts/{token}/answer", POST, post(interrupts::answer)),
        route("/v1/interrupts/{token}/ask-again", POST, post(interrupts::ask_again)),
        route("/v1/deliveries", GET, get(deliveries::list)),
        route("/v1/sessions", GET, get(sessions::list)),
        route("/v1/sessions/{session}", GET, get(sessions::read)),
        route("/v1/sessions/{session}/transcript", GET, get(sessions::transcript)),
        route(uploads::ROUTE, POST, post(uploads::create)),
        route("/v1/uploads/{upload}", &["DELETE"], delete(uploads::remove)),
    ]
}

fn fronts() -> Vec<Route> {
    let route = |path, methods, handlers| Route { path, methods, handlers };
    vec![
        route("/v1/models", &["GET", "POST"], get(ai_sdk::models).post(ai_sdk::models_of)),
        route("/v1/language-model/stream", POST, post(ai_sdk::stream)),
        route("/v1/language-model/prepare", POST, post(ai_sdk::prepare)),
        route("/v1/language-model/calls/{call}/steer", POST, post(ai_sdk::steer)),
        route("/v1/language-model/calls/{call}/interrupt", POST, post(ai_sdk::interrupt)),
        route("/metrics", GET, get(metrics::show)),
        route("/", GET, get(page::home)),
        route("/docs", GET, get(page::docs)),
        route("/v1/openapi.json", GET, get(openapi::show)),
        route("/healthz", GET, get(health::live)),
        route("/readyz", GET, get(health::ready)),
    ]
}

/// Routes that want no token.
pub const OPEN: [&str; 5] = ["/", "/docs", "/v1/openapi.json", "/healthz", "/readyz"];

/// All routes, guarded.
pub fn router(app: App) -> Router {
    let empty = Router::new();
    let routed = routes().into_iter().fold(empty, |all, one| all.route(one.path, one.handlers));
    routed
        .fallback(|| async { Error::not_found("route", "here") })
        .method_not_allowed_fallback(|| async { problem::method_not_allowed() })
        .layer(from_fn_with_state(app.clone(), security::guard))
        .layer(from_fn_with_state(app.clone(), metrics::count))
        .with_state(app)
}
