//! Reads recordings of app-server runs and plays them through decoder and mapper.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

use bindery_core::ids::{ApprovalId, ThreadId, TurnId};
use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::map::app_server_to_part::{Cut, Ledger, TurnContext, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::{Body, Notification};
use bindery_core::wire::app_server::request::ServerRequest;
use bindery_core::wire::rpc::{self, Message, RequestId};
use serde_json::Value;

/// The folder of recordings.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/app-server/0.166.0")
}

/// The names of all recordings.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl").map(Into::into)
        })
        .collect();
    names.sort();
    names
}

/// One line of a recording.
pub(crate) struct Line {
    /// Codex said it (else we did).
    pub(crate) received: bool,
    /// The connection it went over.
    pub(crate) conn: String,
    /// The message.
    pub(crate) message: Value,
}

/// The lines of a recording.
pub(crate) fn lines(name: &str) -> Vec<Line> {
    let text = fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
    let line = |line: Value| Line {
        received: line["dir"] == "recv",
        conn: line.get("conn").map(Value::to_string).unwrap_or_default(),
        message: line["msg"].clone(),
    };
    let lines = text.lines().map(|text| line(serde_json::from_str(text).unwrap()));
    // The recorder's own note that a socket was closed is nothing Codex said.
    lines.filter(|line| line.message.get("_closed").is_none()).collect()
}

/// The parts of every turn of a recording, in the order the turns began, connection by connection.
pub(crate) fn parts(name: &str) -> Vec<Vec<Part>> {
    play(name, Player::default)
}

/// The same, from mappers that are made anew, out of what they told, before every message.
pub(crate) fn recalled_parts(name: &str) -> Vec<Vec<Part>> {
    play(name, || Player { recalls: true, ..Player::default() })
}

fn play(name: &str, player: impl Fn() -> Player) -> Vec<Vec<Part>> {
    let mut players: BTreeMap<String, Player> = BTreeMap::new();
    for line in lines(name) {
        let player = players.entry(line.conn.clone()).or_insert_with(&player);
        player.recall();
        match line.received {
            true => player.take(line.message.to_string().as_bytes()),
            false => player.answer(&line.message),
        }
    }
    players.into_values().flat_map(|player| player.turns).collect()
}

/// Plays messages, starting a mapper for each turn of a thread that is nobody's sub-agent.
#[derive(Default)]
pub(crate) struct Player {
    live: HashMap<ThreadId, (usize, TurnMapper)>,
    ledgers: HashMap<ThreadId, Ledger>,
    asked: HashMap<String, Interrupt>,
    /// The turn of each mapper.
    ids: HashMap<ThreadId, TurnId>,
    recalls: bool,
    pub(crate) turns: Vec<Vec<Part>>,
}

impl Player {
    /// Takes one line of Codex's.
    pub(crate) fn take(&mut self, line: &[u8]) {
        match rpc::decode(line) {
            Message::Notification { method, params, .. } => {
                self.tell(&Notification::decode(&method, &params));
            }
            Message::Request { id, method, params } => {
                self.ask(&id, &ServerRequest::decode(&method, &params));
            }
            Message::Unknown { why, raw, .. } => self.stumble(&why, &raw),
            Message::Response { .. } | Message::Error { .. } => {}
        }
    }

    /// Ends every turn that is still open, and gives the parts of all.
    pub(crate) fn finish(mut self) -> Vec<Vec<Part>> {
        let cut = Cut { kind: "closed".to_owned(), message: "the recording ended".to_owned() };
        for (index, mapper) in self.live.values_mut() {
            self.turns[*index].extend(mapper.cut(&cut));
        }
        self.turns
    }

    /// Forgets every mapper, and makes it again from what it told.
    fn recall(&mut self) {
        for (thread, (index, mapper)) in self.live.iter_mut().filter(|_| self.recalls) {
            if !mapper.is_finished() {
                let mut context = TurnContext::new(thread.clone(), self.ids[thread].clone());
                context.ledger = mapper.ledger().clone();
                *mapper = TurnMapper::recall(context, &self.turns[*index]);
            }
        }
    }

    fn stumble(&mut self, why: &str, head: &str) {
        let open = self.live.values_mut().filter(|(_, mapper)| !mapper.is_finished());
        for (index, mapper) in open {
            self.turns[*index].extend(mapper.unreadable(why, head));
        }
    }

    fn tell(&mut self, notification: &Notification) {
        self.start(notification);
        if let (Body::TokenUsage(usage), Some(thread)) =
            (&notification.body, &notification.address.thread_id)
        {
            self.ledgers.entry(thread.clone()).or_default().update(usage, false);
        }
        for (index, mapper) in self.live.values_mut() {
            self.turns[*index].extend(mapper.notify(notification));
        }
    }

    fn start(&mut self, notification: &Notification) {
        let Some(thread) = notification.address.thread_id.clone() else { return };
        let is_agent =
            self.live.values().any(|(_, mapper)| mapper.agent_threads().contains(&thread));
        let is_live = self.live.get(&thread).is_some_and(|(_, mapper)| !mapper.is_finished());
        // A review's first item comes before its `turn/started`.
        let opens = matches!(notification.body, Body::TurnStarted(_) | Body::ItemStarted(_));
        let Some(turn) = notification.address.turn_id.clone().filter(|_| opens) else { return };
        if !is_agent && !is_live {
            self.ids.insert(thread.clone(), turn.clone());
            let mut context = TurnContext::new(thread.clone(), turn);
            context.ledger = self.ledgers.get(&thread).cloned().unwrap_or_default();
            let mapper = TurnMapper::new(context);
            // A finished one that is replaced has nothing more to say.
            self.live.insert(thread, (self.turns.len(), mapper));
            self.turns.push(Vec::new());
        }
    }

    fn ask(&mut self, id: &RequestId, request: &ServerRequest) {
        for (index, mapper) in self.live.values_mut() {
            let (parts, interrupt) = mapper.ask(&ApprovalId::new(format!("ask-{id}")), request);
            self.turns[*index].extend(parts);
            let name = serde_json::to_string(id).unwrap();
            self.asked.extend(interrupt.map(|interrupt| (name, interrupt)));
        }
    }

    /// Takes what we said; only answers to questions matter to the parts.
    pub(crate) fn answer(&mut self, message: &Value) {
        let Some(interrupt) = self.asked.remove(&message["id"].to_string()) else { return };
        let answers = message["result"]["answers"].as_object().cloned().unwrap_or_default();
        for (index, mapper) in self.live.values_mut().filter(|(_, mapper)| !mapper.is_finished()) {
            let parts =
                mapper.answered(&interrupt, &Answer::UserInput { answers: answers.clone() });
            self.turns[*index].extend(parts);
        }
    }
}
