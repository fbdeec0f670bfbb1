//! Runs of command-line agents that are shell scripts, for what a real agent cannot be made to do.

use std::path::Path;
use std::time::Duration;

use bindery_client::locate::{Located, Via};
use bindery_client::run_chat::codex::CodexAgent;
use bindery_client::run_chat::described::DescribedAgent;
use bindery_client::run_chat::gemini::GeminiAgent;
use bindery_client::run_chat::{
    ChatAgent, ChatRequest, Form, Joined, Output, RunOptions, run_chat,
};
use bindery_core::map::exec_to_ndjson::{Cause, Exit};
use bindery_core::ndjson::Dialect;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const HANG: Duration = Duration::from_secs(120);

/// All outputs of a run, and how it ended.
async fn run(agent: &dyn ChatAgent, request: &ChatRequest, options: &RunOptions) -> Vec<Output> {
    let abort = CancellationToken::new();
    let (sender, mut receiver) = mpsc::channel(4);
    let collect = async {
        let mut outputs = Vec::new();
        while let Some(output) = receiver.recv().await {
            outputs.push(output);
        }
        outputs
    };
    let running = run_chat(agent, request, options, &abort, sender);
    let (exit, outputs) = timeout(HANG, async { tokio::join!(running, collect) }).await.unwrap();
    assert_eq!(outputs.last(), Some(&Output::End(exit)));
    outputs
}

fn end(outputs: &[Output]) -> &Exit {
    match outputs.last() {
        Some(Output::End(exit)) => exit,
        other => panic!("{other:?}"),
    }
}

fn joined(outputs: &[Output]) -> String {
    let mut joined = Joined::default();
    let bytes: Vec<u8> = outputs.iter().flat_map(|output| joined.push(output)).collect();
    String::from_utf8(bytes).unwrap()
}

fn events(outputs: &[Output]) -> Vec<Value> {
    joined(outputs).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An agent that is a script of the shell.
fn script(reading: &str, text: &str) -> DescribedAgent {
    let args = serde_json::to_string(&["-c", text]).unwrap();
    let toml = format!(
        "name = \"script\"\nprogram = \"sh\"\nargs = {args}\nstdout = \"{reading}\"\n\
         noise = [\"noise\"]\n"
    );
    DescribedAgent::parse(&toml).unwrap()
}

fn hi() -> ChatRequest {
    ChatRequest::new("hi")
}

#[tokio::test]
async fn without_a_mapper_stdout_passes_unchanged() {
    let agent = script("pass", r"cat; printf '\377\n\000half'");
    let outputs = run(&agent, &ChatRequest::new("the prompt\n"), &RunOptions::default()).await;
    let mut stdout = Vec::new();
    for output in &outputs {
        if let Output::Stdout(bytes) = output {
            stdout.extend_from_slice(bytes);
        }
    }
    assert_eq!(stdout, b"the prompt\n\xff\n\0half");
    assert_eq!(end(&outputs), &Exit::code(0));
}

#[tokio::test]
async fn text_becomes_a_normalised_stream() {
    let agent = script("text", "cat; echo noise >&2; echo careful >&2; exit 3");
    let outputs = run(&agent, &hi(), &RunOptions::default()).await;
    let mut events = events(&outputs);
    // The two pipes are read as they come, in no order between them.
    events.sort_by_key(|event| match event["type"].as_str().unwrap() {
        "init" => 0,
        "message" => 1,
        "stderr" => 2,
        _ => 3,
    });
    let why = "the process ended with exit code 3 before the turn did: careful";
    let want = [
        json!({ "type": "init", "agent": "script" }),
        json!({ "type": "message", "role": "assistant", "content": "hi", "delta": true }),
        json!({ "type": "stderr", "content": "careful", "severity": "info", "topic": "process" }),
        json!({ "type": "error", "message": why, "fatal": true }),
        json!({ "type": "result", "status": "error", "reason": "exit", "exit_code": 3,
            "error": why }),
    ];
    assert_eq!(events, want);
}

#[tokio::test]
async fn the_last_line_comes_before_artifacts_and_these_before_the_result() {
    let folder = TempDir::new().unwrap();
    let message =
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"x"}}"#;
    let agent = script("codex", &format!("echo made > made.txt; printf '%s' '{message}'"));
    let options = RunOptions { artifacts: Some(folder.path().to_owned()), ..RunOptions::default() };
    let request = ChatRequest { cwd: Some(folder.path().to_owned()), ..hi() };
    let events = events(&run(&agent, &request, &options).await);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "artifact", "result"]);
    let want = json!({ "type": "artifact", "path": "made.txt", "size_bytes": 5,
        "mime_type": "text/plain", "label": "made.txt" });
    assert_eq!(events[1], want);
}

