//! Who hears what, and when.

use std::collections::HashSet;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::service::ears::Client;
use crate::service::outbox::{Outgoing, Room, outbox};

struct Stage {
    ears: Arc<Ears>,
    desk: Arc<Desk>,
    crowd: Arc<Crowd>,
}

struct Listener {
    ear: Arc<Ear>,
    outgoing: Outgoing,
}

impl Stage {
    fn new() -> Self {
        let (ears, desk) = (Arc::<Ears>::default(), Arc::<Desk>::default());
        let crowd = Crowd::new("t1", &ears, &desk);
        Self { ears, desk, crowd }
    }

    fn listener(&self, id: ConnectionId, deaf_to: &[&str]) -> Listener {
        let (outbox, outgoing) = outbox(Room::default(), CancellationToken::new());
        let deaf_to: HashSet<String> = deaf_to.iter().map(|name| (*name).to_owned()).collect();
        let ear = Ear { id, outbox, deaf_to, client: Client::default(), experimental: false };
        let ear = Arc::new(ear);
        self.ears.add(ear.clone());
        Listener { ear, outgoing }
    }

    fn outlet(&self) -> CrowdOutlet {
        CrowdOutlet(self.crowd.clone())
    }
}

impl Listener {
    /// What it has heard: methods, with the numbers of questions.
    fn heard(&mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| self.outgoing.ready());
        let read = lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        let name = |line: Value| {
            let method = line["method"].as_str().unwrap_or_default().to_owned();
            match line.get("id") {
                Some(id) => format!("{method} {id}"),
                None => method,
            }
        };
        read.map(name).collect()
    }
}

#[test]
fn a_thread_is_heard_by_its_listeners_and_its_status_by_everyone() {
    let stage = Stage::new();
    let (mut near, mut far) = (stage.listener(1, &[]), stage.listener(2, &[]));
    let mut choosy = stage.listener(3, &["item/agentMessage/delta"]);
    stage.crowd.join(&near.ear);
    stage.crowd.join(&choosy.ear);
    let outlet = stage.outlet();
    outlet.tell("item/agentMessage/delta", json!({ "threadId": "t1" }));
    let status = json!({ "type": "active", "activeFlags": [] });
    outlet.tell("thread/status/changed", json!({ "threadId": "t1", "status": status }));
    assert_eq!(near.heard(), ["item/agentMessage/delta", "thread/status/changed"]);
    assert_eq!(far.heard(), ["thread/status/changed"]);
    assert_eq!(choosy.heard(), ["thread/status/changed"]);
    assert_eq!(stage.crowd.status()["type"], "active");
}

#[tokio::test]
async fn the_first_answer_counts_and_everyone_is_told() {
    let stage = Stage::new();
    let (mut one, mut two) = (stage.listener(1, &[]), stage.listener(2, &[]));
    let mut stranger = stage.listener(3, &[]);
    stage.crowd.join(&one.ear);
    stage.crowd.join(&two.ear);
    let outlet = stage.outlet();
    let asked = outlet.ask("item/fileChange/requestApproval", json!({ "threadId": "t1" }));
    assert_eq!(one.heard(), ["item/fileChange/requestApproval 0"]);
    assert_eq!(two.heard(), ["item/fileChange/requestApproval 0"]);
    stage.desk.answer(3, 0, Ok(json!("a stranger's")));
    stage.desk.answer(2, 0, Ok(json!("two's")));
    stage.desk.answer(1, 0, Ok(json!("one's")));
    assert_eq!(asked.await, Ok(json!("two's")));
    for listener in [&mut one, &mut two] {
        assert_eq!(listener.heard(), ["serverRequest/resolved"]);
    }
    assert!(stranger.heard().is_empty());
}

#[tokio::test]
async fn a_question_waits_for_somebody_to_come() {
    let stage = Stage::new();
    let mut gone = stage.listener(1, &[]);
    stage.crowd.join(&gone.ear);
    let outlet = stage.outlet();
    let asked = outlet.ask("item/tool/call", json!({ "threadId": "t1" }));
    assert_eq!(gone.heard(), ["item/tool/call 0"]);
    assert!(stage.crowd.leave(1));
    stage.desk.answer(1, 0, Ok(json!("too late")));
    let mut next = stage.listener(2, &[]);
    stage.crowd.welcome(&next.ear);
    assert_eq!(next.heard(), ["item/tool/call 0"]);
    stage.desk.answer(2, 0, Err(Refusal { why: "no".to_owned() }));
    assert_eq!(asked.await, Err(Refusal { why: "no".to_owned() }));
    // Codex does not say that a tool's call is settled.
    assert!(next.heard().is_empty());
}

#[test]
fn a_dropped_question_is_withdrawn() {
    let stage = Stage::new();
    let mut listener = stage.listener(1, &[]);
    stage.crowd.join(&listener.ear);
    let outlet = stage.outlet();
    drop(outlet.ask("item/permissions/requestApproval", json!({})));
    let want = ["item/permissions/requestApproval 0", "serverRequest/resolved"];
    assert_eq!(listener.heard(), want);
    let mut late = stage.listener(2, &[]);
    stage.crowd.welcome(&late.ear);
    assert!(late.heard().is_empty());
    assert!(stage.desk.lock().is_empty());
}

#[test]
fn what_is_told_waits_for_the_reply_and_is_said_once() {
    let stage = Stage::new();
    let (mut old, mut new) = (stage.listener(1, &[]), stage.listener(2, &[]));
    stage.crowd.join(&old.ear);
    let outlet = stage.outlet();
    let before = outlet.ask("item/tool/call", json!({}));
    assert_eq!(old.heard(), ["item/tool/call 0"]);
    let hold = stage.crowd.hold();
    outlet.tell("item/started", json!({}));
    let meanwhile = outlet.ask("item/tool/call", json!({}));
    assert!(old.heard().is_empty());
    stage.crowd.welcome(&new.ear);
    drop(hold);
    assert_eq!(old.heard(), ["item/started", "item/tool/call 1"]);
    assert_eq!(new.heard(), ["item/tool/call 0", "item/started", "item/tool/call 1"]);
    drop((before, meanwhile));
}

#[tokio::test(start_paused = true)]
async fn only_a_thread_that_is_alone_and_idle_is_idle() {
    let stage = Stage::new();
    let listener = stage.listener(1, &[]);
    assert!(stage.crowd.idle_since().is_some());
    stage.crowd.join(&listener.ear);
    assert!(stage.crowd.idle_since().is_none());
    let status = |word: &str| json!({ "status": { "type": word } });
    stage.outlet().tell("thread/status/changed", status("active"));
    stage.crowd.leave(1);
    assert!(stage.crowd.idle_since().is_none(), "a turn runs on without listeners");
    stage.outlet().tell("thread/status/changed", status("idle"));
    assert!(stage.crowd.idle_since().is_some());
}
