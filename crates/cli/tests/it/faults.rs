//! The engine's process is killed, its disk fills up, its client stops reading: what was told is
//! kept, and nothing stays behind.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bindery_testkit::codex::Options;
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Reply, Script, Step};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::interrupt::{assert_gone, kill};
use crate::stage::{HANG, Stage};

/// The items that a client was told were whole, in order.
fn told(lines: &Lines) -> Vec<Value> {
    let completed = lines.received("item/completed");
    completed.iter().map(|line| line["params"]["item"].clone()).collect()
}

/// The items of a thread that another process finds.
async fn found(lines: &mut Lines, thread: &str) -> Vec<Value> {
    let resumed = lines.request("thread/resume", json!({ "threadId": thread })).await;
    let turns = resumed["result"]["thread"]["turns"].as_array().cloned();
    let turns = turns.unwrap_or_else(|| panic!("{resumed}"));
    turns.iter().flat_map(|turn| turn["items"].as_array().unwrap().clone()).collect()
}

fn names(items: &[Value]) -> Vec<(String, String)> {
    let word = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    items.iter().map(|item| (word(item, "type"), word(item, "id"))).collect()
}

/// Waits for a file and gives what is in it.
async fn written(path: &Path) -> String {
    let began = Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(began.elapsed() < HANG, "{} is not written", path.display()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills the engine while a command runs, with commands in a sandbox or without.
async fn killed_while_a_command_runs(options: &Options) {
    let command = "sleep 3000 & echo $! > child; echo $$ > leader; wait";
    let run = json!({ "cmd": command, "yield_time_ms": 30_000 });
    let stage = Stage::with(
        vec![
            Reply::text("first").when_user("one"),
            Reply::new([Step::text("I look."), Step::call("exec_command", run, "c1")])
                .when_user("two"),
            Reply::text("third").when_user("three"),
        ],
        options,
    );
    let mut command = stage.bindery(&["app-server"]);
    let named = std::env::var_os("BINDERY_BWRAP");
    command.envs(named.map(|program| ("BINDERY_BWRAP", program)));
    let mut lines = Lines::spawn(command).unwrap();
    lines.initialize().await;
    let thread = lines.start_thread(json!({})).await;
    lines.run_turn(&thread, "one").await;
    let input = json!([{ "type": "text", "text": "two" }]);
    lines.request("turn/start", json!({ "threadId": thread, "input": input })).await;
    lines.until(|line| line["params"]["item"]["type"] == "commandExecution").await;
    let leader = stage.codex.project().join("leader");
    // Where there is no sandbox it is asked for.
    let asked = tokio::select! {
        _ = written(&leader) => None,
        asked = lines.until_method("item/commandExecution/requestApproval") => Some(asked),
    };
    if let Some(asked) = asked {
        let yes = json!({ "decision": "accept" });
        lines.send(json!({ "id": asked["id"], "result": yes })).await;
        written(&leader).await;
    }
    // Names of processes within a sandbox are its own.
    let own = children_of(lines.process_id().unwrap());
    assert!(!own.is_empty());
    kill(lines.process_id().unwrap(), Signal::KILL);
    while lines.next().await.is_some() {}
    for process in own {
        assert_gone(process).await;
    }
    let told = names(&told(&lines));
    assert_eq!(told.last().unwrap().0, "agentMessage", "{told:?}");

    let mut again = Lines::spawn(stage.bindery(&["app-server"])).unwrap();
    again.initialize().await;
    let found = names(&found(&mut again, &thread).await);
    for item in &told {
        assert!(found.contains(item), "{item:?} is lost: {found:?}");
    }
    again.run_turn(&thread, "three").await;
    let heard = stage.heard().pop().unwrap().join("\n");
    for words in ["user: one", "assistant: first", "user: two", "assistant: I look.", "user: three"]
    {
        assert!(heard.contains(words), "{words} is not in {heard}");
    }
    again.close().await;
}

/// All that a process started, and what those started.
fn children_of(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().unwrap());
    children.flat_map(|child| std::iter::once(child).chain(children_of(child))).collect()
}

#[tokio::test]
async fn killed_in_the_middle_of_a_turn_nothing_that_was_told_is_lost() {
    killed_while_a_command_runs(&Options::default()).await;
}

#[tokio::test]
async fn without_a_sandbox_its_commands_end_with_it_too() {
    killed_while_a_command_runs(&Options::unrestricted()).await;
}

#[tokio::test]
async fn a_disk_that_fills_up_ends_the_turn_and_loses_nothing() {
    let long = "word ".repeat(2_000);
    let stage = Stage::free(Script::always(&long));
    // No file may become longer than this, which is what a full disk looks like from inside.
    let inner = stage.bindery(&["app-server"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""])
        .arg(inner.get_program());
    command.args(inner.get_args()).current_dir(stage.codex.project()).env_clear();
    command.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut lines = Lines::spawn(command).unwrap();
    lines.initialize().await;
    let thread = lines.start_thread(json!({})).await;
    let mut failed = Value::Null;
    for _ in 0..50 {
        let ended = lines.run_turn(&thread, "go").await;
        let turn = &ended["params"]["turn"];
        if turn["status"] == "failed" {
            failed = turn["error"]["message"].clone();
            break;
        }
    }
    let words = failed.as_str().expect("a turn that failed");
    assert!(words.starts_with("cannot write the session down"), "{words}");
    let told = names(&told(&lines));
    assert!(told.len() > 4, "{told:?}");
    assert_eq!(lines.close().await, Some(0));
    let mut again = Lines::spawn(stage.bindery(&["app-server"])).unwrap();
    again.initialize().await;
    let found = names(&found(&mut again, &thread).await);
    for item in &told {
        assert!(found.contains(item), "{item:?} is lost: {found:?}");
    }
    let ended = again.run_turn(&thread, "go").await;
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    again.close().await;
}

#[tokio::test]
async fn a_client_that_stops_reading_costs_no_more_than_its_share() {
    let stage = Stage::free(Script::always("ok"));
    let big = stage.file("big", &"x".repeat(4 << 20));
    let mut command = stage.bindery(&["app-server"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({ "clientInfo": { "name": "t", "version": "1" } });
    writeln!(stdin, "{}", json!({ "id": 0, "method": "initialize", "params": hello })).unwrap();
    // Nobody reads a word of this. It ends when the server has had enough of us.
    let ask = std::thread::spawn(move || {
        for id in 1.. {
            let params = json!({ "path": big });
            let line = json!({ "id": id, "method": "fs/readFile", "params": params });
            if writeln!(stdin, "{line}").is_err() {
                return;
            }
        }
    });
    let (began, mut most) = (Instant::now(), 0);
    let code = loop {
        most = most.max(resident(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        assert!(began.elapsed() < HANG, "it waits for a client that does not read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    ask.join().unwrap();
    assert_eq!(code, Some(0));
    assert!(most < 400 << 10, "{most} KiB");
}

/// KiB of memory that a process has.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
