//! Events as they come, numbered, to be taken up again where they broke off.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::time::sleep;

use super::token_watch::WatchedStream;
use crate::error::Error;
use crate::turns::log::{Event, Reader};

/// The number after which a reader wants to go on.
pub fn last_event_id(headers: &HeaderMap, query: Option<u64>) -> Result<u64, Error> {
    let Some(header) = headers.get("last-event-id") else { return Ok(query.unwrap_or(0)) };
    let number = header.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| Error::invalid("Last-Event-ID", "it must be the number of an event"))
}

/// A reader on its way.
struct Stream {
    reader: Reader,
    watched: WatchedStream,
    quiet: Duration,
    /// Something was said; nothing is kept back until then.
    begun: bool,
}

impl Stream {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            // Lets a client, and what stands between, know that the stream is open.
            return Some(Bytes::from_static(b": open\n\n"));
        }
        tokio::select! {
            biased;
            () = self.watched.ended() => None,
            next = self.reader.next() => match next {
                Ok(events) => events.map(joined),
                Err(err) => {
                    tracing::error!(%err, "a stream broke off");
                    None
                }
            },
            () = sleep(self.quiet) => Some(Bytes::from_static(b": alive\n\n")),
        }
    }
}

/// One write for what is there.
fn joined(events: Vec<Event>) -> Bytes {
    if let [one] = &events[..] {
        return one.frame.clone();
    }
    let size = events.iter().map(|event| event.frame.len()).sum();
    let mut all = Vec::with_capacity(size);
    events.iter().for_each(|event| all.extend_from_slice(&event.frame));
    all.into()
}

/// The response that streams a reader's events.
pub fn respond(reader: Reader, quiet: Duration, watched: WatchedStream) -> Response {
    let stream = Stream { reader, watched, quiet, begun: false };
    let body = stream::unfold(stream, |mut stream| async move {
        stream.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), stream))
    });
    stream_of(Body::from_stream(body))
}

/// A response of SSE.
pub fn stream_of(body: Body) -> Response {
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache, no-transform")];
    let buffering = [("x-accel-buffering", "no")];
    (StatusCode::OK, headers, buffering, body).into_response()
}
