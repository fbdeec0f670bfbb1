//! Greetings, refusals, rubbish, overload.

use bindery_engine::service::ServiceSettings;
use bindery_engine::service::connection::Incoming;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::peer::Peer;
use super::supply::service;

const NOBODY: &str = "0199aaaa-0000-7000-8000-000000000000";

const THREAD: &str = "invalid thread id: invalid character: expected an optional prefix of \
    `urn:uuid:` followed by [0-9a-fA-F-], found `z` at 1";

const SESSION: &str = "invalid session id: invalid character: expected an optional prefix of \
    `urn:uuid:` followed by [0-9a-fA-F-], found `z` at 1";

const POLICY: &str = "Invalid request: unknown variant `bogus`, expected one of `untrusted`, \
    `on-request`, `granular`, `never`";

#[tokio::test]
async fn refusals_are_worded_as_codex_words_them() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::silent(&service);
    let early = peer.ask("thread/start", json!({})).await.unwrap_err();
    assert_eq!(early, "Not initialized");
    let hello = json!({ "clientInfo": { "name": "p", "version": "1" } });
    let greeted = peer.ask("initialize", hello.clone()).await.unwrap();
    assert!(greeted["userAgent"].as_str().unwrap().starts_with("p/0.166.0 ("), "{greeted}");
    #[rustfmt::skip]
    let table = [
        ("initialize",          hello,                              "Already initialized"),
        ("initialize",          json!({}),                          "Invalid request: missing field `clientInfo`"),
        ("thread/start",        Value::Null,                        "Invalid request: missing field `params`"),
        ("thread/start",        json!({ "cwd": 5 }),                "Invalid request: invalid type: integer `5`, expected a string"),
        ("thread/start",        json!({ "sandbox": "bogus" }), "Invalid request: unknown variant `bogus`, expected one of `read-only`, `workspace-write`, `danger-full-access`"),
        ("thread/start",        json!({ "approvalPolicy": "bogus" }), POLICY),
        ("thread/start",        json!({ "approvalsReviewer": "bogus" }), "Invalid request: unknown variant `bogus`, expected one of `user`, `auto_review`, `guardian_subagent`"),
        ("thread/start",        json!({ "dynamicTools": [] }),      "thread/start.dynamicTools requires experimentalApi capability"),
        ("turn/start",          json!({ "threadId": NOBODY }),      "Invalid request: missing field `input`"),
        ("turn/start",          json!({ "threadId": NOBODY, "input": [] }), "thread not found: 0199aaaa-0000-7000-8000-000000000000"),
        ("turn/start",          json!({ "threadId": "zzz", "input": [] }),  THREAD),
        ("turn/interrupt",      json!({ "threadId": NOBODY, "turnId": "x" }), "thread not found: 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/resume",       json!({ "threadId": NOBODY }),      "no rollout found for thread id 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/resume",       json!({ "threadId": "zz" }),        SESSION),
        ("thread/read",         json!({ "threadId": NOBODY }),      "thread not loaded: 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/archive",      json!({ "threadId": NOBODY }),      "no rollout found for thread id 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/unarchive",    json!({ "threadId": NOBODY }),      "no archived rollout found for thread id 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/name/set",     json!({ "threadId": NOBODY, "name": "n" }), "no rollout found for thread id 0199aaaa-0000-7000-8000-000000000000"),
        ("thread/goal/get",     json!({}),                          "thread/goal/get is not served by the built-in engine"),
    ];
    for (method, params, want) in table {
        assert_eq!(peer.ask(method, params).await.unwrap_err(), want, "{method}");
    }
    let unknown = peer.ask("nope", json!({})).await.unwrap_err();
    let want = "Invalid request: unknown variant `nope`, expected one of `initialize`, ";
    assert!(unknown.starts_with(want), "{unknown}");
}

