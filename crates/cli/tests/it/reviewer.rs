//! An automatic reviewer, which the engine does not have: whoever asks for one gets a no and a
//! warning, on every way to ask, and no client is asked in its place.
#![cfg(target_os = "linux")]

use bindery_testkit::codex::Options;
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

fn stage(settings: &str) -> Stage {
    let arguments = json!({ "cmd": "echo x > made", "sandbox_permissions": "require_escalated" });
    let turn = |number: usize| {
        let id = format!("c{number}");
        let call = Step::call("exec_command", arguments.clone(), &id);
        let call = Reply::new([call]).when_user(&format!("turn {number}"));
        [call, Reply::text("well").when_output_of(&id)]
    };
    let script: Vec<Reply> = (1..=TURNS).flat_map(turn).collect();
    let options = Options { settings: settings.to_owned(), ..Options::default() };
    Stage::with(script, &options)
}

async fn engine(stage: &Stage, arguments: &[&str]) -> Lines {
    let mut lines = Lines::spawn(stage.bindery(arguments)).unwrap();
    lines.initialize().await;
    lines
}

/// Runs a turn to its end, in which a command asks to leave the sandbox.
async fn declined(stage: &Stage, lines: &mut Lines, thread: &str, turn: usize, more: Value) {
    let text = format!("turn {turn}");
    let mut params = json!({ "threadId": thread, "input": [{ "type": "text", "text": text }] });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let begun = lines.request("turn/start", params).await;
    assert!(begun["error"].is_null(), "{begun}");
    let ended = lines.until_method("turn/completed").await;
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    assert_eq!(lines.received("item/commandExecution/requestApproval").len(), 0);
    let warnings = lines.received("warning");
    let told = |line: &Value| line.to_string().contains("an approval was declined");
    assert!(warnings.iter().any(told), "{warnings:?}");
    assert!(!stage.codex.project().join("made").exists());
    let heard = stage.model.bodies().pop().unwrap().to_string();
    assert!(heard.contains("automatic review"), "{heard}");
}

/// Turns of a test, each with a command of its own.
const TURNS: usize = 4;

const WORDS: [&str; 2] = ["auto_review", "guardian_subagent"];

#[tokio::test]
async fn asked_for_with_a_thread_or_a_turn_it_is_declined() {
    for word in WORDS {
        let stage = stage("");
        let mut lines = engine(&stage, &["app-server"]).await;
        let start = json!({ "approvalsReviewer": word, "approvalPolicy": "on-request" });
        let thread = lines.start_thread(start).await;
        declined(&stage, &mut lines, &thread, 1, json!({})).await;
        lines.close().await;
        let mut lines = engine(&stage, &["app-server"]).await;
        let thread = lines.start_thread(json!({ "approvalPolicy": "on-request" })).await;
        declined(&stage, &mut lines, &thread, 2, json!({ "approvalsReviewer": word })).await;
        lines.close().await;
    }
}

#[tokio::test]
async fn asked_for_in_the_settings_or_when_a_thread_is_resumed_it_is_declined() {
    for word in WORDS {
        let stage = stage(&format!("approvals_reviewer = \"{word}\"\n"));
        let mut lines = engine(&stage, &["app-server"]).await;
        let thread = lines.start_thread(json!({ "approvalPolicy": "on-request" })).await;
        declined(&stage, &mut lines, &thread, 1, json!({})).await;
        lines.close().await;
        // What the settings say holds for a thread that goes on as well.
        let mut lines = engine(&stage, &["app-server"]).await;
        let resumed = lines.request("thread/resume", json!({ "threadId": thread })).await;
        assert_eq!(resumed["result"]["approvalsReviewer"], word, "{resumed}");
        declined(&stage, &mut lines, &thread, 2, json!({ "approvalPolicy": "on-request" })).await;
        lines.close().await;
        // And what the request says, over settings that say nothing of it.
        let user = "approvals_reviewer=\"user\"";
        let mut lines = engine(&stage, &["app-server", "-c", user]).await;
        let params = json!({ "threadId": thread, "approvalsReviewer": word });
        let resumed = lines.request("thread/resume", params).await;
        assert_eq!(resumed["result"]["approvalsReviewer"], word, "{resumed}");
        declined(&stage, &mut lines, &thread, 3, json!({ "approvalPolicy": "on-request" })).await;
        lines.close().await;
        let flag = format!("approvals_reviewer=\"{word}\"");
        let mut lines = engine(&stage, &["app-server", "-c", user, "-c", &flag]).await;
        let thread = lines.start_thread(json!({ "approvalPolicy": "on-request" })).await;
        declined(&stage, &mut lines, &thread, 4, json!({})).await;
        lines.close().await;
    }
}
