//! JSON bodies: of the right type, within bounds, with nothing in them that we do not know.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bindery_core::surrogates::mended_bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::app::App;
use super::auth::RequestTenant;
use super::body_budget::BodyShare;
use super::connections::ClientConnection;
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
        read(&bytes).map(|(value, _)| Self(value)).map_err(IntoResponse::into_response)
    }
}

/// A JSON body, and how many characters of it could not be read and were replaced.
#[derive(Debug)]
pub struct MendedBody<T>(pub T, pub usize);

impl<T: DeserializeOwned> FromRequest<App> for MendedBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let bytes = json_bytes(request, app).await?;
        let read = read(&bytes).map_err(IntoResponse::into_response);
        read.map(|(value, replaced)| Self(value, replaced))
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
        read(&bytes).map(|(value, _)| Self(value)).map_err(IntoResponse::into_response)
    }
}

/// The body of a request that says nothing: none, or an object without fields.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// Values in a JSON body. A value takes up to a hundred bytes of memory and as little as two of a
/// body.
const MAX_VALUES: usize = 250_000;

/// A body this short has few values, whatever is in it.
const FEW_VALUES: usize = 64 * 1024;

/// About how many values and names a JSON text has: what is between commas, colons and brackets.
fn count_values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads JSON that can be read in one way only, and tells how many characters of it were replaced.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), Error> {
    let (bytes, replaced) = mended_bytes(bytes);
    let bytes = &*bytes;
    if bytes.len() > FEW_VALUES && count_values(bytes) > MAX_VALUES {
        let why = format!("it has more than {MAX_VALUES} values; send text as one");
        return Err(Error::invalid("body", why));
    }
    unique_keys::check(bytes).map_err(|why| Error::invalid("body", why))?;
    let value = serde_json::from_slice(bytes);
    let value = value.map_err(|err| Error::invalid("body", err.to_string()))?;
    Ok((value, replaced))
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
    let most = told.unwrap_or(limit as u64);
    let tenant = request.extensions().get::<RequestTenant>().cloned();
    let share = share(tenant, app, most, patience).await.map_err(Error::into_response)?;
    let connection = request.extensions().get::<Arc<ClientConnection>>().cloned();
    let read = timeout(patience, to_bytes(request.into_body(), limit)).await;
    if let Some(connection) = connection {
        connection.hold_body(share);
    }
    match read {
        Ok(read) => read.map_err(|_| too_long()),
        Err(_) => {
            let detail = "the body did not come in time";
            Err(respond(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail, None))
        }
    }
}

/// The body's share of memory; without a tenant nobody reads one.
async fn share(
    tenant: Option<RequestTenant>,
    app: &App,
    bytes: u64,
    within: Duration,
) -> Result<BodyShare, Error> {
    let Some(RequestTenant(tenant)) = tenant else { return Err(Error::Unauthorized) };
    let limit = tenant.settings.limits.request_bytes;
    let share = app.body_budget.share(&tenant.id, limit, bytes, within).await;
    if share.is_err() {
        app.metrics.refuse("request_bytes");
    }
    share
}

/// A JSON response.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(err) => Error::Internal(err.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts_only() {
        for (json, count) in [
            (r#"{"a":[1,2,{"b":null}]}"#, 8),
            (r#"["one, two: [three] {four}"]"#, 2),
            (r#"["a \" , \\", 1]"#, 3),
            ("7", 1),
        ] {
            assert_eq!(count_values(json.as_bytes()), count, "{json}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_costs_a_character_and_not_the_body() {
        let (value, replaced) = read::<serde_json::Value>(br#"{"a":"b\ud83d"}"#).unwrap();
        assert_eq!((value["a"].as_str(), replaced), (Some("b\u{fffd}"), 1));
        // Two keys that are the same once they are read are refused as such.
        assert!(read::<serde_json::Value>(br#"{"\ud83d":1,"\ud83e":2}"#).is_err());
    }

    #[test]
    fn a_body_of_very_many_values_is_not_parsed() {
        let many = format!("{{\"x\":[{}0]}}", "0,".repeat(MAX_VALUES));
        let refused = read::<serde_json::Value>(many.as_bytes()).unwrap_err();
        assert_eq!(refused.status(), 422);
        let text = format!("{{\"x\":\"{}\"}}", ", ".repeat(MAX_VALUES));
        assert!(read::<serde_json::Value>(text.as_bytes()).is_ok());
        let deep = "[".repeat(100_000);
        assert_eq!(read::<serde_json::Value>(deep.as_bytes()).unwrap_err().status(), 422);
    }
}