#[tokio::test]
async fn a_review_is_a_turn_of_its_thread() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    let thread = peer.thread().await;
    let target = json!({ "type": "custom", "instructions": "look hard" });
    let detached = json!({ "threadId": thread, "target": target, "delivery": "detached" });
    let refused = peer.ask("review/start", detached).await.unwrap_err();
    assert_eq!(refused, "Invalid request: unknown variant `detached`, expected `inline`");
    let empty = json!({ "threadId": thread, "target": { "type": "baseBranch", "branch": "" } });
    let refused = peer.ask("review/start", empty).await.unwrap_err();
    assert_eq!(refused, "branch must not be empty");
    let params = json!({ "threadId": thread, "target": target, "delivery": "inline" });
    let opened = peer.ask("review/start", params).await.unwrap();
    assert_eq!(opened["reviewThreadId"], *thread);
    assert_eq!(opened["turn"]["items"][0]["content"][0]["text"], "look hard");
    let entered = peer.told("item/completed").await;
    assert_eq!(entered["params"]["turnId"], opened["turn"]["id"]);
    assert_eq!(entered["params"]["item"]["type"], "enteredReviewMode");
    assert_eq!(peer.ended().await, "you said look hard");
}

#[tokio::test]
async fn ids_come_back_as_they_came() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    for id in [json!("a string"), json!(-7), json!(i64::MAX)] {
        peer.send(&json!({ "id": id, "method": "model/list", "params": {} })).await;
        assert_eq!(peer.next().await.unwrap()["id"], id);
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_by_its_name() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    let head = br#"{"id":77,"method":"fs/writeFile","params":{"dataBase64":"AAAA"#.to_vec();
    peer.send_raw(Incoming::TooLong { head, bytes: 1 << 30 }).await;
    let refused = peer.answer(77).await.unwrap_err();
    assert!(refused.contains("1073741824 bytes in one message"), "{refused}");
}

/// Lines of every kind, cut and garbled: no line ends the connection or another's.
#[test]
fn rubbish_is_borne() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let good = [
        r#"{"id":5,"method":"thread/start","params":{"cwd":"/"}}"#,
        r#"{"id":"x","method":"turn/start","params":{"threadId":"t","input":[{"type":"text"}]}}"#,
        r#"{"id":0,"result":{"decision":"accept"}}"#,
        r#"{"id":0,"error":{"code":1,"message":"no"}}"#,
        r#"{"method":"initialized"}"#,
    ];
    let garbled = (0..good.len(), any::<prop::sample::Index>(), any::<Vec<u8>>()).prop_map(
        move |(line, at, bytes)| {
            let mut line = good[line].as_bytes().to_vec();
            let at = at.index(line.len());
            line.splice(at..(at + bytes.len()).min(line.len()), bytes);
            line
        },
    );
    let lines = prop::collection::vec(prop_oneof![garbled, any::<Vec<u8>>()], 1..20);
    let mut runner = TestRunner::new(Config { cases: 64, ..Config::default() });
    let (service, _) = runtime.block_on(async { service(ServiceSettings::default()) });
    let outcome = runner.run(&lines, |lines| {
        runtime.block_on(async {
            let mut peer = Peer::new(&service).await;
            for line in lines {
                peer.send_line(line).await;
            }
            peer.send(&json!({ "id": "last", "method": "model/list", "params": {} })).await;
            while peer.next().await.expect("the connection ended")["id"] != "last" {}
        });
        Ok(())
    });
    outcome.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn too_much_at_once_is_refused_as_codex_refuses_it() {
    let (service, _) = service(ServiceSettings::default());
    let mut peer = Peer::new(&service).await;
    let params = json!({ "command": ["sleep", "600"], "disableTimeout": true,
        "sandboxPolicy": { "type": "dangerFullAccess" } });
    // As many as run beside each other, one that waits for them, and as many as may wait.
    for id in 1000..1200 {
        peer.send(&json!({ "id": id, "method": "command/exec", "params": params })).await;
    }
    let refused = peer.next().await.unwrap();
    let want = json!({ "code": -32001, "message": "Server overloaded; retry later." });
    assert_eq!(refused["error"], want, "{refused}");
    drop(peer);
    service.stop().await;
}
