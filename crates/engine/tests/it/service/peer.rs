//! A bare client over memory.

use std::collections::VecDeque;

use bindery_engine::service::Service;
use bindery_engine::service::connection::{Incoming, Wire};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::stage::PATIENCE;

/// One client.
pub(crate) struct Peer {
    wire: Wire,
    next: i64,
    /// Heard while waiting for something else.
    heard: VecDeque<Value>,
}

impl Peer {
    /// Connects, and says nothing yet.
    pub(crate) fn silent(service: &Service) -> Self {
        Self { wire: service.connect(), next: 0, heard: VecDeque::new() }
    }

    /// Connects and greets.
    pub(crate) async fn new(service: &Service) -> Self {
        let mut peer = Self::silent(service);
        let capabilities = json!({ "experimentalApi": true });
        let hello = json!({ "clientInfo": { "name": "peer", "version": "1" },
            "capabilities": capabilities });
        peer.ask("initialize", hello).await.unwrap();
        peer.send(&json!({ "method": "initialized" })).await;
        peer
    }

    pub(crate) async fn send(&self, message: &Value) {
        self.send_line(message.to_string().into_bytes()).await;
    }

    pub(crate) async fn send_line(&self, line: Vec<u8>) {
        self.wire.incoming.send(Incoming::Line(line)).await.unwrap();
    }

    pub(crate) async fn send_raw(&self, incoming: Incoming) {
        self.wire.incoming.send(incoming).await.unwrap();
    }

    /// Asks and waits for the answer: a result, or the message of the refusal.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "id": id, "method": method, "params": params })).await;
        self.answer(id).await
    }

    pub(crate) async fn answer(&mut self, id: i64) -> Result<Value, String> {
        let mut reply = self.until(|line| line["id"] == id && line.get("method").is_none()).await;
        match reply.get("error") {
            Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
            None => Ok(reply["result"].take()),
        }
    }

    /// The next line of a method, whatever comes before it.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        self.until(|line| line["method"] == method).await
    }

    /// The first line that fits; the others stay to be heard.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&fits) {
            return self.heard.remove(at).unwrap();
        }
        loop {
            let line = self.next().await.expect("the connection ended");
            if fits(&line) {
                return line;
            }
            self.heard.push_back(line);
        }
    }

    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.wire.outgoing.next()).await.expect("nothing comes")?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    /// What was heard so far and not asked for.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        while let Some(line) = self.wire.outgoing.ready() {
            self.heard.push_back(serde_json::from_str(&line).expect("JSON"));
        }
        let names = self.heard.drain(..);
        names.map(|line| line["method"].as_str().unwrap_or("a reply").to_owned()).collect()
    }

    /// Whether the service has hung up.
    pub(crate) async fn hung_up(&self) {
        timeout(PATIENCE, self.wire.over.cancelled()).await.expect("the connection lives on");
    }

    /// Starts a thread with a tool of ours.
    pub(crate) async fn thread(&mut self) -> String {
        let tool = json!({ "type": "function", "name": "oracle", "description": "knows",
            "inputSchema": { "type": "object" } });
        let opened = self.ask("thread/start", json!({ "dynamicTools": [tool] })).await.unwrap();
        opened["thread"]["id"].as_str().unwrap().to_owned()
    }

    /// Starts a turn.
    pub(crate) async fn turn(&mut self, thread: &str, words: &str) -> String {
        let input = json!([{ "type": "text", "text": words }]);
        let params = json!({ "threadId": thread, "input": input });
        let opened = self.ask("turn/start", params).await.unwrap();
        opened["turn"]["id"].as_str().unwrap().to_owned()
    }

    /// Runs a turn to its end and gives the answer.
    pub(crate) async fn say(&mut self, thread: &str, words: &str) -> String {
        self.turn(thread, words).await;
        self.ended().await
    }

    /// The last words of the turn that ends next.
    pub(crate) async fn ended(&mut self) -> String {
        let told = self.told("turn/completed").await;
        let turn = &told["params"]["turn"];
        assert_eq!(turn["status"], "completed", "{turn}");
        turn["items"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}
