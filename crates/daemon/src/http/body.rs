//! JSON bodies: of the right type, within bounds, with nothing in them that we do not know.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::app::App;
use super::problem::respond;
use super::security::is_json;
use super::unique_keys;
use crate::error::Error;

/// A JSON body that was read.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let bytes = json_bytes(request, app).await?;
        read(&bytes).map(Self).map_err(IntoResponse::into_response)
    }
}

/// A JSON body that may be missing.
#[derive(Debug)]
pub struct Perhaps<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for Perhaps<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let bytes = json_bytes(request, app).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        read(&bytes).map(Self).map_err(IntoResponse::into_response)
    }
}

/// Reads JSON; a key that is there twice is refused, because readers differ in which one counts.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    unique_keys::check(bytes).map_err(|why| Error::invalid("body", why))?;
    serde_json::from_slice(bytes).map_err(|err| Error::invalid("body", err.to_string()))
}

/// A form or text, which a page of another origin can send without asking, is not JSON.
async fn json_bytes(request: Request, app: &App) -> Result<Bytes, Response> {
    if !is_json(request.headers()) {
        let detail = "the body must be `application/json`";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(respond(status, "unsupported_media_type", detail, None));
    }
    bytes(request, app).await
}

/// A body within bounds of length and time.
pub async fn bytes(request: Request, app: &App) -> Result<Bytes, Response> {
    let http = &app.config.http;
    let limit = http.body_limit;
    let too_long = || {
        let detail = format!("the body is longer than {limit} bytes, or broken off");
        respond(StatusCode::PAYLOAD_TOO_LARGE, "body_too_long", detail, None)
    };
    let told = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let told = told.and_then(|value| value.parse::<u64>().ok());
    // One that says so is not read at all.
    if told.is_some_and(|told| told > limit as u64) {
        return Err(too_long());
    }
    let patience = Duration::from_secs(http.read_seconds.max(1));
    match timeout(patience, to_bytes(request.into_body(), limit)).await {
        Ok(read) => read.map_err(|_| too_long()),
        Err(_) => {
            let detail = "the body did not come in time";
            Err(respond(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail, None))
        }
    }
}

/// A JSON response.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(err) => Error::Internal(err.to_string()).into_response(),
    }
}
