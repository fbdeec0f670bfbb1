//! Errors as problem+json (RFC 9457), with a stable code and a hint.

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;

/// What an error looks like.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// `urn:bindery:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable name: never reworded.
    pub code: String,
    /// What happened.
    pub detail: String,
    /// The same request may go well later.
    pub retryable: bool,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::error!(code = self.code(), err = %self, "a request failed");
        }
        // What the store or the disk says is for the log, not for clients.
        let detail = match &self {
            Self::Store(_) | Self::Io { .. } | Self::Internal(_) => {
                "something went wrong inside; the log says what".to_owned()
            }
            err => err.to_string(),
        };
        let mut response = respond(status, self.code(), detail, self.hint());
        if let Some(seconds) = self.retry_after() {
            set(&mut response, RETRY_AFTER, &seconds.to_string());
        }
        if status == StatusCode::UNAUTHORIZED {
            set(&mut response, WWW_AUTHENTICATE, "Bearer");
        }
        response
    }
}

/// A problem of this status.
pub fn respond(
    status: StatusCode,
    code: &str,
    detail: impl Into<String>,
    hint: Option<String>,
) -> Response {
    let problem = Problem {
        kind: format!("urn:bindery:problem:{code}"),
        title: status.canonical_reason().unwrap_or("error").to_owned(),
        status: status.as_u16(),
        code: code.to_owned(),
        detail: detail.into(),
        retryable: matches!(status.as_u16(), 408 | 429 | 503),
        hint,
    };
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = (status, body).into_response();
    set(&mut response, CONTENT_TYPE, "application/problem+json");
    response
}

/// The route is there, and not for this method.
pub fn method_not_allowed() -> Response {
    let detail = "this route does not know this method";
    respond(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail, None)
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
