//! Who asks: a bearer token, for a tenant, with roles that reach the route.

use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::access;
use super::app::App;
use crate::error::Error;
use crate::tenant::Caller;

impl FromRequestParts<App> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, token) = header.and_then(|value| value.split_once(' ')).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Error::Unauthorized);
        }
        let caller = app.tenants.caller(token.trim()).await?;
        let tenant = &caller.tenant;
        app.used.request(&tenant.id, &tenant.settings.limits, Instant::now())?;
        let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        access::check(&caller, &parts.method, route)?;
        Ok(caller)
    }
}
