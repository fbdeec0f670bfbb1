//! `bindery run` on a terminal: what moves, what is asked, and what is left on the screen.

use bindery_testkit::model::{Reply, Step};
use serde_json::json;

use crate::interrupt::{assert_gone, child_of};
use crate::pty::Pty;
use crate::screen::seen;
use crate::stable::stable;
use crate::stage::Stage;

const WARY: &[&str] = &["run", "--approve", "untrusted", "--sandbox", "read-only", "go"];

fn start(stage: &Stage, args: &[&str]) -> Pty {
    Pty::start(&stage.bindery(args), 80)
}

/// What stands on the screen when all of it has been written, with what varies named.
fn screen(stage: &Stage, text: &str) -> String {
    let text = stable(&seen(&text.replace("\r\n", "\n")), &stage.codex);
    // Where the header breaks depends on how long the path of the project is.
    match text.split_once("\n\n") {
        Some((header, rest)) if header.starts_with("codex ") => rest.to_owned(),
        _ => text,
    }
}

#[tokio::test]
async fn what_moves_is_drawn_and_leaves_no_trace() {
    let script = vec![
        Reply::new([Step::reasoning(["**Looking**"]), Step::exec("echo one", "c1")]),
        Reply::new([Step::gate("there"), Step::text("It is **done**, `really`.")]),
    ];
    let stage = Stage::free(script);
    let mut pty = start(&stage, &["run", "go"]);
    let mut text = pty.wait_for("thinking · ");
    text += &pty.wait_for("ctrl-c to interrupt");
    assert!(!pty.echoes(), "keys are shown");
    pty.press("typed meanwhile\n");
    stage.reached("there").await;
    // Another turn of the wheel, so that what was typed would have been shown by now.
    text += &pty.wait_for("ctrl-c to interrupt");
    stage.model.open("there");
    text += &pty.wait_for("resume with");
    let (rest, code) = pty.finish();
    assert_eq!((code, pty.echoes()), (Some(0), true));
    text += &rest;
    insta::assert_snapshot!(screen(&stage, &text), @r#"
    ▸ Looking
    ✓ $ echo one  [time]
      │ one

    It is **done**, `really`.

    done in [time] · 200 in (20 cached) · 40 out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
}

#[tokio::test]
async fn a_command_is_asked_for_and_declined() {
    let script = vec![
        Reply::new([Step::exec("echo 'a  b' > made", "c1")]),
        Reply::text("Then not.").when_output_of("c1"),
    ];
    let stage = Stage::careful(script);
    let mut pty = start(&stage, WARY);
    let mut text = pty.wait_for("[?] more");
    text += &pty.wait_for("› ");
    insta::assert_snapshot!(screen(&stage, &text).trim_end(), @"
    ? Codex wants to run a command
        $ echo 'a  b' > made
        in [project]
      [y] once   [s] for this session   [a] always `echo 'a  b' > made …`
      [n] no, go on   [c] no, stop   [?] more
    ›
    ");
    // None of these is an answer: enter, a letter that is not offered, escape.
    pty.press("\r");
    pty.press("\r x");
    pty.press("\x1b");
    assert_eq!(pty.soon(), "");
    assert_eq!(stage.model.count(), 1);
    pty.press("?");
    let more = pty.wait_for("› ");
    insta::assert_snapshot!(screen(&stage, &more).trim_end(), @r#"

        as sent  /bin/bash -lc "echo 'a  b' > made"
        folder   [project]
        always   all of `/bin/bash -lc 'echo '\''a  b'\'' > made' …`
        thread   [id]
        turn     [id]
        call     c1
      [y] once   [s] for this session   [a] always `echo 'a  b' > made …`
      [n] no, go on   [c] no, stop   [?] more
    ›
    "#);
    pty.press("n");
    let mut rest = pty.wait_for("resume with");
    let (last, code) = pty.finish();
    rest += &last;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(screen(&stage, &rest), @r#"
    no, go on
    ✗ $ echo 'a  b' > made                                        declined

    Then not.

    done in [time] · 200 in (20 cached) · 40 out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
    assert!(!stage.codex.project().join("made").exists());
}

#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer() {
    let script = vec![
        Reply::new([Step::gate("typed"), Step::exec("touch made", "c1")]),
        Reply::text("Then not."),
    ];
    let stage = Stage::careful(script);
    let mut pty = start(&stage, WARY);
    stage.reached("typed").await;
    pty.wait_for("ctrl-c to interrupt");
    pty.press("y");
    pty.press("y\n");
    stage.model.open("typed");
    pty.wait_for("› ");
    assert_eq!(pty.soon(), "");
    assert_eq!(stage.model.count(), 1);
    // Ctrl-C at a question is a no that stops the turn.
    pty.press("\x03");
    let mut text = pty.wait_for("resume with");
    let (rest, code) = pty.finish();
    text += &rest;
    // Codex may have been stopped before it counted.
    let usage = " · 100 in (10 cached) · 20 out · 99 % context left";
    insta::assert_snapshot!(screen(&stage, &text).replace(usage, ""), @r#"
    no, stop
    ✗ $ touch made                                                declined

    interrupted after [time]
    resume with: bindery run --resume [id] "…"
    "#);
    assert_eq!(code, Some(1));
    assert!(!stage.codex.project().join("made").exists());
}

#[tokio::test]
async fn a_yes_runs_it() {
    let script = vec![Reply::new([Step::exec("echo made", "c1")]), Reply::text("Made.")];
    let stage = Stage::careful(script);
    let mut pty = start(&stage, WARY);
    pty.wait_for("› ");
    pty.press("y");
    let mut text = pty.wait_for("resume with");
    let (rest, code) = pty.finish();
    text += &rest;
    insta::assert_snapshot!(screen(&stage, &text), @r#"
    once
    ✓ $ echo made  [time]
      │ made

    Made.

    done in [time] · 200 in (20 cached) · 40 out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn ctrl_c_interrupts() {
    let stage = Stage::free(vec![Reply::new([Step::gate("never")])]);
    let mut pty = start(&stage, &["run", "go"]);
    let mut text = pty.wait_for("ctrl-c to interrupt");
    stage.reached("never").await;
    let codex = child_of(pty.process());
    pty.press("\x03");
    text += &pty.wait_for("resume with");
    let (rest, code) = pty.finish();
    assert_eq!(code, Some(130));
    text += &rest;
    insta::assert_snapshot!(screen(&stage, &text), @r#"
    interrupted after [time]
    resume with: bindery run --resume [id] "…"
    "#);
    assert_gone(codex).await;
}

#[tokio::test]
async fn a_narrower_window_is_followed() {
    let wait = json!({ "cmd": "until [ -e go ]; do sleep 0.1; done", "yield_time_ms": 30000 });
    let stage = Stage::free(vec![
        Reply::new([Step::call("exec_command", wait, "c1")]),
        Reply::text("Words that would have stood in one row, had the window not become narrower."),
    ]);
    let mut pty = start(&stage, &["run", "go"]);
    let mut text = pty.wait_for("until [ -e go ]; do sleep 0.1; done · ");
    pty.resize(40);
    text += &pty.wait_for("… · ");
    stage.file("go", "");
    text += &pty.wait_for("resume with");
    text += &pty.finish().0;
    insta::assert_snapshot!(screen(&stage, &text), @r#"
    ✓ $ until [ -e go ]; do sleep…  [time]

    Words that would have stood in one row,
    had the window not become narrower.

    done in [time] · 200 in (20 cached) · 40
    out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
}
