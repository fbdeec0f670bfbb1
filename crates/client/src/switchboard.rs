//! Gives every inbound message to the turn it belongs to, by thread.
//!
//! A thread has at most one listener. Events of threads that nobody knows yet are kept for a
//! while: a sub-agent's first words may come before the call that names it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::map::app_server_to_part::Ledger;
use bindery_core::wire::app_server::notification::{Body, Notification};
use bindery_core::wire::app_server::request::{Body as Ask, ServerRequest};
use bindery_core::wire::rpc::{RequestId, RpcError};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc};

use crate::peer::{Inbound, WeakPeer};
use crate::transport::End;

/// Events that may wait for a turn before the connection is no longer read.
const QUEUE: usize = 64;

/// Events kept for threads that nobody knows yet, all together.
const KEPT: usize = 256;

/// Notices kept for whoever asks after them (`configWarning` and the like).
const NOTICES: usize = 64;

/// What a listener hears.
#[derive(Debug)]
pub(crate) enum Event {
    /// The server tells.
    Notification(Box<Notification>),
    /// The same in the server's own words, before it; only for those who want it.
    Raw(Value),
    /// The server asks.
    Request(RequestId, Box<ServerRequest>),
    /// Something that could not be read, and may have been for anybody.
    Unreadable { why: String, head: String },
    /// The connection is lost and another is looked for.
    Lost,
    /// Another connection is there; what it hears follows. Nobody is subscribed to anything yet.
    Regained,
    /// Nothing more will come.
    Closed(End),
}

/// Who listens to what.
#[derive(Debug, Default)]
pub(crate) struct Switchboard {
    state: Mutex<State>,
    /// Somebody has left, or is about to.
    change: Notify,
}

#[derive(Debug, Default)]
struct State {
    listeners: HashMap<ThreadId, mpsc::Sender<Event>>,
    /// Sub-agent → the thread whose listener hears it.
    parents: HashMap<ThreadId, ThreadId>,
    /// Threads whose listeners wait for an end that they have asked for.
    stopping: HashSet<ThreadId>,
    ledgers: HashMap<ThreadId, Ledger>,
    /// The newest turn of threads that are heard, whoever started it.
    newest: HashMap<ThreadId, TurnId>,
    /// Threads whose listeners want the server's own words too.
    raw: HashSet<ThreadId>,
    kept: Vec<(ThreadId, Event)>,
    notices: Vec<Notification>,
    /// Threads whose events nobody wants any more.
    forgotten: HashSet<ThreadId>,
    ended: Option<End>,
}

impl Switchboard {
    /// Listens to a thread; none while somebody else does.
    pub(crate) fn listen(&self, thread: &ThreadId) -> Option<mpsc::Receiver<Event>> {
        let mut state = self.state();
        if state.listeners.get(thread).is_some_and(|sender| !sender.is_closed()) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        if let Some(end) = &state.ended {
            // A fresh channel has room for one.
            let _ = sender.try_send(Event::Closed(end.clone()));
        }
        state.listeners.insert(thread.clone(), sender);
        Some(receiver)
    }

    /// Whether the thread's listener only waits for an end that it has asked for.
    pub(crate) fn is_stopping(&self, thread: &ThreadId) -> bool {
        self.state().stopping.contains(thread)
    }

    /// The thread's listener has asked for its end.
    pub(crate) fn stopping(&self, thread: &ThreadId) {
        self.state().stopping.insert(thread.clone());
        self.change.notify_waiters();
    }

