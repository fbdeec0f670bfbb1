//! The real Codex: handshake, refusal, end, and that nothing of it is left.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bindery_client::locate::{Platform, Via, locate};
use bindery_client::peer::{Bounds, Inbound, Peer};
use bindery_client::transport::stdio::{self, Launch};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::server::LONG;
use crate::stdio::{assert_dies, lives};

/// The native program that tests run against.
pub(crate) fn codex() -> PathBuf {
    let path = std::env::var_os("BINDERY_TEST_CODEX").map_or_else(installed, PathBuf::from);
    assert!(
        path.is_file(),
        "no Codex at `{}`: run `cargo xtask test`, or name one in `BINDERY_TEST_CODEX`",
        path.display()
    );
    path
}

/// Where `cargo xtask test` puts it.
fn installed() -> PathBuf {
    let platform = Platform::current();
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/bindery-test/codex/node_modules/@openai")
        .join(platform.package())
        .join("vendor")
        .join(platform.triple())
        .join("bin")
        .join(platform.program())
}

/// A Codex with a home of its own.
fn launch(home: &TempDir) -> Launch {
    let mut launch = Launch::codex(&Platform::current().resolve(&codex(), Via::Given));
    launch.env.push(("CODEX_HOME".into(), home.path().into()));
    launch.cwd = Some(home.path().to_owned());
    launch
}

fn start(launch: &Launch) -> (Peer, mpsc::Receiver<Inbound>) {
    Peer::start(stdio::spawn(launch).unwrap(), Bounds::default())
}

async fn initialize(peer: &Peer) -> Value {
    let info = json!({"clientInfo": {"name": "bindery", "version": "0.1.0"}});
    let result = peer.request("initialize", info, LONG).await.unwrap();
    peer.notify("initialized", ()).await.unwrap();
    serde_json::from_str(result.get()).unwrap()
}

#[tokio::test]
async fn it_shakes_hands_refuses_and_ends() {
    let home = tempfile::tempdir().unwrap();
    let (peer, mut inbound) = start(&launch(&home));
    let early = peer.request("thread/list", json!({}), LONG).await.unwrap_err();
    assert_eq!(early.to_string(), "`thread/list` failed: Not initialized (-32600)");
    let hello = initialize(&peer).await;
    assert!(hello["userAgent"].as_str().unwrap().starts_with("bindery/0."), "{hello}");
    let unknown = peer.request("no/such", json!({}), LONG).await.unwrap_err();
    assert_eq!(unknown.code(), "rpc");
    assert!(unknown.to_string().starts_with("`no/such` failed: Invalid request: unknown variant"));
    let process = peer.process().unwrap();
    assert!(lives(process));
    let begin = Instant::now();
    let end = peer.close().await;
    // It takes about 0.1 s; had it not ended by itself, the status would be a signal.
    assert_eq!(end.status, "exit code 0");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(!lives(process));
    assert_eq!(group(process), Vec::<u32>::new());
    assert!(matches!(last(&mut inbound).await, Some(Inbound::Closed(told)) if told == end));
}

#[tokio::test]
async fn many_at_once_each_get_their_own_answer() {
    let home = tempfile::tempdir().unwrap();
    let (peer, _inbound) = start(&launch(&home));
    initialize(&peer).await;
    let ask = |number: u32| {
        let method = format!("no/such/{number}");
        let peer = &peer;
        async move { (method.clone(), peer.request(&method, json!({}), LONG).await.unwrap_err()) }
    };
    for (method, error) in futures_util::future::join_all((0..50).map(ask)).await {
        assert!(error.to_string().contains(&format!("unknown variant `{method}`")), "{error}");
    }
    peer.close().await;
}

