//! `bindery run --backend exec` with the real Codex.

use std::process::{Command, Output};

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

fn bindery(codex: &RealCodex, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["run", "--backend", "exec", "--codex"])
        .arg(codex.program())
        .args(args)
        .current_dir(codex.project())
        .env_clear()
        .envs(codex.env())
        .output()
        .expect("our command")
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_turn_on_codex_exec_in_every_format() {
    let replies = [
        Reply::new([Step::exec("echo hi", "c1")]).when_after_tool(false).always(),
        Reply::text("Done").always(),
    ];
    let model = Model::start(Script::new(replies));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let text = bindery(&codex, &["--", "-do it"]);
    assert_eq!(String::from_utf8_lossy(&text.stdout), "Done\n");
    assert!(text.status.success());

    let ndjson = bindery(&codex, &["--format", "ndjson", "--json", "--artifacts", "out", "do it"]);
    let events = lines(&ndjson.stdout);
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != "stderr").collect();
    assert_eq!(kinds, ["init", "tool_use", "tool_result", "message", "usage", "result"]);
    let summary = lines(&ndjson.stderr).pop().expect("a summary");
    let want = json!({ "type": "result", "status": "success", "reason": "completed",
        "exit_code": 0 });
    assert_eq!(summary, want);

    let parts = lines(&bindery(&codex, &["--format", "parts", "do it"]).stdout);
    assert_eq!(parts.last().expect("parts")["finishReason"]["unified"], "stop");
}

#[test]
fn a_failed_turn_is_a_failed_command() {
    let failing = Reply::new([Step::status(400, "invalid_request_error", "bad thing")]).always();
    let model = Model::start(Script::new([failing]));
    let codex = RealCodex::new(&model);
    let output = bindery(&codex, &["--format", "ndjson", "do it"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output.stdout).pop().expect("a result")["reason"], "failed");
}
