//! Requests with an `Idempotency-Key`: made once, by whoever and however often they are sent.

use bindery_testkit::model::{Reply, Script};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::web::Web;

async fn keyed(web: &Web, path: &str, key: &str, body: Value) -> (u16, Value) {
    web.ask("POST", path, Some(body), &[("idempotency-key", key)]).await
}

#[tokio::test]
async fn a_thread_is_made_once_for_its_key_also_at_the_same_time_and_after_a_restart() {
    let mut daemon = Daemon::new(Script::always("ok"));
    let body = json!({ "title": "once" });
    let many = (0..8).map(|_| keyed(&daemon.web, "/v1/threads", "k", body.clone()));
    let answers = join_all(many).await;
    let made = answers.iter().filter(|(status, _)| *status == 201).count();
    assert_eq!(made, 1, "{answers:?}");
    assert!(answers.iter().all(|(status, said)| *status < 300 && *said == answers[0].1));
    let (status, other) = keyed(&daemon.web, "/v1/threads", "k", json!({ "title": "x" })).await;
    assert_eq!((status, &other["code"]), (409, &json!("idempotency_key_reused")));
    // What was refused took no key.
    let wrong = json!({ "cwd": "no-such-folder" });
    assert_eq!(keyed(&daemon.web, "/v1/threads", "w", wrong).await.0, 422);
    assert_eq!(keyed(&daemon.web, "/v1/threads", "w", body.clone()).await.0, 201);
    daemon.kill();
    daemon.again();
    let (status, again) = keyed(&daemon.web, "/v1/threads", "k", body.clone()).await;
    assert_eq!((status, &again["id"]), (200, &answers[0].1["id"]));
    // Another tenant's key is another key.
    let token = daemon.tenant(&["add", "acme"]);
    let acme = daemon.web.with(&token);
    let (status, theirs) = keyed(&acme, "/v1/threads", "k", body).await;
    assert_eq!(status, 201, "{theirs}");
    let (_, all) = daemon.web.get("/v1/threads").await;
    assert_eq!(all["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn forks_compactions_and_reviews_are_made_once_and_a_key_is_of_its_operation() {
    let daemon = Daemon::new(vec![Reply::text("ok").always()]);
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "go").await;
    daemon.web.follow(&turn, 0).await.rest().await;
    let review = json!({ "target": { "type": "custom", "instructions": "look" } });
    for (act, body) in [("fork", json!({})), ("compact", json!({})), ("review", review)] {
        let path = format!("/v1/threads/{thread}/{act}");
        let (status, first) = keyed(&daemon.web, &path, "same", body.clone()).await;
        assert_eq!(status, 201, "{act}: {first}");
        let (status, second) = keyed(&daemon.web, &path, "same", body).await;
        assert_eq!((status, &second["id"]), (200, &first["id"]), "{act}");
        if act != "fork" {
            let turn = first["id"].as_str().unwrap();
            daemon.web.follow(turn, 0).await.rest().await;
        }
    }
    let other = daemon.thread(json!({})).await;
    let path = format!("/v1/threads/{other}/compact");
    let (status, said) = keyed(&daemon.web, &path, "same", json!({})).await;
    assert_eq!((status, &said["code"]), (409, &json!("idempotency_key_reused")));
    // A turn that was asked for before leaves the thread's settings as they are now.
    let path = format!("/v1/threads/{other}/turns");
    let body = json!({ "input": "hi", "settings": { "sandbox": "read-only" } });
    let (status, first) = keyed(&daemon.web, &path, "t", body.clone()).await;
    assert_eq!(status, 201, "{first}");
    let later = json!({ "input": "ho", "settings": { "sandbox": "workspace-write" } });
    assert_eq!(daemon.web.post(&path, later).await.0, 201);
    assert_eq!(keyed(&daemon.web, &path, "t", body).await.1["id"], first["id"]);
    let (_, kept) = daemon.web.get(&format!("/v1/threads/{other}")).await;
    assert_eq!(kept["settings"]["sandbox"], "workspace-write");
}
