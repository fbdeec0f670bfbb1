//! The smallest session that Codex resumes, written by hand, and what each half of it is for.

use std::path::Path;

use bindery_testkit::codex::RealCodex;
use serde_json::{Value, json};

use crate::resumed::{app_server, load, resumed_input};
use crate::written::{check, message, stage};

const THREAD: &str = "01a1e0d8-fa58-7c30-8b28-2a498ba7d4be";

/// What a client needs to write without any knowledge of Codex's inner life.
fn lines(cwd: &Path, events: bool, items: bool) -> Vec<(&'static str, Value)> {
    let mut lines = vec![(
        "session_meta",
        json!({
            "id": THREAD,
            "cwd": cwd,
            "originator": "by hand",
            "cli_version": "0.1.0",
            "source": "cli",
            "model_provider": "scripted",
            "timestamp": "2026-11-15T20:14:38.993Z",
        }),
    )];
    if items {
        lines.push(("response_item", message("user", "Hello")));
    }
    if events {
        let user = json!({
            "type": "user_message",
            "message": "Hello",
            "images": null,
            "local_images": [],
            "text_elements": [],
        });
        lines.push(("event_msg", user));
        let agent = json!({ "type": "agent_message", "message": "Hi!", "phase": null });
        lines.push(("event_msg", agent));
    }
    if items {
        lines.push(("response_item", message("assistant", "Hi!")));
    }
    lines
}

fn write(codex: &RealCodex, events: bool, items: bool) {
    let folder = codex.home().join("sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-2026-11-15T20-14-38-{THREAD}.jsonl"));
    let stamp = "2026-11-15T20:14:38.993Z";
    let lines = lines(&codex.project(), events, items);
    let lines = lines.iter().map(|(kind, payload)| {
        format!("{}\n", json!({ "timestamp": stamp, "type": kind, "payload": payload }))
    });
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

/// What Codex shows of it, and what its model is told.
async fn outcome(events: bool, items: bool) -> (String, usize, bool) {
    let (model, codex) = stage();
    write(&codex, events, items);
    check(&codex.home());
    let ours = load(&codex.home(), THREAD);
    let mut lines = app_server(&codex).await;
    let params = json!({ "threadId": THREAD, "includeTurns": true });
    let reply = lines.request("thread/read", params).await;
    lines.close().await;
    let thread = &reply["result"]["thread"];
    let preview = thread["preview"].as_str().unwrap().to_owned();
    let turns = thread["turns"].as_array().unwrap().len();
    let input = resumed_input(&codex, &model, THREAD).await;
    let is_told = input.iter().any(|item| item["content"][0]["text"] == "Hi!");
    assert_eq!(!ours.history.is_empty(), is_told);
    (preview, turns, is_told)
}

#[tokio::test]
async fn events_are_shown_and_items_are_told() {
    let hello = || "Hello".to_owned();
    assert_eq!(outcome(true, false).await, (hello(), 1, false));
    assert_eq!(outcome(false, true).await, (String::new(), 0, true));
    assert_eq!(outcome(true, true).await, (hello(), 1, true));
}
