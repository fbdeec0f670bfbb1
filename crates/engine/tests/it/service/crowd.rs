//! Several clients of one thread: who hears it, who answers it, who may go.

use std::time::Duration;

use bindery_engine::service::ServiceSettings;
use bindery_engine::service::outbox::Room;
use serde_json::json;

use super::peer::Peer;
use super::supply::service;

#[tokio::test]
async fn those_who_listen_hear_a_turn_and_others_do_not() {
    let (service, _) = service(ServiceSettings::default());
    let mut one = Peer::new(&service).await;
    let mut two = Peer::new(&service).await;
    let mut stranger = Peer::new(&service).await;
    let thread = one.thread().await;
    two.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    assert_eq!(one.say(&thread, "hello").await, "you said hello");
    assert_eq!(two.ended().await, "you said hello");
    stranger.ask("model/list", json!({})).await.unwrap();
    let heard = stranger.rest();
    let public =
        |name: &String| ["thread/started", "thread/status/changed"].contains(&name.as_str());
    assert!(heard.iter().all(public), "{heard:?}");
    let left = two.ask("thread/unsubscribe", json!({ "threadId": thread })).await.unwrap();
    assert_eq!(left["status"], "unsubscribed");
    two.rest();
    one.say(&thread, "again").await;
    let again = two.ask("thread/unsubscribe", json!({ "threadId": thread })).await.unwrap();
    assert_eq!(again["status"], "notSubscribed");
    assert!(two.rest().iter().all(public));
}

#[tokio::test]
async fn the_answer_to_turn_start_comes_before_the_turn() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    peer.rest();
    let params = json!({ "threadId": thread, "input": [{ "type": "text", "text": "hi" }] });
    peer.send(&json!({ "id": "t", "method": "turn/start", "params": params })).await;
    assert_eq!(peer.next().await.unwrap()["id"], "t");
}

#[tokio::test]
async fn a_question_is_put_again_and_answered_by_whoever_comes() {
    let (service, _) = service(ServiceSettings::default());
    let mut gone = Peer::new(&service).await;
    let thread = gone.thread().await;
    gone.turn(&thread, "ask").await;
    let asked = gone.told("item/tool/call").await;
    drop(gone);
    let mut next = Peer::new(&service).await;
    let opened = next.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    assert_eq!(opened["thread"]["status"]["type"], "active");
    let again = next.told("item/tool/call").await;
    assert_eq!(again["id"], asked["id"]);
    let answer =
        json!({ "success": true, "contentItems": [{ "type": "inputText", "text": "42" }] });
    next.send(&json!({ "id": again["id"], "result": answer })).await;
    assert_eq!(next.ended().await, "you said ask");
}

#[tokio::test]
async fn an_interrupt_withdraws_what_was_asked() {
    let (service, _) = service(ServiceSettings::default());
    let mut one = Peer::new(&service).await;
    let thread = one.thread().await;
    let turn = one.turn(&thread, "ask").await;
    one.told("item/tool/call").await;
    let mut two = Peer::new(&service).await;
    two.ask("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await.unwrap();
    let ended = one.told("turn/completed").await;
    assert_eq!(ended["params"]["turn"]["status"], "interrupted");
    two.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    two.ask("model/list", json!({})).await.unwrap();
    assert!(!two.rest().contains(&"item/tool/call".to_owned()));
}

#[tokio::test]
async fn a_turn_outlives_the_connection_it_was_started_on() {
    let (service, parrot) = service(ServiceSettings::default());
    let mut gone = Peer::new(&service).await;
    let thread = gone.thread().await;
    let turn = gone.turn(&thread, "wait").await;
    drop(gone);
    let mut next = Peer::new(&service).await;
    parrot.gate.add_permits(1);
    let params = json!({ "threadId": thread, "excludeTurns": true });
    next.ask("thread/resume", params).await.unwrap();
    let finished = async {
        loop {
            let params = json!({ "threadId": thread, "itemsView": "full" });
            let turns = next.ask("thread/turns/list", params).await.unwrap();
            let found = turns["data"][0].clone();
            if found["status"] != "inProgress" {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(crate::stage::PATIENCE, finished).await.unwrap();
    assert_eq!((&found["id"], &found["status"]), (&json!(turn), &json!("completed")));
    let params = json!({ "threadId": thread, "turnId": turn });
    let items = next.ask("thread/items/list", params).await.unwrap();
    let texts: Vec<&str> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["item"]["text"].as_str())
        .collect();
    assert_eq!(texts, ["you said wait"]);
}

#[tokio::test]
async fn one_who_does_not_read_loses_its_connection_and_nobody_else_anything() {
    let room = Room { lines: 1000, bytes: 1 << 20 };
    let (service, _) = service(ServiceSettings { room, ..ServiceSettings::default() });
    let mut lazy = Peer::new(&service).await;
    let thread = lazy.thread().await;
    lazy.turn(&thread, "flood").await;
    lazy.hung_up().await;
    let mut other = Peer::new(&service).await;
    let it = json!({ "threadId": thread });
    let ended = async {
        // Read and not resumed: whoever listens to a flood must read all of it.
        while other.ask("thread/read", it.clone()).await.unwrap()["thread"]["status"]["type"]
            != "idle"
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, ended).await.expect("the flood goes on");
    other.ask("thread/resume", it).await.unwrap();
    assert_eq!(other.say(&thread, "still there").await, "you said still there");
}

#[tokio::test]
async fn a_thread_that_nobody_wants_is_unloaded() {
    let unload_after = Duration::from_millis(50);
    let (service, _) = service(ServiceSettings { unload_after, ..ServiceSettings::default() });
    let mut one = Peer::new(&service).await;
    let mut watcher = Peer::new(&service).await;
    let kept = one.thread().await;
    let left = one.thread().await;
    one.ask("thread/unsubscribe", json!({ "threadId": left })).await.unwrap();
    let closed = watcher.told("thread/closed").await;
    assert_eq!(closed["params"]["threadId"], json!(left));
    let loaded = one.ask("thread/loaded/list", json!({})).await.unwrap();
    assert_eq!(loaded["data"], json!([kept]));
}

#[tokio::test]
async fn stopping_ends_turns_and_connections() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    peer.turn(&thread, "wait").await;
    tokio::time::timeout(crate::stage::PATIENCE, service.stop()).await.expect("it never stops");
    while peer.next().await.is_some() {}
}
