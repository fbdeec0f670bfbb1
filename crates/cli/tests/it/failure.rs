//! Turns that fail, and how the user is told.

use std::time::{Duration, Instant};

use bindery_testkit::model::{Reply, Step};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::stage::{HANG, Stage};

#[tokio::test]
async fn what_the_provider_says_is_told() {
    let stage = Stage::free(vec![Reply::new([Step::status(400, "bad", "the model is on leave")])]);
    insta::assert_snapshot!(stage.run(&["run", "try"]).await, @r#"
    exit: 1
    stdout:

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project] (main)

    error: the model is on leave
      kind: other

    failed after [time]
    resume with: bindery run --resume [id] "…"
    "#);
}

#[tokio::test]
async fn a_missing_codex_is_said_with_what_to_do() {
    let stage = Stage::free(vec![]);
    let named = stage.run(&["run", "--codex", "/nowhere/codex", "try"]).await;
    insta::assert_snapshot!(named, @"
    exit: 1
    stdout:

    stderr:
    error: Codex not found: looked at `/nowhere/codex`
      hint: install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`
    ");
    let mut command = stage.bindery(&["run", "--backend", "codex", "try"]);
    command.env_remove("BINDERY_CODEX").env("PATH", "/nowhere");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"
    error: Codex not found: looked at `BINDERY_CODEX`, which is not set, and `PATH`
      hint: install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`
    ");
}

#[tokio::test]
async fn what_is_no_codex_is_told_too() {
    let stage = Stage::free(vec![]);
    insta::assert_snapshot!(stage.run(&["run", "--codex", "true", "try"]).await, @"
    exit: 1
    stdout:

    stderr:
    error: Codex is gone: exit code 0
    ");
}

#[tokio::test]
async fn too_long_is_ended() {
    let stage = Stage::free(vec![Reply::new([Step::gate("never")])]);
    insta::assert_snapshot!(stage.run(&["run", "--timeout", "2", "wait"]).await, @r#"
    exit: 1
    stdout:

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project] (main)

    error: the turn took longer than 2s
      kind: timeout

    failed after [time]
    resume with: bindery run --resume [id] "…"
    "#);
}

/// `bindery run … | head -1`
#[tokio::test]
async fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let stage = Stage::free(vec![
        Reply::new([Step::commentary("The first."), Step::exec("true", "c1")]),
        Reply::new([Step::gate("seen"), Step::text("The second.")]),
    ]);
    let mut child = stage.start(&["run", "go"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    timeout(HANG, out.read_line(&mut line)).await.expect("a line").unwrap();
    assert_eq!(line, "The first.\n");
    drop(out);
    stage.reached("seen").await;
    stage.model.open("seen");
    let ran = stage.finish(child).await;
    insta::assert_snapshot!(ran, @"
    exit: 0
    stdout:

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project] (main)

    ✓ $ true  [time]
    ");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_codex_that_dies_is_told_soon() {
    use crate::interrupt::{child_of, kill};
    let stage = Stage::free(vec![Reply::new([Step::gate("never")])]);
    let child = stage.start(&["run", "go"]);
    stage.reached("never").await;
    kill(child_of(child.id().unwrap()), rustix::process::Signal::KILL);
    let began = Instant::now();
    let mut ran = stage.finish(child).await;
    // It takes some 20 ms where nothing else runs.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // What it said last, about the folders of this test, is no part of this.
    let (before, after) = ran.err.split_once("(SIGKILL)").unwrap();
    let rest = after.split_once('\n').unwrap().1;
    ran.err = format!("{before}(SIGKILL)\n{rest}");
    insta::assert_snapshot!(ran, @r#"
    exit: 1
    stdout:

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project] (main)

    error: Codex is gone: signal 9 (SIGKILL)
      kind: closed

    failed after [time]
    resume with: bindery run --resume [id] "…"
    "#);
}
