//! What comes of a turn: told while it runs, when it is over, and after a restart.

use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;

bindery_testkit::on_both! {
    a_turn_tells_its_text_changes_and_usage_while_it_runs_and_after_a_restart,
}

const PATCH: &str = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";

/// The paths of a turn's changes below the project, and their diffs.
fn changes(turn: &Value) -> Vec<(String, String)> {
    let all = turn["changes"].as_array().unwrap_or_else(|| panic!("{turn}"));
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    all.iter()
        .map(|change| {
            (name(change["path"].as_str().unwrap()), change["diff"].as_str().unwrap().to_owned())
        })
        .collect()
}

async fn a_turn_tells_its_text_changes_and_usage_while_it_runs_and_after_a_restart() {
    let mut daemon = Daemon::new(vec![
        Reply::new([Step::gate("last"), Step::text("all done")]).when_output_of("p1"),
        Reply::new([Step::patch(PATCH, "p1")]),
    ]);
    let settings = json!({ "approvalPolicy": "never", "sandbox": "danger-full-access" });
    let thread = daemon.thread(json!({ "settings": settings })).await;
    let turn = daemon.say(&thread, "go").await;
    daemon.stage.reached("last").await;
    let path = format!("/v1/turns/{turn}");
    // The change is told before the model's next words, which are held back.
    let mut events = daemon.web.follow(&turn, 0).await;
    events.until(|heard| heard.data["type"] == "tool-result").await;
    let (_, running) = daemon.web.get(&path).await;
    assert_eq!(running["state"], "running", "{running}");
    let made = vec![("made.txt".to_owned(), "made\n".to_owned())];
    assert_eq!(changes(&running), made);
    assert_eq!(running.get("text"), None);
    daemon.stage.model.open("last");
    events.rest().await;
    let (_, over) = daemon.web.get(&path).await;
    assert_eq!((&over["state"], &over["text"]), (&json!("completed"), &json!("all done")));
    assert_eq!(changes(&over), made);
    assert!(over["usage"]["inputTokens"]["total"].as_u64().unwrap() > 0, "{over}");
    assert_eq!(daemon.terminate(), Some(0));
    daemon.again();
    assert_eq!(daemon.web.get(&path).await.1, over);
    let (_, list) = daemon.web.get(&format!("/v1/threads/{thread}/turns")).await;
    assert_eq!(list["data"][0].get("text"), None, "a list does not tell what came of turns");
}
