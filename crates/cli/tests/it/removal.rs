//! What is deleted is gone, and what is needed is not deleted.

use std::path::PathBuf;

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;

async fn delete(daemon: &Daemon, path: &str) -> (u16, Value) {
    daemon.web.ask("DELETE", path, None, &[]).await
}

/// The session files in the tenant's home.
fn sessions(daemon: &Daemon) -> Vec<PathBuf> {
    let mut folders = vec![daemon.stage.codex.home().join("sessions")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

#[tokio::test]
async fn a_thread_goes_with_its_turns_and_its_session_stays_unless_it_is_named() {
    let held = Reply::new([Step::gate("held"), Step::text("one")]).when_user("wait");
    let daemon = Daemon::new(vec![held, Reply::text("ok").always()]);
    let (keep, drop) = (daemon.thread(json!({})).await, daemon.thread(json!({})).await);
    let turn = daemon.say(&keep, "wait").await;
    let (status, busy) = delete(&daemon, &format!("/v1/threads/{keep}")).await;
    assert_eq!((status, &busy["code"]), (409, &json!("thread_busy")), "{busy}");
    assert!(busy["hint"].as_str().unwrap().contains("interrupt"), "{busy}");
    daemon.stage.reached("held").await;
    daemon.stage.model.open("held");
    daemon.web.follow(&turn, 0).await.rest().await;
    let other = daemon.say(&drop, "go").await;
    daemon.web.follow(&other, 0).await.rest().await;
    assert_eq!(sessions(&daemon).len(), 2);
    assert_eq!(delete(&daemon, &format!("/v1/threads/{keep}")).await.0, 204);
    assert_eq!(sessions(&daemon).len(), 2);
    assert_eq!(delete(&daemon, &format!("/v1/threads/{drop}?sessions=true")).await.0, 204);
    assert_eq!(sessions(&daemon).len(), 1);
    let events = format!("/v1/turns/{turn}/events");
    let gone = [format!("/v1/threads/{keep}"), format!("/v1/turns/{turn}"), events];
    for path in gone {
        assert_eq!(daemon.web.get(&path).await.0, 404, "{path}");
    }
    let path = format!("/v1/threads/{keep}/turns");
    assert_eq!(daemon.web.post(&path, json!({ "input": "hi" })).await.0, 404);
    assert_eq!(delete(&daemon, &format!("/v1/threads/{keep}")).await.0, 404);
}

#[tokio::test]
async fn an_upload_goes_unless_a_turn_has_to_read_it() {
    let held = Reply::new([Step::gate("held"), Step::text("one")]);
    let daemon = Daemon::new(vec![held, Reply::text("seen").always()]);
    let png = b"\x89PNG\r\n\x1a\nnothing more";
    let (status, upload) = daemon.web.send("/v1/uploads", "image/png", png).await;
    assert_eq!(status, 201, "{upload}");
    let path = format!("/v1/uploads/{}", upload["id"].as_str().unwrap());
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "wait").await;
    let part = json!({ "type": "file", "mediaType": "image/png", "data": upload["data"] });
    let turns = format!("/v1/threads/{thread}/turns");
    let (status, waits) = daemon.web.post(&turns, json!({ "input": [part] })).await;
    assert_eq!(status, 201, "{waits}");
    let (status, busy) = delete(&daemon, &path).await;
    assert_eq!((status, &busy["code"]), (409, &json!("upload_needed")), "{busy}");
    let waits = waits["id"].as_str().unwrap();
    let stop = format!("/v1/turns/{waits}/interrupt");
    assert_eq!(daemon.web.post(&stop, json!({})).await.0, 202);
    daemon.web.follow(waits, 0).await.rest().await;
    assert_eq!(delete(&daemon, &path).await.0, 204);
    assert_eq!(delete(&daemon, &path).await.0, 404);
    daemon.stage.model.open("held");
    daemon.web.follow(&turn, 0).await.rest().await;
}

#[tokio::test]
async fn a_tenant_goes_when_its_turns_are_over_or_the_server_is_stopped() {
    let held = Reply::new([Step::gate("held"), Step::text("one")]);
    let mut daemon = Daemon::new(Script::new(vec![held, Reply::text("ok").always()]));
    let (thread, data) = (daemon.thread(json!({})).await, daemon.data());
    daemon.say(&thread, "wait").await;
    daemon.stage.reached("held").await;
    let refused = |args: &[&str]| {
        let mut all = vec!["tenant", "--data", data.to_str().unwrap(), "remove", "default"];
        all.extend(args);
        let output = daemon.stage.bindery(&all).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&[]).contains("turns that wait or run"), "{}", refused(&[]));
    assert!(refused(&["--force"]).contains("a server runs"), "{}", refused(&["--force"]));
    daemon.kill();
    let told = daemon.tenant(&["remove", "default", "--force"]);
    assert!(told.contains("default"), "{told}");
    assert!(!daemon.tenant(&["list"]).contains("default"));
    daemon.again();
    assert_eq!(daemon.web.get("/v1/threads").await.1["data"], json!([]));
}