#[tokio::test]
async fn an_abort_ends_the_whole_group_and_is_told() {
    let folder = TempDir::new().unwrap();
    let text = "sleep 600 & echo $! > child.pid; echo ready; wait";
    let (agent, abort) = (script("text", text), CancellationToken::new());
    let request = ChatRequest { cwd: Some(folder.path().to_owned()), ..hi() };
    let (sender, mut receiver) = mpsc::channel(4);
    let watch = async {
        let mut outputs = Vec::new();
        while let Some(output) = receiver.recv().await {
            let ready = matches!(&output, Output::Lines(line) if find(line, "ready"));
            outputs.push(output);
            if ready {
                abort.cancel();
            }
        }
        outputs
    };
    let options = RunOptions::default();
    let running = run_chat(&agent, &request, &options, &abort, sender);
    let (exit, outputs) = timeout(HANG, async { tokio::join!(running, watch) }).await.unwrap();
    assert_eq!((exit.cause, exit.signal.as_deref()), (Some(Cause::Aborted), Some("SIGTERM")));
    let result = events(&outputs).pop().unwrap();
    assert_eq!((&result["type"], &result["reason"]), (&json!("result"), &json!("aborted")));
    let child = std::fs::read_to_string(folder.path().join("child.pid")).unwrap();
    assert_gone(child.trim()).await;
}

fn find(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A killed process may stay for a moment until its new parent has reaped it.
async fn assert_gone(pid: &str) {
    let stat = format!("/proc/{pid}/stat");
    for _ in 0..1000 {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        if text.is_empty() || text.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} still lives");
}

#[tokio::test]
async fn a_process_that_does_not_listen_is_killed_at_the_deadline() {
    let agent = script("text", "trap '' TERM; echo ready; while :; do sleep 1; done");
    let options = RunOptions {
        deadline: Some(Duration::from_millis(300)),
        grace: Duration::from_millis(100),
        ..RunOptions::default()
    };
    let outputs = run(&agent, &hi(), &options).await;
    let exit = end(&outputs);
    assert_eq!((exit.cause, exit.signal.as_deref()), (Some(Cause::Deadline), Some("SIGKILL")));
    assert_eq!(events(&outputs).last().unwrap()["reason"], "deadline");
}

#[tokio::test]
async fn too_much_output_ends_the_run() {
    let agent = script("text", "yes");
    let options = RunOptions { stdout_limit: 10_000, ..RunOptions::default() };
    let outputs = run(&agent, &hi(), &options).await;
    assert_eq!(end(&outputs).cause, Some(Cause::Limit));
    let events = events(&outputs);
    let said = events.iter().filter_map(|event| event["content"].as_str()).map(str::len);
    assert_eq!(said.sum::<usize>(), 10_000);
    assert_eq!(events.last().unwrap()["reason"], "limit");
}

#[tokio::test]
async fn stderr_is_bounded_and_loses_its_colours() {
    let text = r"printf '\033[31mred\033[0m\n' >&2; head -c 100000 /dev/zero | tr '\0' x >&2";
    let options = RunOptions { stderr_limit: 1000, ..RunOptions::default() };
    let outputs = run(&script("text", text), &hi(), &options).await;
    let events = events(&outputs);
    let told: Vec<_> = events.iter().filter(|event| event["type"] == "stderr").collect();
    let texts: Vec<_> = told.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["red", "more was written to stderr than is told here"]);
}

