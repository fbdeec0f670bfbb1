//! Scenarios of `codex exec --json`.

use bindery_core::item::{Body, Status};
use bindery_sessions::normalise::Options;
use bindery_sessions::session::of_bytes;
use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::json;

use super::{Recording, collect, text};

/// Runs `codex exec --json` once for each command line and takes what was written.
fn record(scenario: &'static str, codex: &RealCodex, runs: &[&[&str]]) -> Recording {
    let mut printed = Vec::new();
    for words in runs {
        let line = [&["exec", "--json"], *words].concat();
        let output = codex.command(&line).stdin(std::process::Stdio::null()).output().unwrap();
        assert!(!output.stdout.is_empty(), "{scenario}: {}", text(&output.stderr));
        printed.extend(output.stdout);
    }
    collect(scenario, codex, ("stdout", printed))
}

fn run(scenario: &'static str, replies: Vec<Reply>) -> Recording {
    let model = Model::start(replies);
    record(scenario, &RealCodex::with(&model, &CodexOptions::unrestricted()), &[&["go"]])
}

#[test]
fn answers_and_thoughts() {
    run("plain", vec![Reply::text("Hello **world**.")]);
    run("twomsg", vec![Reply::new([Step::commentary("First."), Step::text("Second.")])]);
    run("unicode", vec![Reply::text("naïve 日本語 🦀 \u{202e}\u{1b}[31m")]);
    let thought = Step::reasoning(["**Looking**\n\nat the parser"]);
    run("reasoning", vec![Reply::new([thought, Step::text("Done.")])]);
}

#[test]
fn commands() {
    let done = || Reply::text("Done.");
    run("shell", vec![Reply::new([Step::exec("echo hi", "c1")]), done()]);
    run("shellfail", vec![Reply::new([Step::exec("echo no >&2; exit 3", "c1")]), done()]);
    run("longout", vec![Reply::new([Step::exec("seq 1 900", "c1")]), done()]);
    let two = [Step::exec("echo one", "c1"), Step::exec("echo two", "c2")];
    run("parallel", vec![Reply::new(two), done()]);
    let unknown = Step::call("no_such_tool", json!({ "a": 1 }), "c1");
    run("badtool", vec![Reply::new([unknown]), done()]);
}

#[test]
fn patches_plans_and_searches() {
    let done = || Reply::text("Done.");
    let patch = "*** Begin Patch\n*** Add File: notes.md\n+one\n+two\n*** Update File: README.md\n\
                 @@\n-# Project\n+# Almanac\n*** End Patch";
    let add = "*** Begin Patch\n*** Add File: notes.md\n+one\n+two\n*** End Patch";
    let delete = "*** Begin Patch\n*** Delete File: notes.md\n*** End Patch";
    let patched = run("patch", vec![Reply::new([Step::patch(add, "c1")]), done()]);
    let session = of_bytes(&patched.rollouts[0], Options::default());
    let items = session.transcript.turns.iter().flat_map(|turn| &turn.items);
    let tools: Vec<_> = items.filter(|item| matches!(item.body, Body::Tool(_))).collect();
    assert_eq!(tools.iter().map(|item| item.status).collect::<Vec<_>>(), [Status::Ok]);
    let steps = vec![
        Reply::new([Step::patch(add, "c1")]),
        Reply::new([Step::patch(delete, "c2")]),
        Reply::new([Step::patch(patch, "c3")]),
        done(),
    ];
    run("patchdel", steps);
    let plan = json!({ "explanation": "three steps", "plan": [
        { "step": "find the grammar", "status": "completed" },
        { "step": "add week dates", "status": "in_progress" },
        { "step": "tests", "status": "pending" },
    ]});
    run("plan", vec![Reply::new([Step::call("update_plan", plan, "c1")]), done()]);
    let search = Step::WebSearch { query: "iso weeks".to_owned() };
    run("websearch", vec![Reply::new([search, Step::text("Found.")])]);
}

#[test]
fn failures() {
    let status = Step::status(400, "invalid_request_error", "no such model");
    run("http400", vec![Reply::new([status]).always()]);
    run("failed", vec![Reply::new([Step::failed("context_length_exceeded", "too long")]).always()]);
}

#[test]
fn a_resumed_session_goes_on_in_its_file() {
    let model = Model::start(vec![Reply::text("One."), Reply::text("Two.")]);
    let codex = RealCodex::with(&model, &CodexOptions::unrestricted());
    let recording = record("resume", &codex, &[&["one"], &["resume", "--last", "two"]]);
    let session = of_bytes(&recording.rollouts[0], Options::default());
    assert_eq!((recording.rollouts.len(), session.transcript.turns.len()), (1, 2));
}

/// `--trust` is new in 0.169: the project is trusted from then on.
#[test]
fn a_project_is_trusted_by_a_flag() {
    let replies = vec![Reply::new([Step::exec("echo hi", "c1")]), Reply::text("Done.")];
    let model = Model::start(replies);
    let codex = RealCodex::with(&model, &CodexOptions::default());
    let path = codex.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("trust_level = \"trusted\"\n", "")).unwrap();
    record("trust", &codex, &[&["--trust", "go"]]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("trust_level = \"trusted\""));
}

/// A goal that the model sets itself; Codex goes on by itself until the model says it is reached.
#[test]
fn a_goal_that_the_model_sets() {
    let create = Step::call("create_goal", json!({ "objective": "count to three" }), "g1");
    let reached = Step::call("update_goal", json!({ "status": "complete" }), "g2");
    let replies = vec![
        Reply::new([create]),
        Reply::text("One."),
        Reply::new([Step::text("Two, three."), reached]),
        Reply::text("Reached.").always(),
    ];
    run("goal", replies);
}
