//! A turn finds its way back after its connection was lost: it subscribes again, learns what
//! happened meanwhile, and tells what is missing.

use std::time::Duration;

use bindery_core::ids::{ItemId, ThreadId};
use bindery_core::map::app_server_to_part::Cut;
use bindery_core::wire::app_server::notification::Notification;
use bindery_core::wire::app_server::params::{ThreadResume, ThreadSettings};
use bindery_core::wire::app_server::reply::Page;
use bindery_core::wire::rpc::RequestId;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::TurnControl;
use super::drive::Drive;
use super::gap::Reply;
use crate::error::Error;
use crate::switchboard::Event;
use crate::transport::End;

/// What the server says of a turn that runs or is over.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The turn: status, error, times.
    turn: Value,
    /// Its items, oldest first: those that are finished, and in the older form also calls that
    /// are not.
    items: Vec<Value>,
    /// They are numbered, and have lost the names under which they were told.
    numbered: bool,
}

impl Snapshot {
    fn runs(&self) -> bool {
        self.turn["status"] == "inProgress"
    }

    /// A server that is started anew finds turns that never ended, and calls them interrupted.
    fn is_lost(&self) -> bool {
        self.turn["status"] == "interrupted" && self.turn["completedAt"].is_null()
    }
}

impl Drive {
    /// Starts to learn what was missed; what comes meanwhile is held back.
    pub(super) fn catch_up(&mut self) {
        self.mapper.note_missed_events();
        self.gap.hold();
        let (control, agents) = (self.control.clone(), self.mapper.agent_threads());
        let usage = !self.gap.asked_usage;
        self.gap.catching.spawn(snapshot(control, agents, usage));
    }

    /// Tells what was missed; true if the turn had to be let go, whatever Codex makes of it.
    pub(super) async fn caught_up(&mut self, caught: Result<Snapshot, Error>) -> bool {
        let mut snapshot = match caught {
            Ok(snapshot) => snapshot,
            // The connection is lost again; there will be another, or the end.
            Err(Error::Closed { .. }) => {
                self.gap.open();
                return false;
            }
            Err(err) => return self.let_go(&err).await,
        };
        self.gap.asked_usage |= !snapshot.runs();
        let held = self.gap.close();
        if snapshot.numbered {
            held.iter().for_each(|event| self.hear(event));
            self.names.give(&mut snapshot.items);
        }
        for item in &snapshot.items {
            // A steered turn is known by where the user's words begin.
            self.event(self.notification("item/started", json!({ "item": item }))).await;
            if item["status"] != "inProgress" {
                self.event(self.notification("item/completed", json!({ "item": item }))).await;
            }
        }
        for event in held {
            self.event(event).await;
        }
        self.go_on(&snapshot).await;
        false
    }

    /// Remembers what the thread calls what it says.
    pub(super) fn hear(&mut self, event: &Event) {
        if let Event::Notification(notification) = event
            && notification.address.thread_id.as_ref() == Some(&self.control.thread_id)
        {
            self.names.hear(&notification.body);
        }
    }

    /// Sends an answer, and keeps it in case it is lost on its way.
    pub(super) fn respond(&mut self, id: RequestId, reply: Reply) {
        self.gap.say(&id, &reply);
        let peer = self.control.server.peer();
        self.errands.spawn(async move {
            // What is lost with the connection is asked again.
            let _ = match reply {
                Ok(result) => peer.respond(&id, result).await,
                Err(error) => peer.respond_error(&id, &error).await,
            };
        });
    }

    /// Whether a question was asked before: Codex repeats what is open to whoever subscribes.
    pub(super) fn is_repeated(&mut self, id: &RequestId) -> bool {
        if self.questions.is_open(id) {
            return true;
        }
        let said = self.gap.said(id);
        let repeated = said.is_some();
        if let Some(reply) = said {
            self.respond(id.clone(), reply);
        }
        repeated
    }

    /// A call that is complete needs no answer; after a gap nobody else says so.
    pub(super) async fn settle(&mut self, item: &ItemId) {
        if !self.gap.is_torn() {
            return;
        }
        for id in self.questions.about(item) {
            self.resolved(&id).await;
        }
    }

    async fn go_on(&mut self, snapshot: &Snapshot) {
        if self.mapper.is_finished() {
            return;
        }
        if snapshot.runs() {
            // The first may have been lost with the connection.
            if self.clock.stopping.is_some() {
                self.send_interrupt();
            }
        } else if snapshot.is_lost() && self.clock.stopping.is_none() {
            let status = "it was started anew, and the turn went with the old one".to_owned();
            self.closed(&End { status, stderr: String::new() }).await;
        } else {
            let end = self.notification("turn/completed", json!({ "turn": snapshot.turn }));
            self.event(end).await;
        }
    }

