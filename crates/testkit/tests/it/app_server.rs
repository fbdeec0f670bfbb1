//! The scripted app-server, in memory and as a process.

use std::process::Command;

use bindery_testkit::app_server::{
    AppServer, End, Script, Step, Turn, initialize, plain_session, program, start_thread,
};
use bindery_testkit::codex::Options;
use bindery_testkit::lines::Lines;
use bindery_testkit::model::Reply;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run;

fn in_memory(script: Script) -> (AppServer, Lines) {
    let (server, from, to) = AppServer::start(script);
    (server, Lines::new(from, to))
}

fn process(script: &Script, folder: &TempDir) -> Lines {
    let path = folder.path().join("script.json");
    script.write(&path);
    let mut command = Command::new(program());
    command.arg(path).arg("app-server");
    Lines::spawn(command).expect("it starts")
}

async fn plain_turn(lines: &mut Lines) -> Value {
    lines.initialize().await;
    let thread = lines.start_thread(json!({})).await;
    lines.run_turn(&thread, "hello").await
}

#[tokio::test]
async fn a_plain_session_plays_in_memory() {
    let (server, mut lines) = in_memory(plain_session("Hi"));
    let completed = plain_turn(&mut lines).await;
    assert_eq!(completed["params"]["turn"]["status"], "completed");
    let user = &lines.received("item/started")[0]["params"]["item"];
    assert_eq!(user["content"], json!([{ "type": "text", "text": "hello", "text_elements": [] }]));
    lines.close().await;
    let outcome = server.outcome().await;
    assert_eq!(outcome.end, End::Finished);
    assert_eq!(outcome.received.len(), 4);
}

#[tokio::test]
async fn a_plain_session_plays_as_a_process_and_is_recorded() {
    let folder = TempDir::new().expect("a folder");
    let record = folder.path().join("received.jsonl");
    let script = Script { record: Some(record.clone()), ..plain_session("Hi") };
    let mut lines = process(&script, &folder);
    plain_turn(&mut lines).await;
    assert_eq!(lines.close().await, Some(0));
    let received = std::fs::read_to_string(record).expect("a record");
    assert_eq!(received.lines().count(), 4);
}

#[tokio::test]
async fn many_turns_are_one_loop() {
    let turn = Turn::new("$params.threadId", "turn-$n");
    let steps = [turn.begin(), turn.say("msg", "Hi"), turn.complete()].concat();
    let repeat = vec![Step::Repeat { times: None, steps }];
    let (server, mut lines) = in_memory(Script::new([initialize(), start_thread("t"), repeat]));
    lines.initialize().await;
    let thread = lines.start_thread(json!({})).await;
    for round in 1..=3 {
        let completed = lines.run_turn(&thread, "hello").await;
        assert_eq!(completed["params"]["turn"]["id"], format!("turn-{round}"));
    }
    lines.close().await;
    assert_eq!(server.outcome().await.end, End::Finished);
}

#[tokio::test]
async fn a_misfit_is_named() {
    let (server, mut lines) = in_memory(plain_session("Hi"));
    lines.send(json!({ "id": 1, "method": "thread/start", "params": {} })).await;
    assert_eq!(lines.next().await, None);
    let want = r#"expected initialize, got {"id":1,"method":"thread/start","params":{}}"#;
    assert_eq!(server.outcome().await.end, End::Failed(want.to_owned()));

    let folder = TempDir::new().expect("a folder");
    let mut lines = process(&plain_session("Hi"), &folder);
    assert_eq!(lines.close().await, Some(97));
}

#[tokio::test]
async fn an_approval_is_asked_and_its_answer_seen() {
    let turn = Turn::new("t", "u");
    let answered = vec![
        Step::ExpectAnswer { id: json!(0) },
        Step::notify("warning", json!({ "message": "$result.decision" })),
    ];
    let asked = turn.ask_for_command(0, "call_1", "ls");
    let (server, mut lines) = in_memory(Script::new([asked, answered, turn.complete()]));
    lines.until_method("item/commandExecution/requestApproval").await;
    lines.send(json!({ "id": 0, "result": { "decision": "decline" } })).await;
    let warning = lines.until_method("warning").await;
    assert_eq!(warning["params"]["message"], "decline");
    lines.until_method("turn/completed").await;
    drop(server);
}

