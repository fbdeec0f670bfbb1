//! Calls the model makes, as Codex carries them out.

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step};
use serde_json::json;

use crate::run;

/// A red dot, one pixel, as PNG.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4\
    z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

#[tokio::test]
async fn the_tools_offered_are_those_known() {
    let ran = run(vec![Reply::text("Hi")], &Options::default()).await;
    let want = [
        "exec_command",
        "write_stdin",
        "request_user_input",
        "apply_patch",
        "view_image",
        "get_goal",
        "create_goal",
        "update_goal",
        "tool_search",
        "web_search",
    ];
    assert_eq!(ran.tools(), want);
}

#[tokio::test]
async fn a_command_runs() {
    let arguments = json!({ "cmd": "echo out; exit 3", "workdir": null, "yield_time_ms": 10000 });
    let calls = Reply::new([Step::call("exec_command", arguments, "c1")]);
    let replies = vec![calls, Reply::text("Done").when_output_of("c1")];
    let ran = run(replies, &Options::unrestricted()).await;
    let item = &ran.items("commandExecution")[0];
    assert_eq!(item["exitCode"], 3, "{item}");
    assert_eq!(item["status"], "failed");
    assert_eq!(item["aggregatedOutput"], "out\n");
    assert!(ran.outputs()[0].contains("Process exited with code 3"), "{:?}", ran.outputs());
}

#[tokio::test]
async fn two_calls_at_once_and_a_session_to_write_to() {
    let cat = json!({ "cmd": "cat", "tty": true, "yield_time_ms": 250 });
    let both = Reply::new([Step::exec("echo one", "c1"), Step::call("exec_command", cat, "c2")]);
    let stdin = json!({ "session_id": "${c2.session_id}", "chars": "typed\n\u{4}" });
    let write = Reply::new([Step::call("write_stdin", stdin, "c3")]);
    let replies = vec![both, write, Reply::text("Done")];
    let ran = run(replies, &Options::unrestricted()).await;
    assert_eq!(ran.turn["status"], "completed");
    let outputs = ran.outputs();
    assert!(outputs[0].contains("one"), "{outputs:?}");
    assert!(outputs[2].contains("typed"), "{outputs:?}");
}

#[tokio::test]
async fn a_patch_is_applied() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: README.md\n@@\n \
                 # Project\n \n-A small project.\n+A changed project.\n*** End Patch\n";
    let replies = vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("Done")];
    let ran = run(replies, &Options::default()).await;
    let item = &ran.items("fileChange")[0];
    assert_eq!(item["status"], "completed", "{item}");
    let new = std::fs::read_to_string(ran.codex.project().join("new.txt"));
    assert_eq!(new.expect("the file"), "new\n");
    assert!(!ran.lines.received("turn/diff/updated").is_empty());
}

#[tokio::test]
async fn a_plan_is_updated_where_the_tool_is_enabled() {
    let options = Options {
        tables: "[tools.update_plan]\nenabled = true\n".to_owned(),
        ..Options::default()
    };
    let plan = json!({ "explanation": "why", "plan": [{ "step": "a", "status": "in_progress" }] });
    let replies = vec![Reply::new([Step::call("update_plan", plan, "c1")]), Reply::text("Done")];
    let ran = run(replies, &options).await;
    let updated = &ran.lines.received("turn/plan/updated")[0]["params"];
    assert_eq!(updated["plan"], json!([{ "step": "a", "status": "inProgress" }]));
}

#[tokio::test]
async fn an_image_is_viewed() {
    let draw = format!("printf '{PIXEL}' | base64 -d > dot.png");
    let look = Step::call("view_image", json!({ "path": "dot.png" }), "c2");
    let replies =
        vec![Reply::new([Step::exec(&draw, "c1")]), Reply::new([look]), Reply::text("Done")];
    let ran = run(replies, &Options::unrestricted()).await;
    let path = ran.codex.project().join("dot.png");
    assert_eq!(ran.items("imageView")[0]["path"], json!(path));
    assert!(ran.outputs()[1].contains("data:image/png;base64,"), "{:?}", ran.outputs());
}

#[tokio::test]
async fn an_mcp_server_is_started() {
    let options = Options::default().mcp_server("broken", "false", &["--arg"]);
    let ran = run(vec![Reply::text("Hi")], &options).await;
    let updates = ran.lines.received("mcpServer/startupStatus/updated");
    let last = updates.last().expect("an update");
    assert_eq!(last["params"]["name"], "broken");
    assert_eq!(last["params"]["status"], "failed", "{last}");
}
