//! Just enough of an HTTP client: one connection, requests one after the other.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;

/// How long a response may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a chunked response ends.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// A connection that is kept.
pub(super) struct Web {
    stream: TcpStream,
    host: String,
    token: String,
}

/// A stream that was read to its end.
pub(super) struct Called {
    pub(super) time: Duration,
    text: String,
}

impl Called {
    /// How often a text came.
    pub(super) fn count(&self, text: &str) -> usize {
        self.text.matches(text).count()
    }
}

impl Web {
    pub(super) fn connect(url: &str, token: &str) -> anyhow::Result<Self> {
        let host = url.strip_prefix("http://").context("not an address")?.to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, host, token: token.to_owned() })
    }

    /// Calls the language model, and reads all its parts.
    pub(super) fn call(&mut self, body: &Value) -> anyhow::Result<Called> {
        let called = self.read_all("POST", "/v1/language-model/stream", Some(body))?;
        ensure!(called.text.contains("[DONE]"), "it failed: {}", called.text);
        Ok(called)
    }

    /// The same; each part is heard as soon as it is there.
    pub(super) fn follow(
        &mut self,
        body: &Value,
        mut hear: impl FnMut(&str),
    ) -> anyhow::Result<()> {
        self.send("POST", "/v1/language-model/stream", Some(body))?;
        let mut heard = 0;
        let text = self.receive(|all| {
            while let Some(end) = all[heard..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&all[heard..heard + end]);
                line.strip_prefix("data: ").iter().for_each(|data| hear(data.trim_end()));
                heard += end + 1;
            }
            all.ends_with(END)
        })?;
        ensure!(text.starts_with("HTTP/1.1 200"), "it failed: {text}");
        Ok(())
    }

    /// Reads a stream to its end.
    pub(super) fn read_all(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Called> {
        let begun = Instant::now();
        self.send(method, path, body)?;
        let text = self.receive(|all| all.ends_with(END))?;
        ensure!(text.starts_with("HTTP/1.1 200"), "it failed: {text}");
        Ok(Called { time: begun.elapsed(), text })
    }

    /// Reads a stream that has no end of its own until this comes.
    pub(super) fn read_until(&mut self, path: &str, text: &str) -> anyhow::Result<()> {
        self.send("GET", path, None)?;
        let mut looked = 0_usize;
        self.receive(|all| {
            // It may have come in two halves, so a little is looked at again.
            let from = looked.saturating_sub(text.len());
            looked = all.len();
            all[from..].windows(text.len()).any(|window| window == text.as_bytes())
        })?;
        Ok(())
    }

    /// Asks for JSON.
    pub(super) fn ask(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send("POST", path, Some(body))?;
        let text = self.receive(|all| length(all).is_some_and(|length| all.len() >= length))?;
        let (head, json) = text.split_once("\r\n\r\n").context("a response without a body")?;
        ensure!(head.starts_with("HTTP/1.1 20"), "it failed: {text}");
        Ok(serde_json::from_str(json)?)
    }

    fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<()> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        Ok(self.stream.write_all(request.as_bytes())?)
    }

    fn receive(&mut self, mut is_all: impl FnMut(&[u8]) -> bool) -> anyhow::Result<String> {
        let (mut all, mut piece) = (Vec::new(), vec![0; 256 * 1024]);
        while !is_all(&all) {
            let read = self.stream.read(&mut piece)?;
            ensure!(read > 0, "the connection was closed: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&piece[..read]);
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    }
}

/// Bytes of a response that says its length, head and body.
fn length(response: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(response).ok()?;
    let (head, _) = text.split_once("\r\n\r\n")?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    Some(head.len() + 4 + length.trim().parse::<usize>().ok()?)
}
