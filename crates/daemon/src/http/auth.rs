//! Who asks: a bearer token, for a tenant, with roles that reach the route.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use tokio::time::sleep;

use super::access;
use super::app::App;
use super::connections::ClientConnection;
use crate::error::Error;
use crate::tenant::{Caller, Tenant};

/// Whose request it is; beside the request for what reads its body.
#[derive(Clone, Debug)]
pub struct RequestTenant(pub Arc<Tenant>);

impl FromRequestParts<App> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let connection = parts.extensions.get::<Arc<ClientConnection>>().cloned();
        let caller = match known(parts, app).await {
            Err(Error::Unauthorized) => {
                return Err(refusal(app, connection.as_deref()).await);
            }
            known => known?,
        };
        let tenant = &caller.tenant;
        app.used.request(&tenant.id, &tenant.settings.limits, Instant::now())?;
        let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        access::check(&caller, &parts.method, route)?;
        if let Some(connection) = connection {
            // A daemon of the caller's own has nobody to share with.
            let own = app.config.exit_with_parent;
            let limit = if own { usize::MAX } else { tenant.settings.limits.requests };
            let served = connection.serve(&tenant.id, limit);
            served.inspect_err(|_| app.metrics.refuse("requests"))?;
        }
        parts.extensions.insert(RequestTenant(tenant.clone()));
        Ok(caller)
    }
}

async fn known(parts: &Parts, app: &App) -> Result<Caller, Error> {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = header.and_then(|value| value.split_once(' ')).unwrap_or_default();
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.len() > LONGEST {
        return Err(Error::Unauthorized);
    }
    app.tenants.caller(token).await
}

/// No token of ours is as long.
const LONGEST: usize = 256;

/// What a wrong token is answered with; late, if there were many.
async fn refusal(app: &App, connection: Option<&ClientConnection>) -> Error {
    let Some(connection) = connection else { return Error::Unauthorized };
    let per_minute = app.config.http.wrong_tokens_per_minute;
    let penalty = app.wrong_tokens.count(connection.address(), per_minute, Instant::now());
    match penalty {
        None => Error::Unauthorized,
        Some(penalty) => {
            app.metrics.refuse("wrong_tokens");
            sleep(penalty.delay).await;
            Error::WrongTokens { retry_after: penalty.retry_after }
        }
    }
}
