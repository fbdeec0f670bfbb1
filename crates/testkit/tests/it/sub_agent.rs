//! Sub-agents, in both forms Codex 0.166 has; with `BINDERY_RECORD` set the runs are recorded.

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::{Ran, run};

/// The form that is on by default. Its tools are found by tool search, but may be called at once.
#[tokio::test]
async fn a_sub_agent_runs_in_a_thread_of_its_own() {
    let spawn = json!({ "message": "count to three" });
    let wait = json!({ "targets": ["${spawn_1.agent_id}"] });
    let mut ran = run(replies("multi_agent_v1", spawn, wait), &Options::unrestricted()).await;
    let calls = ran.items("collabAgentToolCall");
    let tools: Vec<_> = calls.iter().map(|call| call["tool"].clone()).collect();
    assert_eq!(tools, ["spawnAgent", "wait"]);
    check(&mut ran, &calls[0]["receiverThreadIds"][0]).await;
    record("sub_agent", &ran);
}

/// The form of newer models; others get it by a feature.
#[tokio::test]
async fn a_sub_agent_of_the_second_form_reports_activity() {
    let options = Options::unrestricted().feature("multi_agent_v2", true);
    let spawn = json!({ "task_name": "count", "message": "count to three", "fork_turns": "none" });
    let mut ran = run(replies("collaboration", spawn, json!({})), &options).await;
    let activities = ran.items("subAgentActivity");
    assert_eq!(activities[0]["kind"], "started");
    check(&mut ran, &activities[0]["agentThreadId"]).await;
    record("sub_agent_v2", &ran);
}

fn replies(namespace: &str, spawn: Value, wait: Value) -> Vec<Reply> {
    let spawn = Step::call_in(namespace, "spawn_agent", spawn, "spawn_1");
    let wait = Step::call_in(namespace, "wait_agent", wait, "wait_1");
    vec![
        Reply::new([Step::chunked("One, two, three.", 5)]).when_header("x-openai-subagent", ""),
        Reply::new([Step::commentary("I ask a helper."), spawn]),
        Reply::new([wait]),
        Reply::text("All done."),
    ]
}

/// The child speaks under its own thread id, within the parent's turn. No `thread/started` names
/// it: its turns name the parent's turn as their root, and the thread itself names its parent.
async fn check(ran: &mut Ran, child: &Value) {
    assert_eq!(ran.turn["status"], "completed");
    assert!(ran.model.unanswered().is_empty());
    let said = ran.lines.received("item/agentMessage/delta");
    let said = said.iter().map(|message| &message["params"]);
    let child_said = said.filter(|params| params["threadId"] == *child);
    let text: String = child_said.filter_map(|params| params["delta"].as_str()).collect();
    assert_eq!(text, "One, two, three.");
    let started = ran.lines.received("thread/started");
    assert_eq!(started.len(), 1);
    let turns = ran.lines.received("turn/started");
    assert_eq!(turns[1]["params"]["threadId"], *child);
    assert_eq!(turns[1]["params"]["turn"]["rootTurnId"], ran.turn["id"]);
    let read = ran.lines.request("thread/read", json!({ "threadId": child })).await;
    let parent = &started[0]["params"]["thread"]["id"];
    assert_eq!(read["result"]["thread"]["parentThreadId"], *parent);
}

/// Writes the transcript as a fixture, with the folders of the run replaced.
fn record(name: &str, ran: &Ran) {
    if std::env::var_os("BINDERY_RECORD").is_none() {
        return;
    }
    let lines = ran.lines.transcript().iter().map(|line| format!("{line}\n")).collect::<String>();
    let home = ran.codex.user_home().to_string_lossy().into_owned();
    let project = ran.codex.project().to_string_lossy().into_owned();
    let lines = lines.replace(&home, "/home/dev").replace(&project, "/home/dev/project");
    let path = format!("{}/fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, lines).expect("a fixture");
}
