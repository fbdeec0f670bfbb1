//! A bare HTTP client: one request a connection, events line by line.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::HANG;

/// A server and a token for it.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) id: u64,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Web {
    /// The same server, with another token.
    pub(crate) fn with(&self, token: &str) -> Self {
        Self { token: token.trim().to_owned(), ..self.clone() }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None, &[]).await
    }

    /// What is no JSON.
    pub(crate) async fn text(&self, path: &str) -> (u16, String) {
        let asking = async {
            let (status, mut reader) = self.open("GET", path, None, &[]).await;
            (status, reader.all().await)
        };
        timeout(HANG, asking).await.expect("the server does not answer")
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask("POST", path, Some(body), &[]).await
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let asking = async {
            let (status, mut reader) = self.open(method, path, body, headers).await;
            (status, serde_json::from_str(&reader.all().await).unwrap_or(Value::Null))
        };
        timeout(HANG, asking).await.expect("the server does not answer")
    }

    /// Asks a server that may end meanwhile; none if no whole answer came.
    pub(crate) async fn try_post(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Option<(u16, Value)> {
        let mut head = self.head("POST", path) + "content-type: application/json\r\n";
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let asking = async {
            let (status, mut lines) =
                self.try_exchange(head, body.to_string().as_bytes()).await.ok()?;
            Some((status, serde_json::from_str(&lines.all().await).ok()?))
        };
        timeout(HANG, asking).await.expect("the server does not answer")
    }

    /// Follows a turn after this event.
    pub(crate) async fn follow(&self, turn: &str, after: u64) -> Events {
        let path = format!("/v1/turns/{turn}/events");
        let after = after.to_string();
        let headers = [("last-event-id", after.as_str())];
        let opening = self.open("GET", &path, None, &headers);
        let (status, lines) = timeout(HANG, opening).await.expect("the stream does not open");
        assert_eq!(status, 200, "{path}");
        Events { lines }
    }

    /// Makes a call whose answer is a stream.
    pub(crate) async fn call(&self, path: &str, body: Value) -> Events {
        let opening = self.open("POST", path, Some(body), &[]);
        let (status, lines) = timeout(HANG, opening).await.expect("the stream does not open");
        assert_eq!(status, 200, "{path}");
        Events { lines }
    }

    /// Sends bytes of another type than JSON.
    pub(crate) async fn send(&self, path: &str, kind: &str, body: &[u8]) -> (u16, Value) {
        let sending = async {
            let head = format!("{}content-type: {kind}\r\n", self.head("POST", path));
            let (status, mut lines) = self.exchange(head, body).await;
            (status, serde_json::from_str(&lines.all().await).unwrap_or(Value::Null))
        };
        timeout(HANG, sending).await.expect("the server does not answer")
    }

    fn head(&self, method: &str, path: &str) -> String {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        if !self.token.is_empty() {
            head.push_str(&format!("authorization: Bearer {}\r\n", self.token));
        }
        head
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> (u16, Lines) {
        let mut head = self.head(method, path);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        self.exchange(head, body.as_bytes()).await
    }

    async fn exchange(&self, head: String, body: &[u8]) -> (u16, Lines) {
        self.try_exchange(head, body).await.unwrap()
    }

    async fn try_exchange(&self, mut head: String, body: &[u8]) -> std::io::Result<(u16, Lines)> {
        let mut stream = TcpStream::connect(self.address).await?;
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut reader = BufReader::new(stream);
        let (mut status, mut chunked) = (0, false);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        Ok((status, Lines { reader, chunked, rest: Vec::new(), over: false, in_order: false }))
    }
}

/// The lines of a body.
pub(crate) struct Lines {
    reader: BufReader<TcpStream>,
    chunked: bool,
    rest: Vec<u8>,
    over: bool,
    /// It said that it was over.
    in_order: bool,
}

impl Lines {
    async fn all(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) = self.line().await {
            text.push_str(&line);
        }
        text
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if self.over {
                let rest = std::mem::take(&mut self.rest);
                return (!rest.is_empty()).then(|| String::from_utf8(rest).unwrap());
            }
            self.more().await;
        }
    }

    /// A broken connection is the end, too.
    async fn more(&mut self) {
        if !self.chunked {
            let _ = self.reader.read_to_end(&mut self.rest).await;
            self.over = true;
            return;
        }
        let mut size = String::new();
        let read = self.reader.read_line(&mut size).await;
        self.in_order = size.trim() == "0";
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        if read.is_err() || size == 0 || self.reader.read_exact(&mut chunk).await.is_err() {
            self.over = true;
            return;
        }
        self.rest.extend_from_slice(&chunk[..size]);
    }
}

/// The events of a turn.
pub(crate) struct Events {
    lines: Lines,
}

impl Events {
    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        timeout(HANG, self.read()).await.expect("no event comes")
    }

    async fn read(&mut self) -> Option<Heard> {
        let mut heard = Heard { id: 0, event: String::new(), data: Value::Null };
        loop {
            let line = self.lines.line().await?;
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => heard.id = id.parse().unwrap(),
                Some(("event", event)) => heard.event = event.to_owned(),
                Some(("data", data)) => heard.data = serde_json::from_str(data).unwrap(),
                Some(_) => {}
                None if heard.id > 0 => return Some(heard),
                None => {}
            }
        }
    }

    /// Events up to the first that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Heard) -> bool) -> Vec<Heard> {
        let mut all = Vec::new();
        loop {
            let Some(next) = self.next().await else { panic!("the stream ended: {all:#?}") };
            let done = fits(&next);
            all.push(next);
            if done {
                return all;
            }
        }
    }

    /// Why what comes next is held back, once it is.
    pub(crate) async fn held(&mut self) -> Value {
        let reading = async {
            let mut named = false;
            while let Some(line) = self.lines.line().await {
                match line.trim_end().split_once(": ") {
                    Some(("event", event)) => named = event == "held",
                    Some(("data", data)) if named => return serde_json::from_str(data).unwrap(),
                    _ => {}
                }
            }
            panic!("the stream ended")
        };
        timeout(HANG, reading).await.expect("nobody says that it is held")
    }

    /// Events to the end, and whether that was one: a connection may also break.
    pub(crate) async fn rest_and_whether_it_ended_in_order(mut self) -> (Vec<Heard>, bool) {
        let mut all = Vec::new();
        while let Some(next) = self.next().await {
            all.push(next);
        }
        (all, self.lines.in_order)
    }

    /// Events to the end.
    pub(crate) async fn rest(mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some(next) = self.next().await {
            all.push(next);
        }
        all
    }
}

/// The text that events say, all pieces joined.
pub(crate) fn text(events: &[Heard]) -> String {
    let deltas = events.iter().filter(|heard| heard.data["type"] == "text-delta");
    deltas.filter_map(|heard| heard.data["delta"].as_str()).collect()
}

/// The kinds of parts, runs of the same kind as one. Where a step ends is a matter of milliseconds,
/// so that is left out.
pub(crate) fn sketch(events: &[Heard]) -> String {
    let border = |heard: &&Heard| {
        let kind = &heard.data["type"];
        let waits = heard.data["finishReason"]["unified"] == "tool-calls";
        kind == "stream-start" || kind == "response-metadata" || waits
    };
    let mut words: Vec<&str> = events.iter().filter(|heard| !border(heard)).map(word).collect();
    words.dedup();
    words.join(" ")
}

fn word(heard: &Heard) -> &str {
    match heard.event.as_str() {
        "part" => heard.data["kind"].as_str().or(heard.data["type"].as_str()).unwrap(),
        "end" => heard.data["state"].as_str().unwrap(),
        other => other,
    }
}
