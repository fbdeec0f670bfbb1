//! A bare client: sends and receives JSON lines, and keeps a transcript of both.

use std::io::Result;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines as Text,
};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a message may take: long, because machines that test are busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One end of a connection that speaks JSON lines.
pub struct Lines {
    from: Text<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    to: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    child: Option<Child>,
    next_id: u64,
    began: Instant,
    transcript: Vec<Value>,
}

impl Lines {
    /// Speaks over these halves.
    pub fn new(
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let from: Box<dyn AsyncRead + Send + Unpin> = Box::new(from);
        Self {
            from: BufReader::new(from).lines(),
            to: Some(Box::new(to)),
            child: None,
            next_id: 1,
            began: Instant::now(),
            transcript: Vec::new(),
        }
    }

    /// Starts a process and speaks over its stdio; it is killed when this is dropped.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(command: std::process::Command) -> Result<Self> {
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(from), Some(to)) = (child.stdout.take(), child.stdin.take()) else {
            unreachable!("both were piped");
        };
        Ok(Self { child: Some(child), ..Self::new(from, to) })
    }

    /// Sends one message.
    ///
    /// # Panics
    /// If the other end is gone.
    pub async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.note("send", message);
        let to = self.to.as_mut().expect("sending after `close`");
        to.write_all(line.as_bytes()).await.expect("the other end reads");
        to.flush().await.expect("the other end reads");
    }

    /// The next message, or `None` at the end of the stream.
    ///
    /// # Panics
    /// If it does not come in time or is not JSON.
    pub async fn next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.from.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("nothing came; so far: {}", self.sketch()));
        let line = line.expect("a readable stream")?;
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|err| panic!("not JSON ({err}): {line}"));
        self.note("recv", message.clone());
        Some(message)
    }

    /// Skips to the first message that fits.
    ///
    /// # Panics
    /// If the stream ends first.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            let message = message.unwrap_or_else(|| panic!("ended; so far: {}", self.sketch()));
            if fits(&message) {
                return message;
            }
        }
    }

    /// Skips to the first message with this method.
    pub async fn until_method(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method).await
    }

    /// Sends a request and skips to its reply; gives the whole reply.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Shakes hands as a client with the experimental API.
    pub async fn initialize(&mut self) -> Value {
        let params = json!({
            "clientInfo": { "name": "testkit", "title": null, "version": "0.1.0" },
            "capabilities": { "experimentalApi": true },
        });
        let reply = self.request("initialize", params).await;
        self.send(json!({ "method": "initialized" })).await;
        reply
    }

    /// Starts a thread and gives its id.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn start_thread(&mut self, params: Value) -> String {
        let reply = self.request("thread/start", params).await;
        let id = reply["result"]["thread"]["id"].as_str();
        id.unwrap_or_else(|| panic!("no thread: {reply}")).to_owned()
    }

    /// Starts a turn of one text and skips to its end; gives `turn/completed`.
    pub async fn run_turn(&mut self, thread: &str, text: &str) -> Value {
        let input = json!([{ "type": "text", "text": text, "text_elements": [] }]);
        let reply = self.request("turn/start", json!({ "threadId": thread, "input": input })).await;
        let turn = reply["result"]["turn"]["id"].clone();
        assert!(turn.is_string(), "no turn: {reply}");
        let ended = |message: &Value| {
            message["method"] == "turn/completed" && message["params"]["turn"]["id"] == turn
        };
        self.until(ended).await
    }

    /// Closes our side, reads the rest and gives the exit code, if there was a process.
    pub async fn close(&mut self) -> Option<i32> {
        if let Some(mut to) = self.to.take() {
            let _ = to.shutdown().await;
        }
        while self.next().await.is_some() {}
        let status = self.child.as_mut()?.wait().await;
        status.ok()?.code()
    }

    /// The id of the process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// All messages so far, as lines of a recording: `{dir, t_ms, msg}`.
    pub fn transcript(&self) -> &[Value] {
        &self.transcript
    }

    /// The messages received with this method.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let messages = self.transcript.iter().filter(|line| line["dir"] == "recv");
        let messages = messages.map(|line| &line["msg"]);
        messages.filter(|message| message["method"] == method).cloned().collect()
    }

    /// Bytes that are left, lossily; for streams that are not JSON.
    pub async fn rest(self) -> String {
        let mut bytes = Vec::new();
        let mut from = self.from.into_inner();
        let _ = timeout(PATIENCE, from.read_to_end(&mut bytes)).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn note(&mut self, dir: &str, msg: Value) {
        let t_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.transcript.push(json!({ "dir": dir, "t_ms": t_ms, "msg": msg }));
    }

    /// The messages so far, by name: enough to see where a test went wrong.
    fn sketch(&self) -> String {
        let name = |line: &Value| {
            let message = &line["msg"];
            let name = message["method"].as_str().map_or_else(
                || format!("reply {}", message.get("error").unwrap_or(&message["id"])),
                str::to_owned,
            );
            format!("{} {name}", line["dir"].as_str().unwrap_or_default())
        };
        self.transcript.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}
