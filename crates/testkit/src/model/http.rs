//! Just enough HTTP/1.1, written by hand so that a body can be cut at any byte.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::server::Request;

const MAX_HEAD: u64 = 256 * 1024;
const MAX_BODY: usize = 256 * 1024 * 1024;

/// Reads one request; a body that is not JSON is kept as a string.
pub(super) async fn read(reader: &mut BufReader<OwnedReadHalf>) -> Result<Request> {
    let mut head = reader.take(MAX_HEAD);
    let mut line = String::new();
    head.read_line(&mut line).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(Error::new(ErrorKind::InvalidData, "not a request line"));
    };
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        head.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    if length > MAX_BODY {
        return Err(Error::new(ErrorKind::InvalidData, "the body is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Ok(Request { method, path, headers, body })
}

/// A whole answer that is not a stream.
pub(super) async fn answer(
    to: &mut OwnedWriteHalf,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> Result<()> {
    let (kind, body) = match body {
        Value::String(text) => ("text/plain", text.clone()),
        body => ("application/json", body.to_string()),
    };
    let mut head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
        body.len(),
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    to.write_all(format!("{head}\r\n{body}").as_bytes()).await
}

/// A chunked event stream; ends properly only by [`Stream::finish`].
pub(super) struct Stream<W> {
    to: W,
    begun: bool,
}

impl<W: AsyncWrite + Unpin> Stream<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, begun: false }
    }

    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// The writer, for an answer that is not a stream.
    pub(super) fn writer(&mut self) -> &mut W {
        &mut self.to
    }

    pub(super) async fn begin(&mut self) -> Result<()> {
        self.begun = true;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        self.to.write_all(head.as_bytes()).await
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        // An empty chunk would end the body.
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.to.write_all(&chunk).await
    }

    pub(super) async fn finish(&mut self) -> Result<()> {
        self.to.write_all(b"0\r\n\r\n").await
    }
}
