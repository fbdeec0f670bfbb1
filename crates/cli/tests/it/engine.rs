//! Turns on the built-in engine, and the engine as a server of its own.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn a_turn_on_the_engine_looks_as_on_codex() {
    let stage = Stage::free(vec![
        Reply::new([Step::text("I look."), Step::exec("echo one", "c1")]),
        Reply::text("Done."),
    ]);
    insta::assert_snapshot!(stage.run(&["run", "--backend", "engine", "go"]).await);
}

#[tokio::test]
async fn a_thread_goes_on_by_its_name() {
    let stage = Stage::free(Script::always("ok"));
    let first = stage.run(&["run", "--backend", "engine", "first"]).await;
    assert_eq!(first.code, Some(0), "{}", first.err);
    let second = stage.run(&["run", "--backend", "engine", "--resume", "last", "second"]).await;
    assert_eq!(second.code, Some(0), "{}", second.err);
    let input = stage.model.bodies()[1]["input"].to_string();
    assert!(input.contains("first") && input.contains("second"), "{input}");
}

#[tokio::test]
async fn one_of_your_own_prompts_on_every_backend() {
    let stage = Stage::free(Script::always("ok"));
    let prompts = stage.codex.home().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("ticket.md"), "Mend $ID of $PLACE.\n").unwrap();
    std::fs::write(prompts.join("look.md"), "Look at $1, then $ARGUMENTS.").unwrap();
    for (at, backend) in ["engine", "codex", "exec"].into_iter().enumerate() {
        let args = ["run", "--backend", backend, "--prompt", "ticket", "ID=42", "PLACE=a b"];
        let ran = stage.run(&args).await;
        assert_eq!(ran.code, Some(0), "{backend}: {}", ran.err);
        assert_eq!(stage.heard()[at].last().unwrap(), "user: Mend 42 of a b.\n", "{backend}");
    }
    let run = ["run", "--backend", "engine", "--prompt"];
    let ran = stage.run(&[&run[..], &["/prompts:look", "a", "b c", "--model", "m"]].concat()).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(stage.heard()[3].last().unwrap(), "user: Look at a, then a b c.");
    let missing = stage.run(&[&run[..], &["ticket", "ID=42"]].concat()).await;
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""), "{}", missing.err);
    let unknown = stage.run(&[&run[..], &["nothing"]].concat()).await;
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.err.contains("there are look, ticket"), "{}", unknown.err);
    let both = stage.run(&["run", "words", "--prompt", "look"]).await;
    assert_eq!(both.code, Some(2), "{}", both.err);
    assert_eq!(stage.model.bodies().len(), 4);
}

#[tokio::test]
async fn without_codex_the_engine_runs_and_says_so() {
    let stage = Stage::free(Script::always("hello"));
    let mut command = stage.bindery(&["run", "hi"]);
    command.env_remove("BINDERY_CODEX").env("PATH", "/nowhere");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let want = "no Codex found: running on the built-in engine with gpt-5.5 of Scripted\n";
    assert!(said.starts_with(want), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello\n");
}

/// A home with nothing in it: only the demo model answers, and it says what it is.
fn bare(args: &[&str], home: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    command.args(args).current_dir(home).env_clear().env("HOME", home).env("PATH", "/nowhere");
    command
}

#[test]
fn without_anything_the_demo_model_answers_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let output = bare(&["run", "hello"], home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let want = "no Codex found: running on the built-in engine with the demo model";
    assert!(said.starts_with(want), "{said}");
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.starts_with("[demo]"), "{answer}");
    let output = bare(&["doctor"], home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("demo model: no real model answers"), "{told}");
}

fn line(stdout: &mut impl BufRead) -> Value {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn the_server_ends_when_its_input_does() {
    let home = tempfile::tempdir().unwrap();
    let mut command = bare(&["app-server"], home.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let hello = json!({ "clientInfo": { "name": "t", "version": "1" } });
    writeln!(stdin, "rubbish\n{}", json!({ "id": 1, "method": "initialize", "params": hello }))
        .unwrap();
    assert_eq!(line(&mut stdout)["id"], 1);
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_a_listening_server_in_order() {
    let home = tempfile::tempdir().unwrap();
    let mut command = bare(&["app-server", "--listen", "ws://127.0.0.1:0"], home.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("readyz: http://") {
        stderr.read_line(&mut said).unwrap();
    }
    let address = said.split("listening on: ws://").nth(1).unwrap().lines().next().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_listened_on_is_said() {
    let home = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let output = bare(args, home.path()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    insta::assert_snapshot!(said(&["app-server", "--listen", "ws://0.0.0.0:0"]));
    insta::assert_snapshot!(said(&["app-server", "--listen", "http://x"]));
}

/// What a server writes to its standard error while it is greeted with a line of rubbish.
fn logged(variable: Option<(&str, &str)>) -> (Option<i32>, String, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = bare(&["app-server"], home.path());
    command.envs(variable).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let hello = json!({ "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "id": 1, "method": "initialize", "params": hello });
    let mut stdin = child.stdin.take().unwrap();
    // One that does not like its settings is gone before it reads.
    let _ = writeln!(stdin, "rubbish\n{hello}");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_server_logs_to_standard_error_and_nowhere_else() {
    let (code, out, err) = logged(None);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("ERROR") && err.lines().count() == 1, "{err}");
    for line in out.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    for name in ["BINDERY_LOG", "RUST_LOG"] {
        let (code, _, err) = logged(Some((name, "off")));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{name}");
    }
    let (code, out, err) = logged(Some(("BINDERY_LOG", "bindery=what")));
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
}

#[tokio::test]
async fn rules_that_cannot_be_read_are_told() {
    let stage = Stage::free(Script::always("ok"));
    let rules = stage.codex.home().join("rules");
    std::fs::create_dir_all(&rules).unwrap();
    std::fs::write(rules.join("default.rules"), "prefix_rule(pattern = [\n").unwrap();
    let ran = stage.run(&["run", "--backend", "engine", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{ran}");
    let words = "default.rules are not in force";
    assert!(ran.err.contains(words), "{ran}");
    let ran = stage.run(&["exec", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{ran}");
    assert!(ran.err.contains(words), "{ran}");
    let ran = stage.run(&["exec", "--json", "resume", "--last", "go"]).await;
    assert!(ran.code == Some(0) && ran.out.contains(words), "{ran}");
}

#[tokio::test]
async fn a_name_that_codex_gave_a_thread_is_seen() {
    use bindery_testkit::lines::Lines;
    let stage = Stage::free(Script::always("ok"));
    let mut codex = Lines::spawn(stage.codex.command(&["app-server"])).unwrap();
    codex.initialize().await;
    let thread = codex.start_thread(json!({})).await;
    codex.run_turn(&thread, "hello").await;
    let name = json!({ "threadId": thread, "name": "By Codex" });
    codex.request("thread/name/set", name).await;
    codex.close().await;
    let mut engine = Lines::spawn(stage.bindery(&["app-server"])).unwrap();
    engine.initialize().await;
    let listed = engine.request("thread/list", json!({})).await;
    assert_eq!(listed["result"]["data"][0]["name"], "By Codex", "{listed}");
    let name = json!({ "threadId": thread, "name": "By us" });
    engine.request("thread/name/set", name).await;
    let read = engine.request("thread/read", json!({ "threadId": thread })).await;
    assert_eq!(read["result"]["thread"]["name"], "By us", "{read}");
    engine.close().await;
}
