//! Small requests to a model's server, all of them within one time.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{ListError, ListFault};
use crate::model::{Provider, Wire};
use crate::model_secrets::Secrets;
use crate::tls;

/// Longer is no list of models: the longest there is has two megabytes.
const MOST: usize = 32 << 20;

/// More of what a server says about a refusal nobody reads.
const MOST_WORDS: usize = 500;

/// A way to one server, until its time is up.
pub(super) struct Fetcher {
    client: Client,
    base: Url,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    secrets: Secrets,
    limit: Duration,
    deadline: Instant,
}

impl Fetcher {
    pub(super) async fn new(provider: &Provider, limit: Duration) -> Result<Self, ListError> {
        let secrets = Secrets::of(provider);
        let deadline = Instant::now() + limit;
        let base = &provider.base_url;
        let wrong = |why: &str| {
            let place = secrets.hide(base);
            let message = format!("`{place}` is no address of a model's server: {why}");
            ListError::new(ListFault::Address, message)
        };
        let base = Url::parse(base).map_err(|err| wrong(&err.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(wrong("it must begin with http:// or https://"));
        }
        let headers = headers(provider)?;
        let query = provider.query.clone();
        let client = client(&base, provider).await?;
        Ok(Self { client, base, query, headers, secrets, limit, deadline })
    }

    /// An address below `base_url`.
    pub(super) fn listed(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }

    /// An address beside `/v1`: what servers have besides the common API.
    pub(super) fn rooted(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        let ends_in_version = url.path().trim_end_matches('/').ends_with("/v1");
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if ends_in_version {
                segments.pop();
            }
            segments.extend(path);
        }
        url
    }

    /// Whether it is on this machine or in this house, where no TLS is needed.
    pub(super) fn is_nearby(&self) -> bool {
        self.base.scheme() == "http" || tls::is_loopback(&self.base)
    }

    pub(super) async fn get(&self, url: Url) -> Result<Value, ListError> {
        self.send(&url, self.client.get(url.clone())).await
    }

    pub(super) async fn post(&self, url: Url, body: &Value) -> Result<Value, ListError> {
        let request = self.client.post(url.clone());
        let request = request.header("content-type", "application/json").body(body.to_string());
        self.send(&url, request).await
    }

    /// What came was JSON and no list.
    pub(super) fn no_list(&self) -> ListError {
        let place = place(&self.listed(&["models"]));
        let message = format!("what `{place}` answers is no list of models");
        ListError::new(ListFault::Garbage, message)
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<Value, ListError> {
        let request = request.headers(self.headers.clone());
        let sent = timeout_at(self.deadline, request.send()).await;
        let mut response =
            sent.map_err(|_| self.slow(url))?.map_err(|err| self.unreachable(url, err))?;
        let mut body = Vec::new();
        loop {
            let chunk = timeout_at(self.deadline, response.chunk()).await;
            let chunk = chunk.map_err(|_| self.slow(url))?;
            match chunk.map_err(|err| self.unreachable(url, err))? {
                None => break,
                Some(chunk) if body.len() + chunk.len() > MOST => {
                    let message = format!("`{}` answers with more than {MOST} bytes", place(url));
                    return Err(ListError::new(ListFault::Garbage, message));
                }
                Some(chunk) => body.extend_from_slice(&chunk),
            }
        }
        if !response.status().is_success() {
            return Err(self.refusal(url, &response, &body));
        }
        serde_json::from_slice(&body).map_err(|_| {
            let message = format!("what `{}` answers is no JSON; check `base_url`", place(url));
            ListError::new(ListFault::Garbage, message)
        })
    }

    fn slow(&self, url: &Url) -> ListError {
        let seconds = self.limit.as_secs_f64();
        let message = format!("`{}` did not answer within {seconds} s", place(url));
        ListError::new(ListFault::Slow, message)
    }

    fn unreachable(&self, url: &Url, err: reqwest::Error) -> ListError {
        let place = place(url);
        if let Some(why) = tls::fault(&err) {
            let message = format!("no safe connection to `{place}`: {why}");
            return ListError::new(ListFault::Refused, message);
        }
        let (connects, why) = (err.is_connect(), innermost(&err.without_url()));
        let message = match connects {
            true => format!("nobody answers at `{place}`: {why}"),
            false => format!("the connection to `{place}` failed: {why}"),
        };
        ListError::new(ListFault::Unreachable, self.secrets.hide(&message))
    }

    fn refusal(&self, url: &Url, response: &Response, body: &[u8]) -> ListError {
        let (status, place) = (response.status(), place(url));
        let fault = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ListFault::Unauthorized,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => ListFault::NotServed,
            _ => ListFault::Refused,
        };
        let words = words(body);
        let words = if words.is_empty() { words } else { format!(": {words}") };
        let message = format!("`{place}` answers {}{words}", status.as_u16());
        ListError::new(fault, self.secrets.hide(&message))
    }
}

/// The words of an error, whatever it is wrapped into.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let told: Option<Value> = serde_json::from_str(&text).ok();
    let told = told.as_ref().and_then(|told| {
        let error = told.get("error").unwrap_or(told);
        let fields = [error, &error["message"], &error["detail"]];
        fields.into_iter().find_map(Value::as_str)
    });
    let words = told.unwrap_or(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    // A web page says nothing to people who see its source.
    if words.starts_with('<') {
        return "a web page".to_owned();
    }
    words.chars().take(MOST_WORDS).collect()
}

fn headers(provider: &Provider) -> Result<HeaderMap, ListError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let bearer = provider.key.as_ref().map(|key| format!("Bearer {}", key.trim()));
    let bearer = bearer.map(|bearer| (AUTHORIZATION.to_string(), bearer));
    // Those of the chat profile go with every request of that wire.
    let chat = match provider.wire {
        Wire::Chat => provider.chat.for_model("").extra_headers,
        Wire::Responses | Wire::Demo => BTreeMap::new(),
    };
    let all = bearer.into_iter().chain(chat).chain(provider.headers.iter().cloned());
    for (name, value) in all {
        let read = || {
            let key = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((key, value))
        };
        let (key, value) = read().ok_or_else(|| {
            let message =
                format!("the header `{name}` cannot be sent: it holds what no header may");
            ListError::new(ListFault::Address, message)
        })?;
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Certificates are read away from the others' threads: that takes its time.
async fn client(base: &Url, provider: &Provider) -> Result<Client, ListError> {
    let agent = concat!("bindery/", env!("CARGO_PKG_VERSION"));
    let builder = Client::builder().user_agent(agent).redirect(reqwest::redirect::Policy::none());
    let builder = if tls::is_loopback(base) { builder.no_proxy() } else { builder };
    let authority = provider.authority.clone();
    // Somebody else may have named one; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let build = move || {
        let builder = tls::trusting(builder, authority.as_deref())?;
        builder.build().map_err(|err| err.to_string())
    };
    let built = tokio::task::spawn_blocking(build).await.map_err(|err| err.to_string());
    built
        .and_then(|built| built)
        .map_err(|why| ListError::new(ListFault::Refused, format!("cannot speak HTTP: {why}")))
}

/// Scheme, host, port and path: no name, no password, no secret of the query.
fn place(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn innermost(err: &dyn std::error::Error) -> String {
    let mut cause = err;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
