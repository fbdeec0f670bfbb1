//! What can be seen of a thread from outside: its status, its turns, what it used.

use serde_json::{Value, json};

use super::settings::Standing;
use crate::tokens::ThreadUsage;
use crate::truncate::{Budget, cut};

/// Bytes of a command's output that are kept to be seen again.
const KEPT_OUTPUT: usize = 64 << 10;

/// A thread as `thread/read` and `thread/resume` show it.
#[derive(Clone, Debug)]
pub struct ThreadView {
    /// Its name.
    pub id: String,
    /// `{type: "idle"}`, `{type: "active", activeFlags: […]}`, `{type: "systemError"}`.
    pub status: Value,
    /// Turns with their items, in the protocol's shape, the running one last.
    pub turns: Vec<Value>,
    /// The running turn.
    pub active_turn: Option<String>,
    /// What it used.
    pub usage: ThreadUsage,
    /// What of the model's window is used, and the window.
    pub window: u64,
    /// The turn that the usage was last told for.
    pub usage_turn: Option<String>,
    /// What is in force.
    pub standing: Standing,
}

/// What the thread keeps to be seen.
#[derive(Debug)]
pub(crate) struct Record {
    id: String,
    past: Vec<Value>,
    current: Option<TurnRecord>,
    failed: bool,
    /// Questions that wait for an answer.
    waiting: Waiting,
    pub(crate) usage: ThreadUsage,
    pub(crate) usage_turn: Option<String>,
    pub(crate) window: u64,
    pub(crate) standing: Standing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    approvals: usize,
    inputs: usize,
}

/// What somebody is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A yes or no.
    Approval,
    /// Words.
    Input,
}

/// A running turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnRecord {
    pub(crate) id: String,
    pub(crate) items: Vec<Value>,
    pub(crate) started_at: i64,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) status: &'static str,
    pub(crate) error: Option<Value>,
    pub(crate) completed_at: i64,
    pub(crate) duration_ms: i64,
}

impl Record {
    pub(crate) fn new(
        id: String,
        standing: Standing,
        turns: Vec<Value>,
        usage: ThreadUsage,
    ) -> Self {
        Self {
            id,
            past: turns,
            current: None,
            failed: false,
            waiting: Waiting::default(),
            usage,
            usage_turn: None,
            window: 0,
            standing,
        }
    }

    pub(crate) fn begin(&mut self, turn: TurnRecord) {
        self.failed = false;
        self.waiting = Waiting::default();
        self.current = Some(turn);
    }

    /// Keeps an item. A command may end after its turn.
    pub(crate) fn keep(&mut self, turn_id: &str, mut item: Value) {
        if let Some(Value::String(output)) = item.get_mut("aggregatedOutput") {
            // The session file has all of it; a long thread must not hold it in memory.
            *output = cut(output, Budget::Bytes(KEPT_OUTPUT));
        }
        if let Some(turn) = self.current.as_mut().filter(|turn| turn.id == turn_id) {
            turn.items.push(item);
            return;
        }
        let past = self.past.iter_mut().rev().find(|turn| turn["id"] == turn_id);
        if let Some(items) = past.and_then(|turn| turn["items"].as_array_mut()) {
            items.push(item);
        }
    }

    /// Ends the running turn; what is told of it holds the model's last words only, as Codex
    /// tells it.
    pub(crate) fn end(&mut self, ending: &Ending) -> Option<Value> {
        let turn = self.current.take()?;
        self.failed = ending.status == "failed";
        self.waiting = Waiting::default();
        let last = turn.items.iter().rev().find(|item| item["type"] == "agentMessage");
        let at = Some(turn.started_at);
        let told = match last.filter(|_| ending.status == "completed") {
            Some(item) => turn_value(&turn.id, "summary", vec![item.clone()], at, Some(ending)),
            None => turn_value(&turn.id, "notLoaded", Vec::new(), at, Some(ending)),
        };
        self.past.push(turn.into_ended(ending));
        Some(told)
    }

    /// One question more or less; true when the status changed by it.
    pub(crate) fn wait(&mut self, wait: Wait, begins: bool) -> bool {
        let before = self.status();
        let count = match wait {
            Wait::Approval => &mut self.waiting.approvals,
            Wait::Input => &mut self.waiting.inputs,
        };
        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        before != self.status()
    }

    pub(crate) fn status(&self) -> Value {
        if self.current.is_none() {
            return json!({ "type": if self.failed { "systemError" } else { "idle" } });
        }
        let mut flags = Vec::new();
        if self.waiting.approvals > 0 {
            flags.push("waitingOnApproval");
        }
        if self.waiting.inputs > 0 {
            flags.push("waitingOnUserInput");
        }
        json!({ "type": "active", "activeFlags": flags })
    }

    pub(crate) fn view(&self) -> ThreadView {
        let mut turns = self.past.clone();
        turns.extend(self.current.as_ref().map(TurnRecord::running));
        ThreadView {
            id: self.id.clone(),
            status: self.status(),
            turns,
            active_turn: self.current.as_ref().map(|turn| turn.id.clone()),
            usage: self.usage,
            window: self.window,
            usage_turn: self.usage_turn.clone(),
            standing: self.standing.clone(),
        }
    }
}

impl TurnRecord {
    fn running(&self) -> Value {
        turn_value(&self.id, "full", self.items.clone(), Some(self.started_at), None)
    }

    fn into_ended(self, ending: &Ending) -> Value {
        turn_value(&self.id, "full", self.items, Some(self.started_at), Some(ending))
    }
}

/// A turn that has just been asked for, as the reply to `turn/start` carries it.
pub fn fresh_turn(id: &str) -> Value {
    turn_value(id, "notLoaded", Vec::new(), None, None)
}

pub(crate) fn turn_value(
    id: &str,
    items_view: &str,
    items: Vec<Value>,
    started_at: Option<i64>,
    ending: Option<&Ending>,
) -> Value {
    json!({
        "id": id,
        "rootTurnId": id,
        "items": items,
        "itemsView": items_view,
        "status": ending.map_or("inProgress", |ending| ending.status),
        "error": ending.and_then(|ending| ending.error.clone()),
        "startedAt": started_at,
        "completedAt": ending.map(|ending| ending.completed_at),
        "durationMs": ending.map(|ending| ending.duration_ms),
    })
}