#[tokio::test]
async fn a_receiver_that_goes_away_ends_the_run() {
    let (agent, abort) = (script("text", "yes"), CancellationToken::new());
    let (sender, mut receiver) = mpsc::channel(1);
    let leave = async move {
        receiver.recv().await;
        drop(receiver);
    };
    let (request, options) = (hi(), RunOptions::default());
    let running = run_chat(&agent, &request, &options, &abort, sender);
    let (exit, ()) = timeout(HANG, async { tokio::join!(running, leave) }).await.unwrap();
    assert_eq!(exit.cause, Some(Cause::Aborted));
}

#[tokio::test]
async fn what_cannot_start_still_has_a_result() {
    let missing = CodexAgent::new(Located {
        path: "/no/such/codex".into(),
        via: Via::Given,
        shim: None,
        tools: None,
    });
    let empty = script("text", "true");
    let request = |message: &str| ChatRequest::new(message);
    let table: [(&dyn ChatAgent, ChatRequest, &str); 3] = [
        (&missing, request("hi"), "cannot start `/no/such/codex`: No such file or directory"),
        (&empty, request(" "), "`script` cannot take the request: the message is empty"),
        (
            &missing,
            ChatRequest { session_id: Some("--last".into()), ..request("hi") },
            "`codex` cannot take the request: the session id is empty or begins with `-`",
        ),
    ];
    for (agent, request, why) in table {
        let outputs = run(agent, &request, &RunOptions::default()).await;
        assert_eq!(end(&outputs).cause, Some(Cause::NotStarted));
        let result = events(&outputs).pop().unwrap();
        assert_eq!(result["reason"], "not_started");
        let error = result["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("the run did not start: {why}")), "{error}");
    }
}

#[tokio::test]
async fn a_run_aborted_before_it_starts_does_not_start() {
    let (agent, abort) = (script("text", "true"), CancellationToken::new());
    abort.cancel();
    let (sender, mut receiver) = mpsc::channel(8);
    let (request, options) = (hi(), RunOptions::default());
    let exit = run_chat(&agent, &request, &options, &abort, sender).await;
    assert_eq!(exit.cause, Some(Cause::Aborted));
    assert!(!matches!(receiver.recv().await, Some(Output::Started { .. })));
}

#[tokio::test]
async fn gemini_reads_its_prompt_from_stdin_and_passes_through() {
    let folder = TempDir::new().unwrap();
    let program = executable(
        folder.path(),
        "#!/bin/sh\necho 'Loaded cached credentials.' >&2\n\
         printf '{\"type\":\"init\",\"args\":\"%s\",\"prompt\":\"%s\"}\\n' \"$*\" \"$(cat)\"\n",
    );
    let agent = GeminiAgent { program, ..GeminiAgent::default() };
    let request = ChatRequest { session_id: Some("s1".into()), ..ChatRequest::new("-say hi") };
    let outputs = run(&agent, &request, &RunOptions::default()).await;
    let args = "--output-format stream-json --approval-mode yolo --sandbox false --resume s1";
    let want = json!({ "type": "init", "args": args, "prompt": "-say hi" });
    assert_eq!(events(&outputs), [want]);
}

fn executable(folder: &Path, text: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("gemini");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn parts_come_from_text_too() {
    let options = RunOptions { form: Form::Parts, ..RunOptions::default() };
    let outputs = run(&script("text", "cat"), &hi(), &options).await;
    let kinds: Vec<_> =
        events(&outputs).iter().map(|part| part["type"].as_str().unwrap().to_owned()).collect();
    let want =
        ["stream-start", "response-metadata", "text-start", "text-delta", "text-end", "finish"];
    assert_eq!(kinds, want);
}

#[test]
fn secrets_of_the_environment_are_not_shown() {
    let env = vec![("CODEX_API_KEY".into(), "sk-secret".into())];
    let request = ChatRequest { env, ..hi() };
    let command = script("pass", "true").command(&request).unwrap();
    let shown = format!("{request:?} {command:?}");
    assert!(shown.contains("CODEX_API_KEY") && !shown.contains("sk-secret"), "{shown}");
    let options = RunOptions { form: Form::Ndjson(Dialect::Compat), ..RunOptions::default() };
    assert!(!format!("{options:?}").contains("sk-secret"));
}
