//! The app-server's envelope: JSON-RPC in shape, without its `jsonrpc` field.
//!
//! Parameters and results stay raw text, so an envelope costs one pass over the line and no tree.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::lines::HEAD;
use crate::surrogates::mended;

/// The code of a server that takes no more requests for now.
pub const OVERLOADED: i64 = -32001;

/// What pairs a reply with its request; an integer or a string, echoed as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

/// One line, read.
#[derive(Clone, Debug)]
pub enum Message {
    /// The other side asks and waits for an answer.
    Request {
        /// To be echoed in the answer.
        id: RequestId,
        /// What is asked.
        method: String,
        /// JSON text; `null` where the line had none.
        params: Box<RawValue>,
    },
    /// The other side tells.
    Notification {
        /// What is told.
        method: String,
        /// JSON text; `null` where the line had none.
        params: Box<RawValue>,
        /// The sender's clock in milliseconds; Codex 0.166 adds it to every notification.
        emitted_at_ms: Option<i64>,
    },
    /// A request of ours went well.
    Response {
        /// Which request.
        id: RequestId,
        /// JSON text.
        result: Box<RawValue>,
    },
    /// A request of ours was refused.
    Error {
        /// Which request.
        id: RequestId,
        /// Why.
        error: RpcError,
    },
    /// Nothing we can give meaning to; to be shown, never dropped.
    Unknown {
        /// The line's beginning, at most [`HEAD`] bytes of it, invalid UTF-8 replaced.
        raw: String,
        /// Length of the line.
        bytes: u64,
        /// What was wrong with it.
        why: String,
    },
}

/// A refusal.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RpcError {
    /// Codex 0.166 sends -32600 for nearly everything; 0 if the error had no readable code.
    pub code: i64,
    /// What Codex says; the raw error if it had another shape.
    pub message: String,
    /// More, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

/// What the beginning of an over-long line shows about the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// It answers this request of ours.
    Reply(RequestId),
    /// It asks under this id.
    Request(RequestId),
    /// It tells, or it does not show what it is.
    Other,
}

/// Reads one line. Never fails, never drops.
pub fn decode(line: &[u8]) -> Message {
    read(line).unwrap_or_else(|why| Message::Unknown {
        raw: excerpt(line),
        bytes: line.len() as u64,
        why,
    })
}

/// Reads the beginning of a line that was too long to keep.
pub fn decode_head(head: &[u8]) -> Head {
    let mut seen = Seen::default();
    // The text ends amid a value, so this always fails; what was seen until then counts.
    let _ = serde_json::Deserializer::from_slice(head).deserialize_map(&mut seen);
    match seen {
        Seen { id: Some(id), method: true, .. } => Head::Request(id),
        Seen { id: Some(id), answer: true, .. } => Head::Reply(id),
        _ => Head::Other,
    }
}

/// Writes a request as one line, without the line feed; `null` parameters are left out.
pub fn request(
    id: &RequestId,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<Vec<u8>> {
    let mut line = b"{\"id\":".to_vec();
    serde_json::to_writer(&mut line, id)?;
    line.extend_from_slice(b",\"method\":");
    call(line, method, params)
}

/// Writes a notification as one line, without the line feed; `null` parameters are left out.
pub fn notification(
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<Vec<u8>> {
    call(b"{\"method\":".to_vec(), method, params)
}

/// Writes the answer to a request of the other side, without the line feed.
pub fn response(id: &RequestId, result: &(impl Serialize + ?Sized)) -> serde_json::Result<Vec<u8>> {
    answer(id, b",\"result\":", result)
}

/// Writes a refusal of a request of the other side, without the line feed.
pub fn error(id: &RequestId, error: &RpcError) -> serde_json::Result<Vec<u8>> {
    answer(id, b",\"error\":", error)
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "emittedAtMs")]
    emitted_at_ms: Option<&'a RawValue>,
}

/// Keeps `null` apart from absence: `"result":null` is an answer.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn read(line: &[u8]) -> Result<Message, String> {
    let text = std::str::from_utf8(line).map_err(|err| err.to_string())?;
    // Without this check serde would read an array as the envelope's fields in order.
    if !text.trim_start().starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    let (text, _) = mended(text);
    let envelope: Envelope<'_> = serde_json::from_str(&text).map_err(|err| err.to_string())?;
    let params = || envelope.params.unwrap_or(RawValue::NULL).to_owned();
    let id = envelope.id.map(id).transpose()?;
    match (id, envelope.method) {
        (Some(id), Some(method)) => Ok(Message::Request { id, method, params: params() }),
        (None, Some(method)) => Ok(Message::Notification {
            method,
            params: params(),
            emitted_at_ms: envelope.emitted_at_ms.and_then(|raw| raw.get().parse().ok()),
        }),
        (Some(id), None) => match (envelope.error, envelope.result) {
            (Some(raw), _) => Ok(Message::Error { id, error: refusal(raw) }),
            (None, Some(raw)) => Ok(Message::Response { id, result: raw.to_owned() }),
            (None, None) => Err("neither `method`, `result` nor `error`".to_owned()),
        },
        (None, None) => Err("neither `id` nor `method`".to_owned()),
    }
}

fn id(raw: &RawValue) -> Result<RequestId, String> {
    serde_json::from_str(raw.get())
        .map_err(|_| format!("`id` is neither an integer nor a string: {}", cut(raw.get(), 64)))
}

/// A refusal of a shape we do not know is still a refusal: its request must not wait on.
fn refusal(raw: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct Shape {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
    }
    match serde_json::from_str(raw.get()) {
        Ok(Shape { code, message, data }) => RpcError { code, message, data },
        Err(_) => RpcError { message: cut(raw.get(), HEAD).to_owned(), ..RpcError::default() },
    }
}

fn excerpt(line: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
    cut(&lossy, HEAD).to_owned()
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn call(
    mut line: Vec<u8>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<Vec<u8>> {
    serde_json::to_writer(&mut line, method)?;
    let before = line.len();
    line.extend_from_slice(b",\"params\":");
    let start = line.len();
    serde_json::to_writer(&mut line, params)?;
    if &line[start..] == b"null" {
        line.truncate(before);
    }
    Ok(closed(line))
}

fn answer(
    id: &RequestId,
    key: &[u8],
    value: &(impl Serialize + ?Sized),
) -> serde_json::Result<Vec<u8>> {
    let mut line = b"{\"id\":".to_vec();
    serde_json::to_writer(&mut line, id)?;
    line.extend_from_slice(key);
    serde_json::to_writer(&mut line, value)?;
    Ok(closed(line))
}

/// Raw values are written as they are and may hold line feeds; between tokens a space does as well.
fn closed(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'}');
    if memchr::memchr2(b'\n', b'\r', &line).is_some() {
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    line
}

#[derive(Default)]
struct Seen {
    id: Option<RequestId>,
    method: bool,
    answer: bool,
}

impl<'de> Visitor<'de> for &mut Seen {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => {
                    self.id = map.next_value()?;
                    continue;
                }
                "method" => self.method = true,
                "result" | "error" => self.answer = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
