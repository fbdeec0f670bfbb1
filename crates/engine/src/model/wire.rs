//! What both wires do alike.

use std::borrow::Cow;

use reqwest::Response;
use tokio::sync::mpsc;
use tokio_util::bytes::Bytes;

use super::classify::Failure;
use super::clients::Clients;
use super::http::Http;
use super::retry::{self, Pace};
use super::{Answered, Fault, ModelError, ModelEvent, ModelRequest, Provider};

/// Headers of one request.
pub(super) type Headers = Vec<(Cow<'static, str>, String)>;

/// Shorter ones are words.
const MIN_KEY: usize = 8;

/// A server at one of its addresses, asked as often as it takes.
pub(super) struct Server {
    pub(super) http: Http,
    pace: Pace,
    /// Some servers repeat a key that they refuse.
    key: Option<String>,
}

impl Server {
    pub(super) fn new(provider: &Provider, path: &[&str], clients: &Clients) -> Self {
        let key = provider.key.clone().filter(|key| key.len() >= MIN_KEY);
        Self { http: Http::new(provider, path, clients), pace: Pace::of(provider), key }
    }

    /// Posts a body and has what comes back read.
    pub(super) async fn ask<Reading>(
        &self,
        body: &impl serde::Serialize,
        headers: &Headers,
        events: &mpsc::Sender<ModelEvent>,
        read: impl Fn(Response) -> Reading,
    ) -> Result<Answered, ModelError>
    where
        Reading: Future<Output = Result<Answered, Failure>>,
    {
        let body = encoded(body)?;
        let post = || self.http.post(body.clone(), headers);
        let once = async || read(retry::request(&self.pace, post).await?).await;
        retry::answer(&self.pace, events, once).await.map_err(|error| self.without_key(error))
    }

    fn without_key(&self, error: ModelError) -> ModelError {
        let Some(key) = &self.key else { return error };
        ModelError { message: error.message.replace(key, "…"), ..error }
    }
}

/// What tells the server whose request it is; keeps its caches and logs in order.
pub(super) fn headers(request: &ModelRequest) -> Headers {
    let mut headers = vec![("x-client-request-id".into(), uuid::Uuid::now_v7().to_string())];
    if !request.thread_id.is_empty() {
        headers.push(("session-id".into(), request.thread_id.clone()));
        headers.push(("thread-id".into(), request.thread_id.clone()));
    }
    if let Some(purpose) = request.purpose {
        headers.push(("x-openai-subagent".into(), purpose.to_owned()));
    }
    headers
}

/// The bytes of a body; sent as often as it takes.
fn encoded(body: &impl serde::Serialize) -> Result<Bytes, ModelError> {
    let encoded = serde_json::to_vec(body).map_err(|err| ModelError {
        kind: Fault::BadRequest,
        message: format!("the request cannot be written as JSON: {err}"),
        status: None,
    })?;
    Ok(encoded.into())
}

/// Tells an event. Nobody listening is no reason to leave the answer half.
pub(super) async fn tell(events: &mpsc::Sender<ModelEvent>, event: ModelEvent) {
    let _ = events.send(event).await;
}
