//! Images that were sent: they count, and they go.

use std::time::{Duration, SystemTime};

use bindery_daemon::config::{Backend, Config};
use bindery_daemon::http::uploads::sweep;
use bindery_daemon::shelf::Shelf;
use bindery_daemon::store::Change;
use bindery_daemon::tenant::Limits;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Stage, value};

async fn stage() -> (Stage, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config { codex_home: Some(folder.path().into()), ..Config::default() };
    config.workers.backend = Backend::Engine;
    (Stage::with(config, folder.path().into()).await, folder)
}

async fn send(stage: &Stage, more: usize) -> (u16, Value) {
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &vec![0; more]].concat();
    let sent = stage.ask(Method::POST, "/v1/uploads").header("content-type", "image/png");
    let response = sent.body(png).send().await.unwrap();
    (response.status().as_u16(), value(response).await)
}

/// Starts a turn that names the image, and waits for its end: nothing runs it here.
async fn show(stage: &Stage, thread: &str, upload: &Value) -> u16 {
    let image = json!({ "type": "file", "mediaType": "image/png", "data": upload["data"] });
    let path = format!("/v1/threads/{thread}/turns");
    let response = stage.post(&path, &json!({ "input": [image] })).await;
    let status = response.status().as_u16();
    if status == 201 {
        let turn = value(response).await["id"].as_str().unwrap().to_owned();
        let events = stage.get(&format!("/v1/turns/{turn}/events")).await;
        crate::stage::Events::of(events).rest().await;
    }
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_events_are_forgotten_says_so() {
    let (stage, _folder) = stage().await;
    let thread = thread(&stage).await;
    let path = format!("/v1/threads/{thread}/turns");
    let turn = value(stage.post(&path, &json!({ "input": "go" })).await).await;
    let events = format!("/v1/turns/{}/events", turn["id"].as_str().unwrap());
    let told = crate::stage::Events::of(stage.get(&events).await).rest().await;
    assert_eq!(told.last().unwrap().name, "end");
    let path = format!("/v1/turns/{}", turn["id"].as_str().unwrap());
    stage.app.runner.keep_results(i64::MAX).await.unwrap();
    let read = value(stage.get(&path).await).await;
    assert_eq!((&read["state"], &read["changes"]), (&json!("failed"), &json!([])));
    let forget = Change::Forget { before: i64::MAX };
    stage.app.store.commit(vec![forget]).await.unwrap();
    let gone = stage.get(&events).await;
    assert_eq!(gone.status(), 410);
    assert_eq!(value(gone).await["code"], "events_forgotten");
    assert_eq!(value(stage.get(&path).await).await, read, "what came of it stays");
    // Whoever has read all of it need not know.
    let path = format!("{events}?after={}", told.len());
    assert_eq!(stage.get(&path).await.status(), 204);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_kept_once_for_its_key() {
    let (stage, _folder) = stage().await;
    let send = |bytes: &'static [u8], kind: &'static str| {
        let sent = stage.ask(Method::POST, "/v1/uploads").header("idempotency-key", "k");
        async move {
            let response = sent.header("content-type", kind).body(bytes).send().await.unwrap();
            (response.status().as_u16(), value(response).await)
        }
    };
    let (one, two) = tokio::join!(
        send(b"\x89PNG\r\n\x1a\none", "image/png"),
        send(b"\x89PNG\r\n\x1a\none", "image/png"),
    );
    assert_eq!(one.0 + two.0, 401, "{one:?} {two:?}");
    assert_eq!(one.1, two.1);
    let (status, other) = send(b"\x89PNG\r\n\x1a\nother", "image/png").await;
    assert_eq!((status, &other["code"]), (409, &json!("idempotency_key_reused")));
    let (status, other) = send(b"\xff\xd8\xffone", "image/jpeg").await;
    assert_eq!((status, &other["code"]), (409, &json!("idempotency_key_reused")));
    stage.end().await;
}

async fn thread(stage: &Stage) -> String {
    let made = value(stage.post("/v1/threads", &json!({})).await).await;
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_uses_any_more_goes_and_makes_room() {
    let (stage, _folder) = stage().await;
    let mut tenant = stage.app.tenants.find("default").await.unwrap();
    let shelf = Shelf::new(&stage.app.config.data, &tenant.id);
    tenant.settings.limits = Limits { disk: 100_000, ..tenant.settings.limits };
    stage.app.tenants.set(&tenant).await.unwrap();
    let (_, first) = send(&stage, 60_000).await;
    let (status, full) = send(&stage, 60_000).await;
    assert_eq!((status, &full["code"]), (507, &json!("disk_full")));
    let (one, two) = (thread(&stage).await, thread(&stage).await);
    assert_eq!(show(&stage, &one, &first).await, 201);
    assert_eq!(show(&stage, &two, &first).await, 201);
    // Used by two: it goes with the second.
    let archive = async |thread: &str| {
        let path = format!("/v1/threads/{thread}/archive");
        assert_eq!(stage.post(&path, &json!({})).await.status(), 200);
    };
    archive(&one).await;
    assert!(shelf.bytes() > 60_000);
    archive(&two).await;
    assert_eq!(shelf.bytes(), 0);
    let three = thread(&stage).await;
    assert_eq!(show(&stage, &three, &first).await, 404);
    let (status, second) = send(&stage, 60_000).await;
    assert_eq!(status, 201, "there is room again: {second}");
    // Old age.
    sweep(&stage.app, SystemTime::now() - Duration::from_secs(3600)).await.unwrap();
    assert!(shelf.bytes() > 60_000);
    sweep(&stage.app, SystemTime::now() + Duration::from_secs(3600)).await.unwrap();
    assert_eq!(shelf.bytes(), 0);
    assert_eq!(show(&stage, &three, &second).await, 404);
    stage.end().await;
}