    /// The turn runs on, unheard; it is asked to stop.
    async fn let_go(&mut self, err: &Error) -> bool {
        self.stop();
        let message = format!("the connection was lost, and the turn cannot be heard again: {err}");
        let parts = self.mapper.cut(&Cut { kind: "detached".to_owned(), message });
        self.give(parts).await;
        true
    }

    fn notification(&self, method: &str, mut params: Value) -> Event {
        params["threadId"] = json!(self.control.thread_id);
        if params.get("turn").is_none() {
            params["turnId"] = json!(self.control.turn_id);
        }
        let params = serde_json::value::to_raw_value(&params).unwrap_or_default();
        Event::Notification(Box::new(Notification::decode(method, &params)))
    }
}

/// A thread is written down a moment after its first turn began, and a turn's end a moment after
/// the thread is idle.
const MOMENT: Duration = Duration::from_secs(5);

/// How often to look within that moment.
const GLANCE: Duration = Duration::from_millis(100);

/// Token counts follow the reply; nothing tells that they have come.
const COUNTING: Duration = Duration::from_millis(300);

/// What 0.166 answers when a thread's form has no such list.
const UNSUPPORTED: i64 = -32601;

/// Pages of a list, in case a server pages in circles.
const PAGES: usize = 1000;

async fn snapshot(
    control: TurnControl,
    agents: Vec<ThreadId>,
    usage: bool,
) -> Result<Snapshot, Error> {
    let begin = Instant::now();
    let active = loop {
        match control.resume(&control.thread_id, true).await {
            // 0.166: `no rollout found`, then `rollout … is empty`.
            Err(Error::Rpc { .. }) if begin.elapsed() < MOMENT => sleep(GLANCE).await,
            resumed => break resumed?,
        }
    };
    for agent in agents {
        if let Err(err) = control.resume(&agent, true).await {
            tracing::debug!(%agent, %err, "a sub-agent cannot be heard again");
        }
    }
    let turn = control.find_turn(active).await?;
    let (items, numbered) = control.items().await?;
    let snapshot = Snapshot { turn, items, numbered };
    if usage && !snapshot.runs() {
        // 0.166 tells the counts again only to those who take the whole history.
        control.resume(&control.thread_id, false).await?;
        sleep(COUNTING).await;
    }
    Ok(snapshot)
}

impl TurnControl {
    /// Subscribes; tells whether the thread is in the middle of a turn.
    async fn resume(&self, thread: &ThreadId, exclude_turns: bool) -> Result<bool, Error> {
        let settings = ThreadSettings::default();
        let params = ThreadResume { thread_id: thread.clone(), settings, exclude_turns };
        let opened = self.server.resume_thread(&params).await?;
        Ok(opened.thread.status["type"] == "active")
    }

    /// The turn as the server has it; one that runs in an idle thread is about to end.
    async fn find_turn(&self, active: bool) -> Result<Value, Error> {
        let begin = Instant::now();
        loop {
            let turn = self.look_up("notLoaded").await?;
            if active || turn["status"] != "inProgress" || begin.elapsed() > MOMENT {
                return Ok(turn);
            }
            sleep(GLANCE).await;
        }
    }

    /// Newest first, so it is usually on the first page.
    async fn look_up(&self, items_view: &str) -> Result<Value, Error> {
        let mut cursor = None;
        for _ in 0..PAGES {
            let params = json!({
                "threadId": self.thread_id, "itemsView": items_view, "limit": 20,
                "cursor": cursor,
            });
            let page: Page<Value> = self.server.request("thread/turns/list", &params).await?;
            if let Some(turn) = page.data.into_iter().find(|turn| self.is_it(turn)) {
                return Ok(turn);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let why = "the turn is not among the turns of its thread".to_owned();
        Err(Error::Protocol { what: "thread/turns/list".to_owned(), why })
    }

    fn is_it(&self, turn: &Value) -> bool {
        turn["id"] == self.turn_id.as_str()
    }

    /// The items, and whether they have numbers instead of names: a thread of the older
    /// form has no list of items, only turns that hold them.
    async fn items(&self) -> Result<(Vec<Value>, bool), Error> {
        match self.list_items().await {
            Err(Error::Rpc { code: UNSUPPORTED, .. }) => {
                let mut turn = self.look_up("full").await?;
                let items = turn["items"].as_array_mut().map(std::mem::take);
                Ok((items.unwrap_or_default(), true))
            }
            listed => Ok((listed?, false)),
        }
    }

    async fn list_items(&self) -> Result<Vec<Value>, Error> {
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let params = json!({
                "threadId": self.thread_id, "turnId": self.turn_id, "limit": 50,
                "cursor": cursor,
            });
            let page: Page<Value> = self.server.request("thread/items/list", &params).await?;
            items.extend(page.data.into_iter().map(|mut row| row["item"].take()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(items)
    }
}
