//! Threads in session files: over restarts, copied, put away.

use bindery_engine::service::Service;
use serde_json::json;

use super::peer::Peer;
use super::supply::service_at;

async fn reopened(service: Service, home: &std::path::Path) -> (Service, Peer) {
    service.stop().await;
    let service = service_at(home);
    let peer = Peer::new(&service).await;
    (service, peer)
}

#[tokio::test]
async fn a_thread_is_listed_read_and_resumed_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let service = service_at(home.path());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    let empty = peer.ask("thread/list", json!({})).await.unwrap();
    assert_eq!(empty["data"], json!([]), "nothing was said yet");
    peer.say(&thread, "remember me").await;
    peer.ask("thread/name/set", json!({ "threadId": thread, "name": "a name" })).await.unwrap();
    let (service, mut peer) = reopened(service, home.path()).await;
    let list = peer.ask("thread/list", json!({})).await.unwrap();
    assert_eq!(list["data"][0]["id"], json!(thread));
    assert_eq!(list["data"][0]["name"], "a name");
    let read = json!({ "threadId": thread, "includeTurns": true });
    let read = peer.ask("thread/read", read).await.unwrap();
    assert_eq!(read["thread"]["preview"], "remember me");
    assert_eq!(read["thread"]["status"]["type"], "notLoaded");
    assert_eq!(read["thread"]["turns"][0]["items"][1]["text"], "you said remember me");
    let resumed = peer.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    assert_eq!(resumed["thread"]["turns"].as_array().unwrap().len(), 1);
    assert_eq!(peer.say(&thread, "more").await, "you said more");
    // The tools that the client declared came back with the thread.
    peer.turn(&thread, "ask").await;
    assert_eq!(peer.told("item/tool/call").await["params"]["tool"], "oracle");
    service.stop().await;
}

#[tokio::test]
async fn a_fork_leaves_its_source_alone() {
    let home = tempfile::tempdir().unwrap();
    let service = service_at(home.path());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    let first = peer.turn(&thread, "one").await;
    peer.ended().await;
    peer.say(&thread, "two").await;
    let params = json!({ "threadId": thread, "lastTurnId": first });
    let forked = peer.ask("thread/fork", params).await.unwrap();
    assert_eq!(forked["thread"]["forkedFromId"], json!(thread));
    assert_eq!(forked["thread"]["turns"].as_array().unwrap().len(), 1);
    let fork = forked["thread"]["id"].as_str().unwrap().to_owned();
    assert_eq!(peer.say(&fork, "three").await, "you said three");
    let read = json!({ "threadId": thread, "includeTurns": true });
    let read = peer.ask("thread/read", read).await.unwrap();
    assert_eq!(read["thread"]["turns"].as_array().unwrap().len(), 2);
    service.stop().await;
}

#[tokio::test]
async fn threads_are_put_away_and_taken_out() {
    let home = tempfile::tempdir().unwrap();
    let service = service_at(home.path());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    peer.say(&thread, "put me away").await;
    let it = json!({ "threadId": thread });
    peer.ask("thread/archive", it.clone()).await.unwrap();
    assert_eq!(peer.told("thread/archived").await["params"], it);
    assert_eq!(peer.ask("thread/list", json!({})).await.unwrap()["data"], json!([]));
    let away = peer.ask("thread/list", json!({ "archived": true })).await.unwrap();
    assert_eq!(away["data"][0]["id"], json!(thread));
    let gone = peer.ask("thread/resume", it.clone()).await.unwrap_err();
    assert_eq!(gone, format!("no rollout found for thread id {thread}"));
    let back = peer.ask("thread/unarchive", it.clone()).await.unwrap();
    assert_eq!(back["thread"]["preview"], "put me away");
    peer.ask("thread/resume", it.clone()).await.unwrap();
    assert_eq!(peer.say(&thread, "back").await, "you said back");
    peer.ask("thread/delete", it.clone()).await.unwrap();
    assert_eq!(peer.ask("thread/list", json!({})).await.unwrap()["data"], json!([]));
    service.stop().await;
}

#[tokio::test]
async fn two_servers_do_not_write_one_thread() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (service_at(home.path()), service_at(home.path()));
    let mut first = Peer::new(&one).await;
    let mut second = Peer::new(&two).await;
    let thread = first.thread().await;
    first.say(&thread, "mine").await;
    let held = second.ask("thread/resume", json!({ "threadId": thread })).await.unwrap_err();
    assert_eq!(held, format!("thread {thread} already has an active writer"));
    one.stop().await;
    second.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    two.stop().await;
}