#[tokio::test]
async fn killed_from_outside_it_is_told_at_once() {
    let home = tempfile::tempdir().unwrap();
    let (peer, mut inbound) = start(&launch(&home));
    initialize(&peer).await;
    let process = rustix::process::Pid::from_raw(peer.process().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    assert_eq!(peer.ended().await.status, "signal 9 (SIGKILL)");
    assert!(matches!(last(&mut inbound).await, Some(Inbound::Closed(_))));
    assert_eq!(peer.request("thread/list", json!({}), LONG).await.unwrap_err().code(), "closed");
}

#[test]
fn the_shim_npm_installed_leads_to_it() {
    let native = codex().canonicalize().unwrap();
    let Some(modules) = native.ancestors().find(|folder| folder.ends_with("node_modules")) else {
        return;
    };
    let shim = modules.join(".bin/codex");
    let found = locate(Some(&shim)).unwrap();
    assert_eq!((found.path, found.via, found.shim), (native.clone(), Via::Given, Some(shim)));
}

/// Has Codex run a command outside the sandbox that starts another; gives the number of that one.
async fn command(peer: &Peer, home: &TempDir) -> u32 {
    let report = home.path().join("command");
    let script = "sleep 1000 & echo $! >\"$0.draft\"; mv \"$0.draft\" \"$0\"; wait";
    let params = json!({
        "command": ["sh", "-c", script, report],
        "timeoutMs": 600_000,
        "sandboxPolicy": {"type": "dangerFullAccess"},
    });
    tokio::select! {
        answer = peer.request("command/exec", params, LONG) => panic!("it ended: {answer:?}"),
        process = reported(&report) => process,
    }
}

#[tokio::test]
async fn what_its_commands_started_ends_with_it() {
    let home = tempfile::tempdir().unwrap();
    for closed in [true, false] {
        let (peer, _inbound) = start(&launch(&home));
        initialize(&peer).await;
        let process = command(&peer, &home).await;
        assert!(lives(process));
        if closed {
            peer.close().await;
        }
        drop(peer);
        assert_dies(process).await;
        std::fs::remove_file(home.path().join("command")).unwrap();
    }
}

#[tokio::test]
async fn arguments_it_does_not_know_end_it_with_its_words() {
    let home = tempfile::tempdir().unwrap();
    let mut launch = launch(&home);
    launch.args.push("--no-such-option".into());
    let (peer, _inbound) = start(&launch);
    let error = peer.request("initialize", json!({}), LONG).await.unwrap_err().to_string();
    assert!(error.starts_with("Codex is gone: exit code 2"), "{error}");
    assert!(peer.close().await.stderr.contains("--no-such-option"));
}

/// Tells a copy of this test program to be the host that is killed, and where to write.
const ROLE: &str = "BINDERY_TEST_HOST_REPORT";

#[tokio::test]
async fn when_our_own_process_is_killed_nothing_remains() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("process");
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "codex::host_until_killed"])
        .env(ROLE, &report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let process = reported(&report).await;
    assert!(lives(process));
    host.kill().unwrap();
    host.wait().unwrap();
    assert_dies(process).await;
    assert_eq!(group(process), Vec::<u32>::new());
}

/// The other half of the test above, which runs it in a process of its own.
#[tokio::test]
async fn host_until_killed() {
    let Some(report) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    let home = tempfile::tempdir().unwrap();
    let (peer, _inbound) = start(&launch(&home));
    initialize(&peer).await;
    let draft = report.with_extension("draft");
    std::fs::write(&draft, peer.process().unwrap().to_string()).unwrap();
    std::fs::rename(&draft, &report).unwrap();
    peer.ended().await;
}

async fn reported(report: &Path) -> u32 {
    let begin = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(report) {
            return text.trim().parse().unwrap();
        }
        assert!(begin.elapsed() < LONG, "the host did not start Codex");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn last(inbound: &mut mpsc::Receiver<Inbound>) -> Option<Inbound> {
    let mut last = None;
    while let Some(message) = inbound.recv().await {
        last = Some(message);
    }
    last
}

/// Living processes of a group, on Linux.
fn group(leader: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&number: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let rest = text.rsplit(')').next().unwrap_or_default();
            rest.split_whitespace().nth(2).and_then(|group| group.parse().ok()) == Some(leader)
                && lives(number)
        })
        .collect()
}
