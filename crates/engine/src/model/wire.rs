//! What both wires do alike.

use tokio::sync::mpsc;
use tokio_util::bytes::Bytes;

use super::{Fault, ModelError, ModelEvent, ModelRequest};

/// Headers of one request.
pub(super) type Headers = Vec<(&'static str, String)>;

/// What tells the server whose request it is; keeps its caches and logs in order.
pub(super) fn headers(request: &ModelRequest) -> Headers {
    let mut headers = vec![("x-client-request-id", uuid::Uuid::now_v7().to_string())];
    if !request.thread_id.is_empty() {
        headers.push(("session-id", request.thread_id.clone()));
        headers.push(("thread-id", request.thread_id.clone()));
    }
    if let Some(purpose) = request.purpose {
        headers.push(("x-openai-subagent", purpose.to_owned()));
    }
    headers
}

/// The bytes of a body; sent as often as it takes.
pub(super) fn encoded(body: &impl serde::Serialize) -> Result<Bytes, ModelError> {
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
