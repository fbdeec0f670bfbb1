//! Events as they come, numbered, to be taken up again where they broke off.

use std::collections::VecDeque;
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
use crate::turns::log::{Event, News, Reader};

/// The number after which a reader wants to go on.
pub fn last_event_id(headers: &HeaderMap, query: Option<u64>) -> Result<u64, Error> {
    let Some(header) = headers.get("last-event-id") else { return Ok(query.unwrap_or(0)) };
    let number = header.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| Error::invalid("Last-Event-ID", "it must be the number of an event"))
}

/// Bytes that are written at once, about. A reader that does not read keeps so many in memory; what
/// comes behind them is kept once for all readers, or read again.
const WRITE: usize = 64 * 1024;

/// A reader on its way.
struct Stream {
    reader: Reader,
    watched: WatchedStream,
    quiet: Duration,
    /// Events that were read and not written yet.
    waiting: VecDeque<Event>,
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
        if !self.waiting.is_empty() {
            return Some(joined(&mut self.waiting));
        }
        tokio::select! {
            biased;
            () = self.watched.ended() => None,
            next = self.reader.next_or_held() => match next {
                Ok(Some(News::Events(events))) => {
                    self.waiting.extend(events);
                    Some(joined(&mut self.waiting))
                }
                Ok(Some(News::Held(why))) => Some(held(&why)),
                Ok(None) => None,
                Err(err) => {
                    tracing::error!(%err, "a stream broke off");
                    None
                }
            },
            () = sleep(self.quiet) => Some(Bytes::from_static(b": alive\n\n")),
        }
    }
}

/// An event without a number: it is not kept, and a reader that comes back does not get it again.
fn held(why: &str) -> Bytes {
    let data = serde_json::json!({ "code": "store_unwritable", "message": why });
    format!("event: held\ndata: {data}\n\n").into()
}

/// One write for what is there.
fn joined(events: &mut VecDeque<Event>) -> Bytes {
    let Some(first) = events.pop_front() else { return Bytes::new() };
    let fits = |size: &mut usize, event: &Event| {
        *size += event.frame.len();
        (*size <= WRITE).then_some(*size)
    };
    let sizes = events.iter().scan(first.frame.len(), fits);
    let (count, size) = sizes.enumerate().last().map_or((0, 0), |(at, size)| (at + 1, size));
    if count == 0 {
        return first.frame;
    }
    let mut all = Vec::with_capacity(size);
    all.extend_from_slice(&first.frame);
    events.drain(..count).for_each(|event| all.extend_from_slice(&event.frame));
    all.into()
}

/// The response that streams a reader's events.
pub fn respond(reader: Reader, quiet: Duration, watched: WatchedStream) -> Response {
    let stream = Stream { reader, watched, quiet, waiting: VecDeque::new(), begun: false };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::log::Kind;

    #[test]
    fn events_are_joined_up_to_a_bound_and_in_order() {
        let sizes = [10, 10, WRITE - 100, 10, WRITE * 2, 10, 10];
        let events =
            (1..).zip(sizes).map(|(seq, size)| Event::new(seq, Kind::Part, &"x".repeat(size)));
        let mut waiting: VecDeque<Event> = events.collect();
        let whole: Vec<u8> = waiting.iter().flat_map(|event| event.frame.to_vec()).collect();
        let mut written = Vec::new();
        while !waiting.is_empty() {
            written.push(joined(&mut waiting));
        }
        assert_eq!(written.concat(), whole);
        let long = written.iter().filter(|bytes| bytes.len() > WRITE).count();
        assert_eq!(long, 1, "only the event that is longer by itself");
        assert!(written.len() <= 4);
    }
}
