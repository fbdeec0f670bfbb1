//! What is refused before anybody looks at it: foreign hosts and origins, bodies that are not JSON.
//!
//! A page in a browser can reach a server on this machine: by a name of its own that leads here
//! (hence the check of `Host`), and by plain forms and scripts (hence `Origin` and the type of the
//! body). Tokens are asked for besides, always.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::problem::respond;
use super::uploads;
use crate::config::Http;

/// Which requests may come in; clones share it.
#[derive(Clone, Debug)]
pub struct Doors {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is refused: status, code, in words.
type Refusal = (StatusCode, &'static str, &'static str);

impl Doors {
    /// Doors of a server at this address.
    pub fn new(address: SocketAddr, http: &Http) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let (hosts, origins) = (lower(&http.hosts), lower(&http.origins));
        Self { inner: Arc::new(Inner { address, hosts, origins }) }
    }

    /// Whether a request may come in; with its origin if it has one that is listed.
    fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, Refusal> {
        check_head(uri, headers)?;
        self.check_host(uri, headers)?;
        let origin = self.check_origin(headers)?;
        let writes = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        if writes && !is_json(headers) && !uploads::takes(uri.path(), headers) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err((status, "unsupported_media_type", "the body must be `application/json`"));
        }
        Ok(origin)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err((StatusCode::BAD_REQUEST, "host_missing", "one `Host` is needed"));
        };
        let foreign = (
            StatusCode::MISDIRECTED_REQUEST,
            "host_not_allowed",
            "this server does not go by this name; `http.hosts` lists further ones",
        );
        let host = host.to_str().ok().filter(|host| self.answers_to(host)).ok_or(foreign)?;
        match uri.authority() {
            // Both say where the request is to go; they must not differ.
            Some(told) if !told.as_str().eq_ignore_ascii_case(host) => Err(foreign),
            _ => Ok(()),
        }
    }

    /// Whether we go by this name.
    fn answers_to(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if host.contains('@') {
            return false;
        }
        let name = authority.host().to_ascii_lowercase();
        let whole = host.to_ascii_lowercase();
        if self.inner.hosts.iter().any(|known| *known == name || *known == whole) {
            return true;
        }
        let address = self.inner.address;
        if authority.port_u16().unwrap_or(80) != address.port() {
            return false;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let ip: Option<IpAddr> = bare.parse().ok();
        match address.ip() {
            // Names can be made to lead anywhere; numbers cannot.
            own if own.is_unspecified() => ip.is_some(),
            own if own.is_loopback() => {
                name == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
            }
            own => ip == Some(own),
        }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
        let refused = (
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            "pages of this origin may not come here; `http.origins` lists those that may",
        );
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(None) };
        let text = origin.to_str().map_err(|_| refused)?.to_ascii_lowercase();
        let known = text != "null" && self.inner.origins.contains(&text);
        if known && origins.next().is_none() { Ok(Some(origin.clone())) } else { Err(refused) }
    }
}

/// Bytes of a request's line and headers.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The server's buffer has the same bound, and may hold more of them when the last piece comes.
fn check_head(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    // With what stands between and after a name and its value.
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let line = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if line + fields.sum::<usize>() <= MAX_HEAD_BYTES {
        return Ok(());
    }
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Err((status, "head_too_long", "the request's line and headers are longer than 64 KB"))
}

/// Whether a body says that it is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    kind(headers).is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// What a body says that it is.
pub fn kind(headers: &HeaderMap) -> Option<&str> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return None };
    Some(kind.to_str().ok()?.split(';').next().unwrap_or_default().trim())
}

/// Lets in what may come in, and puts the usual guards on what goes out.
pub async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let checked = app.doors.check(request.method(), request.uri(), request.headers());
    let mut response = match &checked {
        Err((status, code, detail)) => respond(*status, code, *detail, None),
        Ok(Some(_)) if request.method() == Method::OPTIONS => preflight(),
        Ok(_) => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in GUARDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Ok(Some(origin)) = checked {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("origin"));
    }
    response
}

const GUARDS: [(HeaderName, &str); 6] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A listed origin asks what it may do.
fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PATCH, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, idempotency-key, last-event-id",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors(address: &str) -> Doors {
        let http = Http { hosts: vec!["Codex.example".to_owned()], ..Http::default() };
        Doors::new(address.parse().unwrap(), &http)
    }

    #[test]
    fn only_our_own_names_are_answered_to() {
        let here = doors("127.0.0.1:4747");
        for host in ["127.0.0.1:4747", "localhost:4747", "LOCALHOST:4747", "[::1]:4747"] {
            assert!(here.answers_to(host), "{host}");
        }
        assert!(here.answers_to("codex.example") && here.answers_to("codex.example:443"));
        for host in [
            "127.0.0.1",
            "127.0.0.1:4748",
            "127.0.0.1.evil.example:4747",
            "127.evil.example:4747",
            "localhost.evil.example:4747",
            "evil.example:4747",
            "evil.example@localhost:4747",
            "localhost:4747@evil.example",
            "a.codex.example",
            "0.0.0.0:4747",
            "",
            " ",
        ] {
            assert!(!here.answers_to(host), "{host}");
        }
    }

    #[test]
    fn everywhere_is_reached_by_number_or_by_a_listed_name() {
        let everywhere = doors("0.0.0.0:80");
        assert!(everywhere.answers_to("192.0.2.7") && everywhere.answers_to("codex.example"));
        assert!(!everywhere.answers_to("rebound.example"));
        let one = doors("192.0.2.7:80");
        assert!(one.answers_to("192.0.2.7") && !one.answers_to("192.0.2.8"));
    }
}
