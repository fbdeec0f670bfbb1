//! Ctrl-C: once interrupts the turn, twice ends the command; nothing of Codex is left.

use std::time::{Duration, Instant};

use bindery_testkit::model::{Reply, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::stage::{HANG, Stage};

/// The first child of a process.
pub(crate) fn child_of(parent: u32) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(path).unwrap();
    children.split_whitespace().next().expect("a child").parse().unwrap()
}

/// Sends a signal.
pub(crate) fn kill(process: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until a process is gone.
pub(crate) async fn assert_gone(process: u32) {
    let began = Instant::now();
    while lives(process) {
        assert!(began.elapsed() < HANG, "process {process} is left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    !matches!(state, None | Some('Z' | 'X'))
}

#[tokio::test]
async fn once_interrupts_the_turn() {
    let stage = Stage::free(vec![Reply::new([Step::gate("never")])]);
    let child = stage.start(&["run", "go"]);
    let bindery = child.id().unwrap();
    stage.reached("never").await;
    let codex = child_of(bindery);
    kill(bindery, Signal::INT);
    insta::assert_snapshot!(stage.finish(child).await, @r#"
    exit: 130
    stdout:

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project] (main)

    interrupted after [time]
    resume with: bindery run --resume [id] "…"
    "#);
    assert_gone(codex).await;
}

/// What was said until then is kept.
#[tokio::test]
async fn an_interrupted_answer_is_told_as_far_as_it_came() {
    let stage = Stage::free(vec![Reply::new([Step::begin("Half a sen"), Step::gate("never")])]);
    let mut child = stage.start(&["run", "--format", "parts", "go"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut kinds = Vec::new();
    while let Some(line) = timeout(HANG, lines.next_line()).await.expect("a line").unwrap() {
        let part: Value = serde_json::from_str(&line).unwrap();
        let kind = part["type"].as_str().unwrap().to_owned();
        if kind == "text-delta" {
            kill(child.id().unwrap(), Signal::INT);
        }
        kinds.push(match kind.as_str() {
            "finish" => format!("finish: {}", part["finishReason"]),
            "text-delta" => format!("text-delta: {}", part["delta"]),
            _ => kind,
        });
    }
    insta::assert_debug_snapshot!(kinds, @r#"
    [
        "stream-start",
        "response-metadata",
        "custom",
        "text-start",
        "text-delta: \"Half a sen\"",
        "text-end",
        "finish: {\"raw\":\"interrupted\",\"unified\":\"interrupted\"}",
    ]
    "#);
    assert_eq!(stage.finish(child).await.code, Some(130));
}

/// The second one does not wait for Codex, which here cannot answer: it is stopped.
#[tokio::test]
async fn twice_ends_the_command() {
    let stage = Stage::free(vec![Reply::new([Step::gate("never")])]);
    let child = stage.start(&["run", "go"]);
    let bindery = child.id().unwrap();
    stage.reached("never").await;
    let codex = child_of(bindery);
    kill(codex, Signal::STOP);
    kill(bindery, Signal::INT);
    // Two signals of a kind that are there at once are one.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    kill(bindery, Signal::INT);
    let ran = stage.finish(child).await;
    assert_eq!(ran.code, Some(130), "{ran}");
    // Codex is given two seconds to end by itself, and two more after it was asked to.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_gone(codex).await;
}

/// A command that runs when the turn is interrupted does not run on.
#[tokio::test]
async fn a_running_command_ends_with_its_turn() {
    let script = vec![Reply::new([Step::exec("echo $$ > pid; exec sleep 600", "c1")])];
    let stage = Stage::free(script);
    let child = stage.start(&["run", "go"]);
    let bindery = child.id().unwrap();
    let path = stage.codex.project().join("pid");
    let began = Instant::now();
    let command = loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(process) = text.trim().parse() {
            break process;
        }
        assert!(began.elapsed() < HANG, "the command did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let codex = child_of(bindery);
    kill(bindery, Signal::INT);
    let ran = stage.finish(child).await;
    assert_eq!(ran.code, Some(130), "{ran}");
    assert_gone(command).await;
    assert_gone(codex).await;
}
