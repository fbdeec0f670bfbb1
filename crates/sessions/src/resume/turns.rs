//! Turns as the app-server protocol has them.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::events;
use super::history::is_user_turn;
use super::items::shown;

/// Turns, as their lines come.
#[derive(Debug)]
pub struct Turns {
    keep: usize,
    turns: VecDeque<Turn>,
    earlier: u64,
    /// Marks of the file say where turns begin and end.
    marked: bool,
    /// Messages of files without any event.
    spoken: Vec<Value>,
    count: u64,
    items: u64,
}

#[derive(Debug)]
struct Turn {
    id: String,
    root: Value,
    items: Vec<Value>,
    status: &'static str,
    error: Value,
    started: Value,
    completed: Value,
    duration: Value,
    open: bool,
}

/// Messages kept for files that have no events: those of 0.29 and older are short.
const SPOKEN: usize = 10_000;

/// How far back an item may be that is completed again.
const NEAR: usize = 256;

impl Turns {
    /// Keeps the last turns.
    pub fn keeping(keep: usize) -> Self {
        Self {
            keep: keep.max(1),
            turns: VecDeque::new(),
            earlier: 0,
            marked: false,
            spoken: Vec::new(),
            count: 0,
            items: 0,
        }
    }

    /// A response item: shown only where there is nothing else to show.
    pub(super) fn item(&mut self, item: &Value) {
        let is_said =
            item["type"] == "message" && (item["role"] == "assistant" || is_user_turn(item));
        if is_said && self.items == 0 && self.spoken.len() < SPOKEN {
            self.spoken.push(item.clone());
        }
    }

    /// An event.
    pub(super) fn event(&mut self, kind: &str, event: Value, millis: Option<i64>) {
        match kind {
            "task_started" | "turn_started" => self.begin(&event),
            "task_complete" | "turn_complete" => self.end(&event, false),
            "turn_aborted" => self.end(&event, true),
            "item_completed" => {
                let mut item = shown(&event["item"]);
                item["startedAtMs"] = event["started_at_ms"].clone();
                item["completedAtMs"] = event["completed_at_ms"].clone();
                self.add(event["turn_id"].as_str(), item);
            }
            "error" => {
                if let Some(turn) = self.turns.back_mut() {
                    turn.error = json!({ "message": event["message"] });
                }
            }
            _ => {
                let id = format!("item-{}", self.items + 1);
                let Some(mut item) = events::item(kind, &event, id) else { return };
                item["completedAtMs"] = json!(millis);
                if kind == "user_message" && !self.marked {
                    self.open(format!("turn-{}", self.count + 1), Value::Null);
                }
                if !self.joined(&item) {
                    self.add(event["turn_id"].as_str(), item);
                }
            }
        }
    }

    /// Parts of one thought are one item.
    fn joined(&mut self, item: &Value) -> bool {
        let last = self.turns.back_mut().filter(|turn| turn.open);
        let last = last.and_then(|turn| turn.items.last_mut());
        let Some(last) = last.filter(|last| last["type"] == "reasoning") else { return false };
        if item["type"] != "reasoning" {
            return false;
        }
        for key in ["summary", "content"] {
            let more = item[key].as_array().cloned().unwrap_or_default();
            if let Some(known) = last[key].as_array_mut() {
                known.extend(more);
            }
        }
        true
    }

    fn begin(&mut self, event: &Value) {
        if !self.marked {
            // Lines before the first mark are of an older Codex, and have turns of their own.
            self.marked = true;
        }
        let id = event["turn_id"].as_str().map(str::to_owned);
        let id = id.unwrap_or_else(|| format!("turn-{}", self.count + 1));
        self.open(id, event["root_turn_id"].clone());
        if let Some(turn) = self.turns.back_mut() {
            turn.started = event["started_at"].clone();
        }
    }

    fn open(&mut self, id: String, root: Value) {
        self.count += 1;
        if let Some(last) = self.turns.back_mut().filter(|turn| turn.open) {
            last.close("interrupted");
            if !self.marked {
                last.status = "completed";
            }
        }
        self.turns.push_back(Turn {
            id,
            root,
            items: Vec::new(),
            status: "inProgress",
            error: Value::Null,
            started: Value::Null,
            completed: Value::Null,
            duration: Value::Null,
            open: true,
        });
        while self.turns.len() > self.keep {
            self.turns.pop_front();
            self.earlier += 1;
        }
    }

    fn end(&mut self, event: &Value, aborted: bool) {
        let id = event["turn_id"].as_str();
        let Some(turn) = self.find(id) else { return };
        let failed = !event["error"].is_null() || !turn.error.is_null();
        turn.close(match (aborted, failed) {
            (true, _) => "interrupted",
            (false, true) => "failed",
            (false, false) => "completed",
        });
        if !event["error"].is_null() {
            turn.error = error(&event["error"]);
        }
        turn.completed = event["completed_at"].clone();
        turn.duration = event["duration_ms"].clone();
    }

    /// The turn of this id, else the last.
    fn find(&mut self, id: Option<&str>) -> Option<&mut Turn> {
        let at = id.and_then(|id| self.turns.iter().rposition(|turn| turn.id == id));
        match at {
            Some(at) => self.turns.get_mut(at),
            None => self.turns.back_mut(),
        }
    }

    fn add(&mut self, turn: Option<&str>, item: Value) {
        self.items += 1;
        self.spoken = Vec::new();
        if self.turns.is_empty() {
            let id = turn.map_or_else(|| format!("turn-{}", self.count + 1), str::to_owned);
            self.open(id, Value::Null);
        }
        if let Some(turn) = self.find(turn) {
            // One that is kept twice was completed twice: the second word counts.
            let mut near = turn.items.iter_mut().rev().take(NEAR);
            match near.find(|known| known["id"] == item["id"]) {
                Some(known) => *known = item,
                None => turn.items.push(item),
            }
        }
    }

    /// Takes back the last turns that a user began.
    pub(super) fn roll_back(&mut self, count: u64) {
        for _ in 0..count {
            while let Some(turn) = self.turns.pop_back() {
                if turn.items.iter().any(|item| item["type"] == "userMessage") {
                    break;
                }
            }
        }
    }

    /// The turns, and how many came before them.
    pub(super) fn finish(mut self) -> (Vec<Value>, u64) {
        for message in std::mem::take(&mut self.spoken) {
            let text: String = (message["content"].as_array().into_iter().flatten())
                .filter_map(|block| block["text"].as_str())
                .collect();
            let kind = if message["role"] == "user" { "user_message" } else { "agent_message" };
            self.event(kind, json!({ "message": text }), None);
        }
        // Nobody is there to end it.
        if let Some(last) = self.turns.back_mut().filter(|turn| turn.open) {
            last.close(if self.marked { "interrupted" } else { "completed" });
        }
        (self.turns.into_iter().map(Turn::finish).collect(), self.earlier)
    }
}

impl Turn {
    fn close(&mut self, status: &'static str) {
        (self.open, self.status) = (false, status);
    }

    fn finish(self) -> Value {
        json!({
            "id": self.id,
            "rootTurnId": self.root,
            "items": self.items,
            "itemsView": "full",
            "status": self.status,
            "error": self.error,
            "startedAt": self.started,
            "completedAt": self.completed,
            "durationMs": self.duration,
        })
    }
}

/// An error as the protocol has it.
fn error(error: &Value) -> Value {
    json!({
        "message": error["message"],
        "codexErrorInfo": error["codex_error_info"],
        "additionalDetails": error["additional_details"],
    })
}
