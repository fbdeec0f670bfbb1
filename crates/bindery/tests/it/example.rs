//! The example that the documentation shows, run as it is built.

use std::path::PathBuf;
use std::process::Command;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::json;

/// Cargo builds the examples of a crate with its tests, into a folder beside them.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a running test");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("a target folder");
    let name = format!("one_turn{}", std::env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    assert!(program.is_file(), "no {}: run `cargo build --examples`", program.display());
    program
}

fn run(script: Vec<Reply>, options: &Options) -> String {
    let model = Model::start(script);
    let codex = RealCodex::with(&model, options);
    let mut example = Command::new(program());
    example.arg("say hello").current_dir(codex.project()).env_clear().envs(codex.env());
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
