//! A turn's voice: tells its listeners, keeps what can be seen, writes it down; in that order
//! reversed, so that nothing is told that could be lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::outlet::{Outlet, Refusal};
use crate::thread::journal::{Entry, Journal, JournalError};
use crate::thread::view::{Ending, Record, TurnRecord, Wait, turn_value};
use crate::thread::{Clock, Standing};
use crate::tokens::ThreadUsage;

/// Shared by everything that happens in one turn.
#[derive(Clone)]
pub(crate) struct Voice {
    inner: Arc<Inner>,
    /// Speaks for a conversation beside the thread's own.
    aside: bool,
}

struct Inner {
    thread_id: String,
    turn_id: String,
    outlet: Arc<dyn Outlet>,
    journal: Arc<dyn Journal>,
    record: Arc<Mutex<Record>>,
    clock: Clock,
    started_ms: i64,
    fault: Mutex<Option<JournalError>>,
    /// Cancelled when the journal fails: the turn must end.
    broken: CancellationToken,
}

/// An item that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) item: Value,
    pub(crate) started_ms: i64,
}

/// Where a turn speaks to.
pub(crate) struct Listeners {
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) record: Arc<Mutex<Record>>,
    pub(crate) clock: Clock,
}

impl Voice {
    pub(crate) fn new(thread_id: String, turn_id: String, listeners: Listeners) -> Self {
        let Listeners { outlet, journal, record, clock } = listeners;
        let started_ms = clock();
        let inner = Inner {
            thread_id,
            turn_id,
            outlet,
            journal,
            record,
            clock,
            started_ms,
            fault: Mutex::new(None),
            broken: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner), aside: false }
    }

    /// The voice of a conversation beside the thread's own, such as a reviewer's. What is done and
    /// what it costs is told and written as ever; what the model is sent and what it says is not
    /// the thread's.
    pub(crate) fn aside(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), aside: true }
    }

    /// Whether nobody is to see this item.
    fn keeps_back(&self, item: &Value) -> bool {
        self.aside && item["type"] == "agentMessage"
    }

    pub(crate) fn turn_id(&self) -> &str {
        &self.inner.turn_id
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.inner.clock)()
    }

    /// Writes entries down. After a failure nothing more is written, and the turn ends.
    pub(crate) fn write(&self, entries: &[Entry]) -> bool {
        let mut fault = lock(&self.inner.fault);
        if fault.is_some() {
            return false;
        }
        let own: Vec<Entry>;
        let entries = match self.aside {
            true => {
                own = entries.iter().filter(|entry| is_of_all(entry)).cloned().collect();
                &own
            }
            false => entries,
        };
        match self.inner.journal.write(entries) {
            Ok(()) => true,
            Err(error) => {
                *fault = Some(error);
                self.inner.broken.cancel();
                false
            }
        }
    }

    /// Waits until the journal fails.
    pub(crate) async fn broken(&self) -> JournalError {
        self.inner.broken.cancelled().await;
        self.fault().unwrap_or(JournalError { why: "for an unknown reason".to_owned() })
    }

    pub(crate) fn fault(&self) -> Option<JournalError> {
        lock(&self.inner.fault).clone()
    }

    /// Tells something of this turn.
    pub(crate) fn tell(&self, method: &'static str, mut params: Value) {
        params["threadId"] = json!(self.inner.thread_id);
        params["turnId"] = json!(self.inner.turn_id);
        self.inner.outlet.tell(method, params);
    }

    /// Tells something of the thread.
    pub(crate) fn tell_thread(&self, method: &'static str, mut params: Value) {
        params["threadId"] = json!(self.inner.thread_id);
        self.inner.outlet.tell(method, params);
    }

    /// A piece of an item; most of what is told, so it is made in one go.
    pub(crate) fn delta(&self, method: &'static str, item_id: &str, delta: &str) {
        if self.aside && method == "item/agentMessage/delta" {
            return;
        }
        let params = json!({
            "threadId": self.inner.thread_id,
            "turnId": self.inner.turn_id,
            "itemId": item_id,
            "delta": delta,
        });
        self.inner.outlet.tell(method, params);
    }

    pub(crate) fn warn(&self, message: &str) {
        self.tell_thread("warning", json!({ "message": message }));
    }

    /// Asks; the thread's status says so while nobody has answered.
    pub(crate) async fn ask(
        &self,
        method: &'static str,
        mut params: Value,
        wait: Option<Wait>,
    ) -> Result<Value, Refusal> {
        params["threadId"] = json!(self.inner.thread_id);
        params["turnId"] = json!(self.inner.turn_id);
        let _waiting = wait.map(|wait| Waiting::begin(self.clone(), wait));
        self.inner.outlet.ask(method, params).await
    }

    /// An item begins.
    pub(crate) fn begin(&self, mut item: Value) -> Begun {
        let started_ms = self.now_ms();
        item["startedAtMs"] = json!(started_ms);
        item["completedAtMs"] = Value::Null;
        if self.keeps_back(&item) {
            return Begun { item, started_ms };
        }
        self.tell("item/started", json!({ "item": item, "startedAtMs": started_ms }));
        Begun { item, started_ms }
    }

    /// An item is whole: written down, kept, told.
    pub(crate) fn complete(&self, begun: Begun) {
        let Begun { mut item, .. } = begun;
        if self.keeps_back(&item) {
            return;
        }
        let at_ms = self.now_ms();
        item["completedAtMs"] = json!(at_ms);
        let turn_id = self.inner.turn_id.clone();
        if !self.write(&[Entry::ItemCompleted { turn_id, item: item.clone(), at_ms }]) {
            return;
        }
        self.record().keep(&self.inner.turn_id, item.clone());
        self.tell("item/completed", json!({ "item": item, "completedAtMs": at_ms }));
    }

    pub(crate) fn usage(&self, usage: ThreadUsage, window: u64) {
        let turn_id = self.inner.turn_id.clone();
        {
            let mut record = self.record();
            record.usage = usage;
            record.window = window;
            record.usage_turn = Some(turn_id.clone());
        }
        let ThreadUsage { total, last } = usage;
        self.write(&[Entry::TokenCount { turn_id, total, last, window }]);
        let told = json!({ "total": total, "last": last, "modelContextWindow": window });
        self.tell("thread/tokenUsage/updated", json!({ "tokenUsage": told }));
    }

    /// What is in force changed.
    pub(crate) fn standing(&self, standing: &Standing) {
        if !self.aside {
            self.record().standing = standing.clone();
        }
    }

    pub(crate) fn turn_started(&self, window: u64) {
        let started_at = self.inner.started_ms.div_euclid(1_000);
        let id = self.inner.turn_id.clone();
        self.record().begin(TurnRecord { id: id.clone(), items: Vec::new(), started_at });
        self.write(&[Entry::TurnStarted { turn_id: id.clone(), started_at, window }]);
        self.status();
        let turn = turn_value(&id, "notLoaded", Vec::new(), Some(started_at), None);
        self.tell_thread("turn/started", json!({ "turn": turn }));
    }

    /// The turn is over. Told whatever happened to the journal: every turn ends.
    pub(crate) fn turn_ended(&self, status: &'static str, error: Option<Value>) {
        let now = self.now_ms();
        let completed_at = now.div_euclid(1_000);
        let duration_ms = (now - self.inner.started_ms).max(0);
        let ending = Ending { status, error: error.clone(), completed_at, duration_ms };
        let Some(turn) = self.record().end(&ending) else { return };
        self.write(&[self.ending_entry(&turn, &ending)]);
        self.status();
        if let Some(error) = error {
            self.tell("error", json!({ "error": error, "willRetry": false }));
        }
        self.tell_thread("turn/completed", json!({ "turn": turn }));
    }

    fn ending_entry(&self, turn: &Value, ending: &Ending) -> Entry {
        let turn_id = self.inner.turn_id.clone();
        let Ending { status, error, completed_at, duration_ms } = ending.clone();
        if status == "interrupted" {
            return Entry::TurnAborted {
                turn_id,
                reason: "interrupted",
                completed_at,
                duration_ms,
            };
        }
        let last_message = turn["items"][0]["text"].as_str().map(str::to_owned);
        Entry::TurnCompleted { turn_id, last_message, error, completed_at, duration_ms }
    }

    fn status(&self) {
        let status = self.record().status();
        self.tell_thread("thread/status/changed", json!({ "status": status }));
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.inner.record)
    }
}

/// Somebody is waited for until this is dropped.
struct Waiting {
    voice: Voice,
    wait: Wait,
}

impl Waiting {
    fn begin(voice: Voice, wait: Wait) -> Self {
        if voice.record().wait(wait, true) {
            voice.status();
        }
        Self { voice, wait }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.voice.record().wait(self.wait, false) {
            self.voice.status();
        }
    }
}

/// Whether an entry of another conversation belongs to the thread's own session.
fn is_of_all(entry: &Entry) -> bool {
    matches!(entry, Entry::ItemCompleted { .. } | Entry::TokenCount { .. })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