#[tokio::test]
async fn refusals_and_strays_and_garbage_come_as_written() {
    let steps = vec![
        Step::expect("a"),
        Step::overload(),
        Step::expect("b"),
        Step::stray_reply(json!("nobody"), json!({})),
        Step::Bytes { bytes: serde_json::from_str(r#""{\"half\":""#).expect("bytes") },
        Step::bytes(b"\xff\n"),
        Step::crash(3),
    ];
    let folder = TempDir::new().expect("a folder");
    let mut lines = process(&Script::new([steps]), &folder);
    let refused = lines.request("a", json!({})).await;
    assert_eq!(refused["error"]["code"], -32001);
    lines.send(json!({ "id": 2, "method": "b" })).await;
    assert_eq!(lines.next().await, Some(json!({ "id": "nobody", "result": {} })));
    assert_eq!(lines.rest().await, "{\"half\":\u{fffd}\n");
}

#[tokio::test]
async fn crashes_have_their_codes() {
    for (step, want) in [(Step::crash(3), Some(3)), (Step::Crash { code: None }, None)] {
        let folder = TempDir::new().expect("a folder");
        let mut lines = process(&Script::new([vec![step]]), &folder);
        assert_eq!(lines.next().await, None);
        assert_eq!(lines.close().await, want);
    }
}

#[tokio::test]
async fn output_closes_while_the_process_lives_on() {
    let folder = TempDir::new().expect("a folder");
    let steps = vec![Step::CloseOutput, Step::expect("ping"), Step::crash(5)];
    let mut lines = process(&Script::new([steps]), &folder);
    assert_eq!(lines.next().await, None);
    lines.send(json!({ "method": "ping" })).await;
    assert_eq!(lines.close().await, Some(5));
}

#[tokio::test]
async fn a_huge_line_arrives_whole() {
    let bytes = 50_000_000;
    let message = json!({ "method": "huge", "params": { "delta": "$fill" } });
    let folder = TempDir::new().expect("a folder");
    let mut lines = process(&Script::new([vec![Step::Huge { message, bytes }]]), &folder);
    let huge = lines.until_method("huge").await;
    assert_eq!(huge["params"]["delta"].as_str().map(str::len), Some(bytes));
    assert_eq!(lines.close().await, Some(0));
}

/// What the scripted server says must look like what Codex says, or tests prove nothing.
#[tokio::test]
async fn scripted_messages_have_the_shapes_of_real_ones() {
    let (_server, mut scripted) = in_memory(plain_session("Hi"));
    plain_turn(&mut scripted).await;
    let real = run(vec![Reply::text("Hi")], &Options::default()).await;
    let received = |lines: &Lines| -> Vec<Value> {
        let lines = lines.transcript().iter().filter(|line| line["dir"] == "recv");
        lines.map(|line| line["msg"].clone()).collect()
    };
    let real = received(&real.lines);
    for message in received(&scripted) {
        let twin = real.iter().find(|other| kind(other) == kind(&message));
        let twin = twin.unwrap_or_else(|| panic!("Codex says no {:?}", kind(&message)));
        let mut differences = Vec::new();
        compare("", twin, &message, &mut differences);
        assert!(differences.is_empty(), "{:?}: {differences:?}", kind(&message));
    }
}

/// Replies are told apart by id, notifications by method, items by type.
fn kind(message: &Value) -> [&Value; 4] {
    let params = &message["params"];
    [&message["id"], &message["method"], &params["item"]["type"], &params["status"]["type"]]
}

fn compare(path: &str, real: &Value, scripted: &Value, differences: &mut Vec<String>) {
    match (real, scripted) {
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            for name in names {
                let path = format!("{path}.{name}");
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => compare(&path, left, right, differences),
                    (left, _) => differences.push(format!("{path} real: {}", left.is_some())),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for (left, right) in left.iter().zip(right) {
                compare(&format!("{path}[]"), left, right, differences);
            }
        }
        _ => {}
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_will_not_terminate_must_be_killed() {
    let folder = TempDir::new().expect("a folder");
    let steps = vec![Step::expect("ping"), Step::reply(json!({})), Step::expect("again")];
    let steps = [steps, vec![Step::reply(json!({})), Step::Hang]].concat();
    let script = Script { steps, ignore_terminate: true, ..Script::default() };
    let mut lines = process(&script, &folder);
    lines.request("ping", json!({})).await;
    let id = lines.process_id().expect("a running process").to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.expect("kill runs").success());
    lines.request("again", json!({})).await;
}
