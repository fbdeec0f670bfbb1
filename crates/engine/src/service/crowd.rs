//! Those who listen to one thread, and the questions it has put to them.
//!
//! The loop tells and asks through [`Outlet`]; who hears it changes meanwhile. A question stays
//! open while nobody is there, goes under the same number to everyone who comes, and is settled
//! by the first answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ears::{ConnectionId, Ear, Ears};
use super::line::{self, Line};
use crate::outlet::{Outlet, Refusal};

/// What Codex tells to everyone, whoever listens to the thread.
const FOR_ALL: [&str; 2] = ["thread/started", "thread/status/changed"];

/// Lines that may wait while a reply is on its way; beyond that it is overtaken.
const HELD: usize = 1024;

/// The listeners of one thread.
#[derive(Debug)]
pub(crate) struct Crowd {
    thread_id: String,
    everyone: Arc<Ears>,
    desk: Arc<Desk>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ears: Vec<Arc<Ear>>,
    questions: BTreeMap<i64, Question>,
    /// Replies under way that what is told must not overtake, and what is held back for them.
    holds: usize,
    held: Vec<(&'static str, Line)>,
    /// The status as the loop told it last.
    status: Value,
    /// Since when nobody has listened.
    alone_since: Option<Instant>,
}

#[derive(Debug)]
struct Question {
    line: Line,
    /// Whether its end is told.
    announced: bool,
    answer: oneshot::Sender<Result<Value, Refusal>>,
}

/// All open questions of a server, by number. Numbers are never used twice.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    next: AtomicI64,
    open: Mutex<BTreeMap<i64, Weak<Crowd>>>,
}

impl Desk {
    /// Takes an answer from a connection; one to a question that is settled, or that was not put
    /// to it, counts for nothing.
    pub(crate) fn answer(&self, from: ConnectionId, id: i64, answer: Result<Value, Refusal>) {
        let crowd = self.lock().get(&id).and_then(Weak::upgrade);
        match crowd.filter(|crowd| crowd.hears(from)) {
            Some(crowd) => crowd.settle(id, Some(answer)),
            None => tracing::debug!(id, from, "an answer to no open question"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Weak<Crowd>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds what is told back until it is dropped, so that a reply comes first.
#[derive(Debug)]
pub(crate) struct Hold(Arc<Crowd>);

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holds -= 1;
        if state.holds == 0 {
            self.0.release(&mut state);
        }
    }
}

impl State {
    fn join(&mut self, ear: &Arc<Ear>) {
        self.alone_since = None;
        if !self.ears.iter().any(|known| known.id == ear.id) {
            self.ears.push(ear.clone());
        }
    }
}

impl Crowd {
    pub(crate) fn new(thread_id: &str, everyone: &Arc<Ears>, desk: &Arc<Desk>) -> Arc<Self> {
        let state = State {
            ears: Vec::new(),
            questions: BTreeMap::new(),
            holds: 0,
            held: Vec::new(),
            status: json!({ "type": "idle" }),
            alone_since: Some(Instant::now()),
        };
        Arc::new(Self {
            thread_id: thread_id.to_owned(),
            everyone: everyone.clone(),
            desk: desk.clone(),
            state: Mutex::new(state),
        })
    }

    /// Lets one listen.
    pub(crate) fn join(&self, ear: &Arc<Ear>) {
        self.lock().join(ear);
    }

    /// Lets one listen and puts the open questions to it, under their old numbers. What is held
    /// back comes after them, and is not said twice.
    pub(crate) fn welcome(&self, ear: &Arc<Ear>) {
        let mut state = self.lock();
        state.join(ear);
        let is_held = |line: &Line| state.held.iter().any(|(_, held)| Arc::ptr_eq(held, line));
        let old = state.questions.values().filter(|question| !is_held(&question.line));
        old.for_each(|question| ear.outbox.put(question.line.clone()));
    }

    /// Lets one go; false if it did not listen.
    pub(crate) fn leave(&self, id: ConnectionId) -> bool {
        let mut state = self.lock();
        let before = state.ears.len();
        state.ears.retain(|ear| ear.id != id);
        if state.ears.is_empty() && before > 0 {
            state.alone_since = Some(Instant::now());
        }
        state.ears.len() < before
    }

    /// Whether one listens.
    pub(crate) fn hears(&self, id: ConnectionId) -> bool {
        self.lock().ears.iter().any(|ear| ear.id == id)
    }

    /// Since when nobody has listened and nothing has run; none if somebody does or something is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.alone_since.filter(|_| state.status["type"] != "active")
    }

    /// The status as it was told last.
    pub(crate) fn status(&self) -> Value {
        self.lock().status.clone()
    }

    /// What is told from now on waits until the hold is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.lock().holds += 1;
        Hold(self.clone())
    }

    fn spread(&self, state: &mut State, method: &'static str, line: Line) {
        if state.holds > 0 {
            state.held.push((method, line));
            if state.held.len() > HELD {
                self.release(state);
            }
            return;
        }
        self.send(state, method, &line);
    }

    fn release(&self, state: &mut State) {
        for (method, line) in std::mem::take(&mut state.held) {
            self.send(state, method, &line);
        }
    }

    fn send(&self, state: &State, method: &'static str, line: &Line) {
        match FOR_ALL.contains(&method) {
            true => self.everyone.pass(method, line),
            false => state.ears.iter().for_each(|ear| ear.tell(method, line)),
        }
    }

    fn open(self: &Arc<Self>, method: &'static str, params: &Value) -> Asked {
        let id = self.desk.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let line = line::question(id, method, params);
        self.desk.lock().insert(id, Arc::downgrade(self));
        let mut state = self.lock();
        let announced = method != "item/tool/call";
        state.questions.insert(id, Question { line: line.clone(), announced, answer });
        self.spread(&mut state, method, line);
        Asked { crowd: self.clone(), id, answered }
    }

    /// Ends a question: with an answer, or because nobody waits for one any more.
    fn settle(&self, id: i64, answer: Option<Result<Value, Refusal>>) {
        let mut state = self.lock();
        let Some(question) = state.questions.remove(&id) else { return };
        self.desk.lock().remove(&id);
        if question.announced {
            let params = json!({ "threadId": self.thread_id, "requestId": id });
            let line = line::notice("serverRequest/resolved", &params);
            self.spread(&mut state, "serverRequest/resolved", line);
        }
        drop(state);
        if let Some(answer) = answer {
            // Whoever asked may have stopped waiting in this very moment.
            let _ = question.answer.send(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question on its way to an answer; dropped, it is withdrawn.
struct Asked {
    crowd: Arc<Crowd>,
    id: i64,
    answered: oneshot::Receiver<Result<Value, Refusal>>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.crowd.settle(self.id, None);
    }
}

/// The loop's view of a crowd.
#[derive(Clone, Debug)]
pub(crate) struct CrowdOutlet(pub(crate) Arc<Crowd>);

impl Outlet for CrowdOutlet {
    fn tell(&self, method: &'static str, params: Value) {
        let mut state = self.0.lock();
        if method == "thread/status/changed" {
            state.status = params["status"].clone();
        }
        self.0.spread(&mut state, method, line::notice(method, &params));
    }

    fn ask(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>> {
        let mut asked = self.0.open(method, &params);
        Box::pin(async move {
            let answer = (&mut asked.answered).await;
            answer.unwrap_or_else(|_| Err(Refusal { why: "the question was withdrawn".to_owned() }))
        })
    }
}

#[cfg(test)]
mod tests;
