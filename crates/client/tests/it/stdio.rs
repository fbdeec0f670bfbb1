//! Child processes: how they end, what they leave, what they say.
#![cfg(unix)]

use std::time::{Duration, Instant};

use bindery_client::error::Error;
use bindery_client::peer::{Bounds, Inbound, Peer};
use bindery_client::transport::stdio::{self, Launch};
use bindery_client::transport::{End, Incoming, Transport};
use serde_json::json;

use crate::server::LONG;

/// A shell script in place of an app-server.
fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("/bin/sh");
    launch.args = vec!["-c".into(), script.into()];
    launch
}

fn start(launch: &Launch) -> Transport {
    stdio::spawn(launch).unwrap()
}

/// All lines and the end.
async fn drain(transport: &mut Transport) -> (Vec<String>, End) {
    let mut lines = Vec::new();
    loop {
        match transport.incoming.recv().await.expect("an end") {
            Incoming::Line(line) => lines.push(String::from_utf8_lossy(&line).into_owned()),
            Incoming::TooLong { bytes, .. } => lines.push(format!("{bytes} bytes")),
            Incoming::End(end) => return (lines, end),
        }
    }
}

/// Whether a process exists and is not merely waiting to be reaped by somebody else.
pub(crate) fn lives(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|text| !text.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// Waits until the process is gone; generous, since the machine may be busy.
pub(crate) async fn assert_dies(process: u32) {
    let begin = Instant::now();
    while lives(process) {
        assert!(begin.elapsed() < Duration::from_secs(20), "process {process} still lives");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_it_says_comes_whole_and_then_its_end() {
    let mut transport = start(&shell(
        "echo one; printf 'two\\r\\n'; printf '\\033[2mgo\\033[0;31mne\\033[0m\\n' >&2; printf half; exit 3",
    ));
    let (lines, end) = drain(&mut transport).await;
    assert_eq!(lines, ["one", "two", "half"]);
    assert_eq!(end, End { status: "exit code 3".into(), stderr: "gone\n".into() });
    assert_eq!(transport.incoming.recv().await, None);
    assert_eq!(transport.closer.close().await, end);
}

#[tokio::test]
async fn a_signal_is_named() {
    let (_, end) = drain(&mut start(&shell("kill -9 $$"))).await;
    assert_eq!(end.status, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn the_last_of_stderr_is_kept() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of many\" >&2; i=$((i+1)); done";
    let (_, end) = drain(&mut start(&shell(script))).await;
    assert!(end.stderr.len() <= 16 * 1024 && end.stderr.len() > 16 * 1024 - 64);
    assert!(end.stderr.ends_with("line 2999 of many\n"));
}

#[tokio::test]
async fn the_environment_is_added_to_and_the_folder_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut launch = shell("echo \"$ADDED ${PATH:+path} ${CARGO_MANIFEST_DIR:-removed}\"; pwd -P");
    launch.env.push(("ADDED".into(), "added".into()));
    launch.env_remove.push("CARGO_MANIFEST_DIR".into());
    launch.cwd = Some(folder.path().to_owned());
    let (lines, _) = drain(&mut start(&launch)).await;
    let folder = folder.path().canonicalize().unwrap();
    assert_eq!(lines, ["added path removed", folder.to_str().unwrap()]);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let text = |launch: &Launch| match stdio::spawn(launch) {
        Err(Error::Spawn { program, source }) => (program, source.kind()),
        other => panic!("{other:?}"),
    };
    let missing = Launch::new("/nowhere/codex");
    assert_eq!(text(&missing), ("/nowhere/codex".into(), std::io::ErrorKind::NotFound));
    let mut lost = shell("true");
    lost.cwd = Some("/nowhere".into());
    assert_eq!(text(&lost), ("/bin/sh".into(), std::io::ErrorKind::NotADirectory));
}

#[tokio::test]
async fn closing_closes_stdin_and_writes_what_was_queued() {
    let transport = start(&shell("while read line; do echo \"got $line\" >&2; done; exit 7"));
    for number in 0..5 {
        transport.outgoing.send(format!("line {number}").into_bytes()).await.unwrap();
    }
    let end = transport.closer.close().await;
    assert_eq!(end.status, "exit code 7");
    assert_eq!(end.stderr, "got line 0\ngot line 1\ngot line 2\ngot line 3\ngot line 4\n");
    assert!(transport.outgoing.send(Vec::new()).await.is_err());
}

#[tokio::test]
async fn one_that_ignores_all_requests_is_killed() {
    let mut launch = shell("trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done");
    launch.grace = Duration::from_millis(100);
    let mut transport = start(&launch);
    assert_eq!(transport.incoming.recv().await, Some(Incoming::Line(b"ready".to_vec())));
    assert_eq!(transport.closer.close().await.status, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn one_that_ignores_only_its_stdin_is_terminated() {
    let mut launch = shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    launch.grace = Duration::from_secs(2);
    let mut transport = start(&launch);
    assert_eq!(transport.incoming.recv().await, Some(Incoming::Line(b"ready".to_vec())));
    assert_eq!(transport.closer.close().await.status, "exit code 5");
}

/// Starts a script that prints its own number and that of a child it leaves running.
async fn family(launch: &Launch) -> (Transport, [u32; 2]) {
    let mut transport = start(launch);
    let mut members = [0; 2];
    for member in &mut members {
        let Some(Incoming::Line(line)) = transport.incoming.recv().await else { panic!("no line") };
        *member = String::from_utf8(line).unwrap().parse().unwrap();
    }
    assert!(members.iter().all(|&member| lives(member)));
    (transport, members)
}

const FAMILY: &str = "sleep 1000 & echo $$; echo $!; read line";

#[tokio::test]
async fn children_of_the_child_end_with_it() {
    let (transport, members) = family(&shell(FAMILY)).await;
    assert_eq!(transport.closer.process(), Some(members[0]));
    assert_eq!(transport.closer.close().await.status, "exit code 1");
    for member in members {
        assert_dies(member).await;
    }
}

#[tokio::test]
async fn children_end_also_if_the_child_dies_by_itself() {
    let (mut transport, members) = family(&shell(&format!("{FAMILY}; exit 4"))).await;
    transport.outgoing.send(b"go".to_vec()).await.unwrap();
    assert_eq!(drain(&mut transport).await.1.status, "exit code 4");
    assert_dies(members[1]).await;
}

#[tokio::test]
async fn dropped_without_closing_it_is_killed_with_its_children() {
    let (transport, members) =
        family(&shell(&format!("trap '' TERM HUP; {FAMILY}; sleep 1000"))).await;
    drop(transport);
    for member in members {
        assert_dies(member).await;
    }
}

#[test]
fn a_runtime_that_goes_down_takes_it_along() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (transport, members) = runtime.block_on(family(&shell(&format!("{FAMILY}; sleep 1000"))));
    drop(runtime);
    let check = tokio::runtime::Runtime::new().unwrap();
    check.block_on(async {
        for member in members {
            assert_dies(member).await;
        }
    });
    drop(transport);
}

#[tokio::test]
async fn one_that_closes_its_stdout_is_ended() {
    let mut launch = shell("exec >&-; sleep 1000");
    launch.grace = Duration::from_millis(100);
    let (lines, end) = drain(&mut start(&launch)).await;
    assert_eq!((lines.len(), end.status.as_str()), (0, "signal 15 (SIGTERM)"));
}

/// Starts a session of its own with a child in it, as Codex does for a command.
const SESSION: &str = "setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' & read line";

#[tokio::test]
async fn sessions_the_child_started_end_with_it() {
    let (transport, members) = family(&shell(SESSION)).await;
    transport.closer.close().await;
    for member in members {
        assert_dies(member).await;
    }
    let (transport, members) = family(&shell(SESSION)).await;
    drop(transport);
    for member in members {
        assert_dies(member).await;
    }
}

#[tokio::test]
async fn a_process_that_escaped_with_the_pipes_does_not_hold_the_end_up() {
    let (lines, end) = drain(&mut start(&shell("setsid sleep 1000 & echo $!; exit 0"))).await;
    assert_eq!(end.status, "exit code 0");
    // Its parent was gone before anybody asked for the end, so the test has to end it.
    let escaped = rustix::process::Pid::from_raw(lines[0].parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(escaped, rustix::process::Signal::KILL);
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_the_writer_back() {
    let script =
        "i=0; while [ $i -lt 100000 ]; do echo \"line $i\"; i=$((i+1)); echo $i >\"$COUNT\"; done";
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let mut launch = shell(&script.replace("line $i", &format!("{} $i", "x".repeat(1000))));
    launch.env.push(("COUNT".into(), count.clone().into()));
    let transport = start(&launch);
    // The count stops growing while nobody reads: pipe, buffer and queue are full.
    let mut last = (String::new(), Instant::now());
    while last.1.elapsed() < Duration::from_secs(1) || last.0.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = std::fs::read_to_string(&count).unwrap_or_default();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    let lines: u32 = last.0.trim().parse().unwrap_or_default();
    assert!(lines < 1000, "{lines} lines were taken in with nobody reading");
    transport.closer.close().await;
}

#[tokio::test]
async fn a_line_of_fifty_megabytes_costs_only_itself() {
    let script = "head -c 50000000 /dev/zero | tr '\\0' x; echo; \
                  printf '{\"id\":1,\"result\":\"'; head -c 50000000 /dev/zero | tr '\\0' y; \
                  echo '\"}'; echo '{\"method\":\"after\"}'; read line";
    let (peer, mut inbound) =
        Peer::start(start(&shell(&format!("read line; {script}"))), Bounds::default());
    let error = peer.request("thread/read", json!({}), LONG).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("50000020 bytes")),
        ("line_too_long", true)
    );
    let Some(Inbound::Unreadable { bytes: 50_000_000, head, .. }) = inbound.recv().await else {
        panic!("the first long line is lost");
    };
    assert_eq!(head.len(), 4096);
    let Some(Inbound::Notification { method, .. }) = inbound.recv().await else {
        panic!("no more")
    };
    assert_eq!(method, "after");
    peer.close().await;
}

#[tokio::test]
async fn death_at_any_step_is_told_to_all() {
    for script in [
        "exit 9",
        "read a; exit 9",
        "read a; printf '{\"id\":1,'; exit 9",
        "read a; read b; exit 9",
    ] {
        let (peer, mut inbound) = Peer::start(start(&shell(script)), Bounds::default());
        let (a, b) = tokio::join!(peer.request("a", (), LONG), peer.request("b", (), LONG));
        for result in [a, b, peer.request("c", (), LONG).await] {
            let error = result.unwrap_err();
            assert_eq!(error.to_string(), "Codex is gone: exit code 9", "{script}");
        }
        while let Some(message) = inbound.recv().await {
            if let Inbound::Closed(end) = message {
                assert_eq!(end.status, "exit code 9");
            }
        }
        assert_eq!(peer.close().await.status, "exit code 9");
    }
}
