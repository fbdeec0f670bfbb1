//! The examples that the documentation shows, run as they are built.

use std::path::PathBuf;
use std::process::Command;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::json;

/// Cargo builds the examples of a crate with its tests, into a folder beside them.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("a target folder");
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    assert!(program.is_file(), "no {}: run `cargo build --examples`", program.display());
    program
}

fn run(script: Vec<Reply>, options: &Options) -> String {
    let model = Model::start(script);
    let codex = RealCodex::with(&model, options);
    told("one_turn", &["say hello"], &codex)
}

fn told(name: &str, arguments: &[&str], codex: &RealCodex) -> String {
    let mut example = Command::new(program(name));
    example.args(arguments).current_dir(codex.project()).env_clear().envs(codex.env());
    let output = example.env("BINDERY_CODEX", codex.program()).output().expect("the example");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).replace(&*codex.project().to_string_lossy(), "[project]")
}

#[test]
fn it_streams_the_answer() {
    let told = run(vec![Reply::new([Step::chunked("Hello, world.", 5)])], &Options::default());
    insta::assert_snapshot!(told, @"
    Hello, world.
    100 tokens read
    ");
}

#[test]
fn it_says_no_to_what_is_asked() {
    let wanted = json!({
        "cmd": "touch made", "sandbox_permissions": "require_escalated",
        "justification": "to make it",
    });
    let call = Reply::new([Step::call("exec_command", wanted, "c1")]);
    let told = run(vec![call, Reply::text("Then not.")], &Options::default());
    insta::assert_snapshot!(told);
}

#[test]
fn it_tells_why_it_failed() {
    let script = vec![Reply::new([Step::status(400, "bad", "the model is on leave")])];
    insta::assert_snapshot!(run(script, &Options::default()));
}

#[test]
fn tools_run_in_place() {
    let call = Step::call("weather", json!({ "city": "Bern" }), "c1");
    let model = Model::start(vec![Reply::new([call]), Reply::text("Take an umbrella.")]);
    let codex = RealCodex::new(&model);
    insta::assert_snapshot!(told("tools_and_approvals", &["weather?"], &codex), @r#"
    [weather {"city":"Bern"}]
    Take an umbrella.
    "#);
    assert!(model.bodies()[1]["input"].to_string().contains("it rains in Bern"));
}

#[test]
fn many_threads_share_a_worker() {
    let replies =
        ["red", "blue", "green"].map(|word| Reply::text(&format!("{word}!")).when_user(word));
    let model = Model::start(replies.to_vec());
    let codex = RealCodex::new(&model);
    insta::assert_snapshot!(told("many_threads", &["red", "blue", "green"], &codex), @"
    red → red!
    blue → blue!
    green → green!
    1 worker
    ");
}

#[cfg(unix)]
#[test]
fn a_running_codex_is_attached_to() {
    let model = Model::start(vec![Reply::text("Hello over a socket.")]);
    let codex = RealCodex::new(&model);
    let listening = bindery_testkit::listening::Listening::unix(&codex);
    let said = told("attach", &[listening.address(), "say hello"], &codex);
    assert_eq!(said, "Hello over a socket.\n");
}
