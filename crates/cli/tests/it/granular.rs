//! The approval policy by kinds of question, beside the real Codex: what is asked, what is refused.
#![cfg(target_os = "linux")]

use std::process::Command;

use bindery_testkit::codex::Options;
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::mcp::{no_python, with_toy};
use crate::stage::Stage;

/// Each kind of call that may be asked about, and the word that makes the model want it.
fn script() -> Vec<Reply> {
    let escalated = json!({ "cmd": "echo out", "sandbox_permissions": "require_escalated",
        "justification": "to see" });
    let patch = "*** Begin Patch\n*** Add File: /var/bindery-made.txt\n+one\n*** End Patch";
    let calls = [
        ("rule", Step::exec("printf ruled", "rule")),
        ("danger", Step::exec("rm -rf made", "danger")),
        ("leave", Step::call("exec_command", escalated, "leave")),
        ("patch", Step::patch(patch, "patch")),
        ("server", Step::call_in("mcp__toy", "add", json!({ "a": 2, "b": 3 }), "server")),
        ("elicit", Step::call_in("mcp__toy", "ask", json!({}), "elicit")),
        ("plain", Step::exec("true", "plain")),
    ];
    let first = |(word, call)| Reply::new([call]).when_user(word).when_after_tool(false).always();
    let mut replies: Vec<Reply> = calls.into_iter().map(first).collect();
    replies.push(Reply::text("Well.").when_after_tool(true).always());
    replies
}

/// What one server asks about, kind by kind, under each policy.
async fn asked(command: Command) -> Vec<(String, Vec<String>)> {
    let mut lines = Lines::spawn(command).unwrap();
    lines.initialize().await;
    let mut all = Vec::new();
    for on in ["sandbox_approval", "rules", "mcp_elicitations"] {
        let kinds = ["sandbox_approval", "rules", "mcp_elicitations"];
        let kinds = kinds.into_iter().map(|kind| (kind.to_owned(), json!(kind == on)));
        let granular = Value::Object(kinds.collect());
        let policy = json!({ "granular": granular });
        let thread = lines.start_thread(json!({ "approvalPolicy": policy,
            "sandbox": "workspace-write" }));
        let thread = thread.await;
        for word in ["rule", "danger", "leave", "patch", "server", "elicit", "plain"] {
            all.push((format!("{on}: {word}"), turn(&mut lines, &thread, word).await));
        }
    }
    lines.close().await;
    all
}

/// Runs a turn, says no to whatever is asked, and gives the methods of the questions.
async fn turn(lines: &mut Lines, thread: &str, word: &str) -> Vec<String> {
    let input = json!([{ "type": "text", "text": word }]);
    lines.request("turn/start", json!({ "threadId": thread, "input": input })).await;
    let mut questions = Vec::new();
    loop {
        let line = lines.next().await.expect("the server lives");
        let method = line["method"].as_str().unwrap_or_default();
        if method == "turn/completed" {
            assert_eq!(line["params"]["turn"]["status"], "completed", "{word}: {line}");
            return questions;
        }
        if line.get("id").is_some() {
            questions.push(method.to_owned());
            // The tool that asks has to be called first.
            let is_about_it = line["params"]["_meta"]["codex_approval_kind"].is_string();
            let yes = word == "elicit" && is_about_it;
            let action = if yes { "accept" } else { "decline" };
            let answer = json!({ "decision": "decline", "action": action });
            lines.send(json!({ "id": line["id"], "result": answer })).await;
        }
    }
}

#[tokio::test]
async fn only_the_kinds_that_are_on_are_asked_about() {
    if no_python() {
        return;
    }
    let options = with_toy(Options::default(), &[]);
    let stage = Stage::with(script(), &options);
    let rules = stage.codex.home().join("rules");
    std::fs::create_dir_all(&rules).unwrap();
    let rule = "prefix_rule(pattern=[\"printf\"], decision=\"prompt\")\n";
    std::fs::write(rules.join("default.rules"), rule).unwrap();
    let ours = asked(stage.bindery(&["app-server"])).await;
    let theirs = asked(stage.codex.command(&["app-server"])).await;
    // Codex 0.169 asks about a dangerous command whatever is off. The engine does not ask whom the
    // settings say not to ask: it refuses.
    let danger = ["rules: danger", "mcp_elicitations: danger"];
    let alike = |asked: &[(String, Vec<String>)]| -> Vec<(String, Vec<String>)> {
        asked.iter().filter(|(what, _)| !danger.contains(&what.as_str())).cloned().collect()
    };
    assert_eq!(alike(&ours), alike(&theirs));
    let shown = ours.iter().filter(|(_, asked)| !asked.is_empty());
    let shown: Vec<String> = shown.map(|(what, asked)| format!("{what} {}", asked.len())).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    sandbox_approval: danger 1
    sandbox_approval: leave 1
    sandbox_approval: patch 1
    sandbox_approval: server 1
    sandbox_approval: elicit 1
    rules: rule 1
    rules: server 1
    rules: elicit 1
    mcp_elicitations: server 1
    mcp_elicitations: elicit 2
    ");
}
