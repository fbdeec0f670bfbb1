//! Which role a route needs. What is not listed lets nobody in.

use axum::http::Method;

use crate::error::Error;
use crate::tenant::{Caller, Role, Roles};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, without a token.
    Open,
    /// Every token that has any role: it reads what is its tenant's.
    Read,
    /// Tokens of this role.
    Of(Role),
}

const RUN: Access = Access::Of(Role::Run);

/// All routes.
#[rustfmt::skip]
const TABLE: &[(&str, &str, Access)] = &[
    ("GET",   "/v1/threads",                               Access::Read),
    ("POST",  "/v1/threads",                               RUN),
    ("GET",   "/v1/threads/{thread}",                      Access::Read),
    ("PATCH", "/v1/threads/{thread}",                      RUN),
    ("DELETE", "/v1/threads/{thread}",                     RUN),
    ("POST",  "/v1/threads/{thread}/fork",                 RUN),
    ("POST",  "/v1/threads/{thread}/archive",              RUN),
    ("POST",  "/v1/threads/{thread}/unarchive",            RUN),
    ("POST",  "/v1/threads/{thread}/compact",              RUN),
    ("POST",  "/v1/threads/{thread}/review",               RUN),
    ("GET",   "/v1/threads/{thread}/turns",                Access::Read),
    ("POST",  "/v1/threads/{thread}/turns",                RUN),
    ("GET",   "/v1/turns/{turn}",                          Access::Read),
    ("GET",   "/v1/turns/{turn}/events",                   Access::Read),
    ("POST",  "/v1/turns/{turn}/steer",                    RUN),
    ("POST",  "/v1/turns/{turn}/interrupt",                RUN),
    ("GET",   "/v1/interrupts",                            Access::Read),
    ("GET",   "/v1/interrupts/{token}",                    Access::Read),
    ("POST",  "/v1/interrupts/{token}/answer",             Access::Of(Role::Answer)),
    // It starts a turn, and answers nothing.
    ("POST",  "/v1/interrupts/{token}/ask-again",          RUN),
    ("GET",   "/v1/deliveries",                            Access::Read),
    ("GET",   "/v1/sessions",                              Access::Read),
    ("GET",   "/v1/sessions/{session}",                    Access::Read),
    ("GET",   "/v1/sessions/{session}/transcript",         Access::Read),
    ("POST",  "/v1/uploads",                               RUN),
    ("DELETE", "/v1/uploads/{upload}",                     RUN),
    // Models are listed by a worker, which is started for it.
    ("GET",   "/v1/models",                                RUN),
    ("POST",  "/v1/models",                                RUN),
    ("POST",  "/v1/language-model/stream",                 RUN),
    ("POST",  "/v1/language-model/prepare",                RUN),
    ("POST",  "/v1/language-model/calls/{call}/steer",     RUN),
    ("POST",  "/v1/language-model/calls/{call}/interrupt", RUN),
    ("GET",   "/metrics",                                  Access::Of(Role::Admin)),
    ("GET",   "/",                                         Access::Open),
    ("GET",   "/docs",                                     Access::Open),
    ("GET",   "/v1/openapi.json",                          Access::Open),
    ("GET",   "/healthz",                                  Access::Open),
    ("GET",   "/readyz",                                   Access::Open),
];

/// Who may use this route; none if nobody has said.
pub fn access(method: &str, path: &str) -> Option<Access> {
    // Axum answers `HEAD` with the handler of `GET`.
    let method = if method == "HEAD" { "GET" } else { method };
    let found = TABLE.iter().find(|(known, route, _)| *known == method && *route == path);
    found.map(|(_, _, access)| *access)
}

impl Access {
    /// Whether these roles are enough.
    pub fn admits(self, roles: &Roles) -> bool {
        match self {
            Self::Open => true,
            Self::Read => !roles.is_empty(),
            Self::Of(role) => roles.has(role),
        }
    }
}

/// Refuses a caller whose roles do not reach this route.
pub fn check(caller: &Caller, method: &Method, path: Option<&str>) -> Result<Access, Error> {
    let unlisted = || Error::Forbidden("no role is enough for this route".to_owned());
    let access = path.and_then(|path| access(method.as_str(), path)).ok_or_else(unlisted)?;
    match access {
        _ if access.admits(&caller.roles) => Ok(access),
        Access::Of(role) => Err(Error::RoleMissing(role)),
        Access::Open | Access::Read => Err(unlisted()),
    }
}
