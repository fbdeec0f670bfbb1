//! Whether the server lives, and whether it can work; anybody may ask.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::body::json;
use crate::error::Error;
use crate::store::StoreError;

/// How the server stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: &'static str,
    /// The server's version.
    pub version: &'static str,
}

const OK: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "server",
    operation_id = "get_health",
    security(()), responses((status = 200, body = Health)))]
pub async fn live() -> Response {
    json(StatusCode::OK, &OK)
}

/// The store answers and can be written, and the server is not about to stop.
#[utoipa::path(get, path = "/readyz", tag = "server",
    operation_id = "get_readiness",
    security(()), responses((status = 200, body = Health)))]
pub async fn ready(State(app): State<App>) -> Result<Response, Error> {
    if app.stop.is_cancelled() {
        return Err(Error::Stopping);
    }
    app.tenants.list().await?;
    app.write_probe.check(&*app.store).await?;
    if let Some(why) = app.runner.held() {
        return Err(StoreError::Unwritable(why).into());
    }
    Ok(json(StatusCode::OK, &OK))
}
