//! The HTTP API: versioned JSON under `/v1`, events as SSE, errors as problem+json.
//!
//! Read: [`app`] (what handlers share), [`auth`] (who asks), [`body`] (what they send), [`problem`]
//! (how errors are told), then one file for each kind of thing.

pub mod app;

pub mod auth;

pub mod body;

pub mod problem;

pub mod sse;

pub mod threads;

pub mod turns;

pub mod interrupts;

pub mod ai_sdk;

pub mod listen;

use axum::Router;
use axum::routing::{get, post};

use self::app::App;
use crate::error::Error;

/// All routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/v1/threads", get(threads::list).post(threads::create))
        .route("/v1/threads/{thread}", get(threads::read).patch(threads::rename))
        .route("/v1/threads/{thread}/fork", post(threads::fork))
        .route("/v1/threads/{thread}/archive", post(threads::archive))
        .route("/v1/threads/{thread}/unarchive", post(threads::unarchive))
        .route("/v1/threads/{thread}/compact", post(threads::compact))
        .route("/v1/threads/{thread}/review", post(threads::review))
        .route("/v1/threads/{thread}/turns", get(turns::list).post(turns::start))
        .route("/v1/turns/{turn}", get(turns::read))
        .route("/v1/turns/{turn}/events", get(turns::events))
        .route("/v1/turns/{turn}/steer", post(turns::steer))
        .route("/v1/turns/{turn}/interrupt", post(turns::interrupt))
        .route("/v1/interrupts", get(interrupts::list))
        .route("/v1/interrupts/{token}", get(interrupts::read))
        .route("/v1/interrupts/{token}/answer", post(interrupts::answer))
        .route("/v1/interrupts/{token}/ask-again", post(interrupts::ask_again))
        .route("/v1/models", get(ai_sdk::models))
        .route("/v1/language-model/stream", post(ai_sdk::stream))
        .route("/v1/language-model/prepare", post(ai_sdk::prepare))
        .route("/v1/language-model/calls/{call}/steer", post(ai_sdk::steer))
        .route("/v1/language-model/calls/{call}/interrupt", post(ai_sdk::interrupt))
        .fallback(|| async { Error::not_found("route", "here") })
        .method_not_allowed_fallback(|| async { problem::method_not_allowed() })
        .with_state(app)
}
