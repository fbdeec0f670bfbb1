//! A daemon that belongs to its caller: it ends with it, and leaves nothing behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::{HANG, Stage};

/// The processes whose parent this is.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    pids.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

#[tokio::test]
async fn a_daemon_ends_with_its_caller_and_leaves_nothing_behind() {
    let endless = Reply::new([Step::begin("on and on"), Step::gate("never")]);
    let stage = Stage::free(Script::new([endless]));
    let temporary = tempfile::tempdir().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--ephemeral"];
    let mut command = stage.bindery(&args);
    command.arg("--announce").env("TMPDIR", temporary.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["backend"], "codex 0.169.0");
    assert_eq!(told["pid"], child.id());
    let parts = first_part(&told).await;
    let workers = children(child.id());
    assert!(!workers.is_empty() && holds(temporary.path()));
    drop(child.stdin.take());
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < HANG, "it does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(parts);
    assert!(workers.iter().all(|&pid| !lives(pid)), "a worker is left");
    assert!(!holds(temporary.path()), "files are left");
}

fn holds(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_some()
}

/// Makes a call, and reads until its text comes; the connection stays open.
async fn first_part(told: &Value) -> tokio::io::BufReader<TcpStream> {
    let host = told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let body = json!({ "specification": "v4", "options": { "prompt": [
        { "role": "user", "content": [{ "type": "text", "text": "hi" }] }] } });
    let (body, token) = (body.to_string(), told["token"].as_str().unwrap());
    let request = format!(
        "POST /v1/language-model/stream HTTP/1.1\r\nhost: {host}\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = tokio::io::BufReader::new(stream);
    let reading = async {
        let mut line = String::new();
        while !line.contains("text-delta") {
            line.clear();
            assert!(lines.read_line(&mut line).await.unwrap() > 0, "the stream ended");
        }
    };
    timeout(HANG, reading).await.expect("no text comes");
    lines
}

#[tokio::test]
async fn a_worker_of_threads_ends_with_a_daemon_that_ends_with_its_caller() {
    let endless = Reply::new([Step::begin("on and on"), Step::gate("never")]);
    let stage = Stage::free(Script::new([endless]));
    let folder = tempfile::tempdir().unwrap();
    let mut command = stage.bindery(&["serve", "--listen", "127.0.0.1:0", "--announce", "--data"]);
    command.arg(folder.path()).args(["--exit-with-parent", "--backend", "engine"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let web = crate::web::Web {
        address: address.parse().unwrap(),
        token: told["token"].as_str().unwrap().to_owned(),
    };
    let (_, thread) = web.post("/v1/threads", json!({})).await;
    let path = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
    assert_eq!(web.post(&path, json!({ "input": "go" })).await.0, 201);
    stage.reached("never").await;
    let guards = children(child.id());
    let workers: Vec<u32> = guards.iter().flat_map(|guard| children(*guard)).collect();
    assert!(!workers.is_empty());
    // Killed, it can tell nobody; its guards see that it is gone.
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    while guards.iter().chain(&workers).any(|pid| lives(*pid)) {
        assert!(begin.elapsed() < HANG, "something is left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
