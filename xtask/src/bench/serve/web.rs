//! Just enough of an HTTP client: one connection, calls one after the other.

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

/// A call that was read to its end.
pub(super) struct Called {
    pub(super) time: Duration,
    pub(super) parts: usize,
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
        let begun = Instant::now();
        let all = self.read(body, |_| ())?;
        let time = begun.elapsed();
        let text = String::from_utf8_lossy(&all);
        ensure!(text.starts_with("HTTP/1.1 200") && text.contains("[DONE]"), "it failed: {text}");
        Ok(Called { time, parts: text.matches("id: ").count() })
    }

    /// The same; each part is heard as soon as it is there.
    pub(super) fn follow(
        &mut self,
        body: &Value,
        mut hear: impl FnMut(&str),
    ) -> anyhow::Result<()> {
        let mut heard = 0;
        let all = self.read(body, |all| {
            while let Some(end) = all[heard..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&all[heard..heard + end]);
                line.strip_prefix("data: ").iter().for_each(|data| hear(data.trim_end()));
                heard += end + 1;
            }
        })?;
        ensure!(all.starts_with(b"HTTP/1.1 200"), "it failed: {}", String::from_utf8_lossy(&all));
        Ok(())
    }

    fn read(&mut self, body: &Value, mut more: impl FnMut(&[u8])) -> anyhow::Result<Vec<u8>> {
        let body = body.to_string();
        let request = format!(
            "POST /v1/language-model/stream HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let (mut all, mut piece) = (Vec::new(), vec![0; 256 * 1024]);
        while !all.ends_with(END) {
            let read = self.stream.read(&mut piece)?;
            ensure!(read > 0, "the connection was closed: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&piece[..read]);
            more(&all);
        }
        Ok(all)
    }
}