    /// Waits for a listener to leave or to be about to, from this call on.
    pub(crate) fn change(&self) -> Notified<'_> {
        self.change.notified()
    }

    /// The thread's listener hears the server's own words too.
    pub(crate) fn want_raw(&self, thread: &ThreadId) {
        self.state().raw.insert(thread.clone());
    }

    /// Hears a sub-agent too from now on; gives what it has said so far.
    pub(crate) fn adopt(&self, child: &ThreadId, parent: &ThreadId) -> Vec<Event> {
        let mut state = self.state();
        if child == parent || state.parents.contains_key(child) {
            return Vec::new();
        }
        state.parents.insert(child.clone(), parent.clone());
        let (said, kept) = state.kept.drain(..).partition(|(thread, _)| thread == child);
        state.kept = kept;
        said.into_iter().map(|(_, event)| event).collect()
    }

    /// Stops listening, and keeps the thread's token totals for its next turn.
    pub(crate) fn leave(&self, thread: &ThreadId, ledger: Ledger) {
        let mut state = self.state();
        state.listeners.remove(thread);
        state.stopping.remove(thread);
        state.raw.remove(thread);
        let children: Vec<ThreadId> = (state.parents.iter())
            .filter(|(_, parent)| *parent == thread)
            .map(|(child, _)| child.clone())
            .collect();
        if state.forgotten.len() > KEPT {
            state.forgotten.clear();
        }
        for child in children {
            state.parents.remove(&child);
            state.forgotten.insert(child);
        }
        state.ledgers.insert(thread.clone(), ledger);
        self.change.notify_waiters();
    }

    /// The thread's token totals before its next turn.
    pub(crate) fn ledger(&self, thread: &ThreadId) -> Ledger {
        self.state().ledgers.get(thread).cloned().unwrap_or_default()
    }

    /// The newest turn of a thread, if it was heard of over this connection.
    pub(crate) fn newest_turn(&self, thread: &ThreadId) -> Option<TurnId> {
        self.state().newest.get(thread).cloned()
    }

    /// A thread has this turn now.
    pub(crate) fn turn_begun(&self, thread: &ThreadId, turn: &TurnId) {
        self.state().newest.insert(thread.clone(), turn.clone());
    }

    /// Drops what is remembered of a thread that is closed for good, or no longer heard.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        let mut state = self.state();
        state.ledgers.remove(thread);
        state.newest.remove(thread);
    }

    /// Nothing is heard until there is another connection, so nobody knows what is newest.
    pub(crate) fn forget_newest(&self) {
        self.state().newest.clear();
    }

    /// What the server told about itself and no thread.
    pub(crate) fn notices(&self) -> Vec<Notification> {
        self.state().notices.clone()
    }

    /// Hands out messages until the connection ends; tells how it did.
    pub(crate) async fn run(&self, peer: &WeakPeer, mut inbound: mpsc::Receiver<Inbound>) -> End {
        while let Some(message) = inbound.recv().await {
            match message {
                Inbound::Notification { method, params, .. } => {
                    let notification = Notification::decode(&method, &params);
                    self.tell_raw(&notification, &method, &params).await;
                    self.tell(notification).await;
                }
                Inbound::Request { id, method, params } => {
                    self.ask(peer, id, ServerRequest::decode(&method, &params)).await;
                }
                Inbound::Unreadable { why, head, id, .. } => {
                    tracing::warn!(why, "unreadable message");
                    if let Some(id) = id {
                        refuse(peer, &id, &why).await;
                    }
                    let event = || Event::Unreadable { why: why.clone(), head: head.clone() };
                    self.tell_everybody(event).await;
                }
                Inbound::Closed(end) => return end,
            }
        }
        End::closed()
    }

    /// There will be no connection any more.
    pub(crate) async fn end(&self, end: &End) {
        self.state().ended = Some(end.clone());
        self.tell_everybody(|| Event::Closed(end.clone())).await;
    }

    /// Tells all who listen the same.
    pub(crate) async fn tell_everybody(&self, event: impl Fn() -> Event) {
        for sender in self.everybody() {
            // A listener that left in between wants nothing more.
            let _ = sender.send(event()).await;
        }
    }

    async fn tell_raw(&self, notification: &Notification, method: &str, params: &RawValue) {
        let Some(thread) = &notification.address.thread_id else { return };
        let sender = {
            let state = self.state();
            state.raw.contains(thread).then(|| state.sender(thread)).flatten()
        };
        if let Some(sender) = sender {
            // A listener that left in between wants nothing more.
            let _ = sender.send(Event::Raw(json!({ "method": method, "params": params }))).await;
        }
    }

    async fn tell(&self, notification: Notification) {
        let Some(thread) = notification.address.thread_id.clone() else {
            return self.state().note(notification);
        };
        if let Body::TurnStarted(turn) | Body::TurnCompleted(turn) = &notification.body {
            // The name at its end is the right one: a review is announced under another.
            self.turn_begun(&thread, &turn.id);
        }
        // A listener that left in between wants nothing more.
        let sender = self.state().sender(&thread);
        match sender {
            Some(sender) => {
                let _ = sender.send(Event::Notification(Box::new(notification))).await;
            }
            None => self.state().keep(thread, notification),
        }
    }

    /// Codex waits forever for an answer, so a question that reaches nobody is refused at once.
    async fn ask(&self, peer: &WeakPeer, id: RequestId, request: ServerRequest) {
        if let Ask::NotServed(why) = &request.body {
            return refuse(peer, &id, why).await;
        }
        let thread = request.address.thread_id.clone();
        let sender = thread.and_then(|thread| self.state().sender(&thread));
        let event = Event::Request(id.clone(), Box::new(request));
        let heard = match sender {
            Some(sender) => sender.send(event).await.is_ok(),
            None => false,
        };
        if !heard {
            refuse(peer, &id, "nobody is here to answer").await;
        }
    }

    fn everybody(&self) -> Vec<mpsc::Sender<Event>> {
        self.state().listeners.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn sender(&self, thread: &ThreadId) -> Option<mpsc::Sender<Event>> {
        let mut thread = thread;
        // Sub-agents have sub-agents; the chain is as deep as Codex lets them nest. A thread with a
        // listener of its own keeps it, whoever names it as an agent, so the chain has no circle:
        // every parent listens until its children are let go.
        loop {
            if let Some(sender) = self.listeners.get(thread) {
                return Some(sender.clone());
            }
            thread = self.parents.get(thread)?;
        }
    }

    fn keep(&mut self, thread: ThreadId, notification: Notification) {
        if let Body::TokenUsage(usage) = &notification.body {
            self.ledgers.entry(thread.clone()).or_default().update(usage, false);
        }
        let passing = matches!(
            notification.body,
            Body::NotShown(_)
                | Body::ThreadStarted(_)
                | Body::RequestResolved(_)
                | Body::RawItem(_)
                | Body::ResponseEnded
        );
        if passing || self.forgotten.contains(&thread) || self.ledgers.contains_key(&thread) {
            return;
        }
        if self.kept.len() == KEPT {
            tracing::warn!(thread = %self.kept[0].0, "an event of an unknown thread was given up");
            self.kept.remove(0);
        }
        self.kept.push((thread, Event::Notification(Box::new(notification))));
    }

    fn note(&mut self, notification: Notification) {
        if matches!(notification.body, Body::NotShown(_)) {
            return;
        }
        if self.notices.len() == NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notification);
    }
}

async fn refuse(peer: &WeakPeer, id: &RequestId, why: &str) {
    let error = RpcError { code: -32601, message: why.to_owned(), data: None };
    let Some(peer) = peer.upgrade() else { return };
    if peer.respond_error(id, &error).await.is_err() {
        tracing::debug!("a refusal found no connection");
    }
}
