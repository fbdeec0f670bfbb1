//! MCP servers: well-behaved, slow, dying and greedy ones.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bindery_engine::item::{FunctionCall, Item};
use bindery_engine::mcp::{ServerSettings, Way};
use bindery_engine::model::{ModelEvent, ToolSpec};
use bindery_engine::outlet::Refusal;
use bindery_engine::thread::{Approval, Sandbox};
use bindery_testkit::skipped::report_skipped;
use bindery_testkit::tls::{self, Front};
use serde_json::{Value, json};

use crate::stage::{Act, PATIENCE, Setting, Stage, say};

/// Whether the small server can run here at all; a test that needs it says so where it cannot.
fn no_python() -> bool {
    let missing = std::process::Command::new("python3").arg("--version").output().is_err();
    if missing {
        report_skipped("there is no Python here to run the MCP server with");
    }
    missing
}

/// The small server, in one of its modes.
fn server(name: &str, args: &[&str]) -> ServerSettings {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let script = script.display().to_string();
    let args = std::iter::once(script.as_str()).chain(args.iter().copied());
    let mut env = BTreeMap::from([("SHOWN".to_owned(), "from the settings".to_owned())]);
    for name in ["PATH", "HOME"] {
        env.extend(std::env::var(name).map(|value| (name.to_owned(), value)));
    }
    ServerSettings {
        name: name.to_owned(),
        enabled: true,
        way: Way::Stdio {
            command: "python3".to_owned(),
            args: args.map(str::to_owned).collect(),
            env,
            cwd: None,
        },
        startup_timeout: PATIENCE,
        tool_timeout: PATIENCE,
        enabled_tools: None,
        disabled_tools: vec!["secret".to_owned()],
    }
}

fn with(server: ServerSettings, script: Vec<Vec<Act>>) -> Setting {
    Setting::new(script).change(move |settings| settings.mcp = vec![server])
}

fn act(tool: &str, arguments: &Value) -> Act {
    let item = Item::FunctionCall(FunctionCall {
        id: None,
        name: tool.to_owned(),
        namespace: Some("mcp__toy".to_owned()),
        arguments: arguments.to_string(),
        call_id: "c1".to_owned(),
        extra_content: None,
    });
    Act::Tell(ModelEvent::ItemDone(item.into()))
}

/// Calls one tool and gives the stage, the item and what the model was answered.
async fn called(setting: Setting) -> (Stage, Value, String) {
    let stage = setting.open();
    stage.turn("go").await;
    let item = done(&stage);
    let input = stage.input(1);
    let output = input
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["call_id"] == "c1" && item["type"] == "function_call_output");
    let output = output.map(|item| item["output"].clone()).unwrap_or_default();
    let output = output.as_str().map(str::to_owned).unwrap_or_else(|| output.to_string());
    (stage, item, output)
}

fn done(stage: &Stage) -> Value {
    let heard = stage.ears.heard.lock().unwrap();
    let done = heard.iter().rev().find(|(method, params)| {
        *method == "item/completed" && params["item"]["type"] == "mcpToolCall"
    });
    done.map(|(_, params)| params["item"].clone()).unwrap_or_default()
}

fn yes(method: &str, _: &Value) -> Option<Result<Value, Refusal>> {
    (method == "mcpServer/elicitation/request").then(|| Ok(json!({ "action": "accept" })))
}

/// Everything behind the head of an answer.
fn body(output: &str) -> &str {
    assert!(output.starts_with("Wall time: "), "{output}");
    output.split_once("\nOutput:\n").expect("a head").1
}

#[tokio::test]
async fn a_call_reads_as_codex_tells_it() {
    if no_python() {
        return;
    }
    let script = vec![vec![act("add", &json!({ "a": 2, "b": 3 }))], say("5")];
    let (stage, item, output) = called(with(server("toy", &[]), script).answer(yes)).await;
    insta::assert_snapshot!(stage.sketch().join("\n"), @r#"
    thread/status/changed active[]
    turn/started
    mcpServer/startupStatus/updated
    mcpServer/startupStatus/updated
    item/started userMessage
    item/completed userMessage
    item/started mcpToolCall inProgress
    thread/status/changed active["waitingOnApproval"]
    mcpServer/elicitation/request
    thread/status/changed active[]
    item/mcpToolCall/progress
    item/completed mcpToolCall completed
    thread/tokenUsage/updated 120 of 120
    item/started agentMessage
    item/agentMessage/delta ""
    item/agentMessage/delta "5"
    item/completed agentMessage 5
    thread/tokenUsage/updated 120 of 240
    thread/status/changed idle
    turn/completed completed
    "#);
    assert_eq!(item["result"]["content"], json!([{ "type": "text", "text": "5" }]));
    assert_eq!((&item["server"], &item["tool"]), (&json!("toy"), &json!("add")));
    assert_eq!(body(&output), "5");
    let asked = stage.wait("mcpServer/elicitation/request", 0).await;
    assert_eq!(asked["_meta"]["codex_approval_kind"], "mcp_tool_call");
    assert_eq!(asked["_meta"]["tool_params"], json!({ "a": 2, "b": 3 }));
    let requests = stage.model.requests.lock().unwrap();
    let groups = requests[0].tools.iter().filter_map(|tool| match tool {
        ToolSpec::Namespace { name, tools, .. } => Some((name.as_str(), tools.len())),
        _ => None,
    });
    assert_eq!(groups.collect::<Vec<_>>(), [("mcp__toy", 9)], "all but the disabled one");
}

#[tokio::test]
async fn only_a_yes_is_one_and_it_can_be_for_the_session() {
    if no_python() {
        return;
    }
    let add = || vec![act("add", &json!({ "a": 2, "b": 3 }))];
    let no = [
        Ok(json!({ "action": "decline" })),
        Ok(json!({})),
        Ok(json!({ "decision": "accept" })),
        Err(Refusal { why: "nobody is there".to_owned() }),
    ];
    for answer in no {
        let setting = with(server("toy", &[]), vec![add(), say("ok")]);
        let (_, item, output) = called(setting.answer(move |_, _| Some(answer.clone()))).await;
        assert_eq!(item["status"], "failed", "{item}");
        assert!(!output.contains("Output:"), "{output}");
    }
    let session = json!({ "action": "accept", "_meta": { "persist": "session" } });
    let setting = with(server("toy", &[]), vec![add(), add(), say("ok")]);
    let (stage, item, _) = called(setting.answer(move |_, _| Some(Ok(session.clone())))).await;
    assert_eq!(item["status"], "completed", "{item}");
    assert_eq!(stage.count("mcpServer/elicitation/request"), 1);
    let setting = with(server("toy", &[]), vec![add(), say("ok")]);
    let stage = setting.answer(|_, _| Some(Ok(json!({ "action": "cancel" })))).open();
    assert_eq!(stage.turn("go").await["status"], "interrupted");
    assert_eq!(done(&stage)["status"], "failed");
}

#[tokio::test]
async fn who_is_never_asked_may_only_read() {
    if no_python() {
        return;
    }
    for (tool, sandbox, status) in [
        ("add", Sandbox::workspace(), "failed"),
        ("look", Sandbox::workspace(), "completed"),
        ("add", Sandbox::DangerFullAccess, "completed"),
    ] {
        let script = vec![vec![act(tool, &json!({ "a": 2, "b": 3 }))], say("ok")];
        let toy = server("toy", &[]);
        let setting = Setting::new(script).change(move |settings| {
            settings.mcp = vec![toy];
            settings.standing.approval = Approval::Never;
            settings.standing.sandbox = sandbox;
        });
        let (stage, item, _) = called(setting).await;
        assert_eq!(item["status"], status, "{tool}: {item}");
        assert_eq!(stage.count("mcpServer/elicitation/request"), 0);
    }
}

#[tokio::test]
async fn results_of_every_kind_reach_the_model() {
    if no_python() {
        return;
    }
    let table = [
        ("structured", "completed", r#"{"sum":5}"#),
        ("wrong", "failed", "no such thing"),
        ("look", "completed", "from the settings"),
    ];
    for (tool, status, want) in table {
        let script = vec![vec![act(tool, &json!({}))], say("ok")];
        let (_, item, output) = called(with(server("toy", &[]), script).answer(yes)).await;
        assert_eq!((&item["status"], body(&output)), (&json!(status), want), "{tool}");
    }
    let script = vec![vec![act("picture", &json!({}))], say("ok")];
    let (_, _, output) = called(with(server("toy", &[]), script).answer(yes)).await;
    assert!(output.contains("data:image/png;base64,AAAA"), "{output}");
}

#[tokio::test]
async fn a_huge_result_is_cut() {
    if no_python() {
        return;
    }
    let script = vec![vec![act("huge", &json!({ "a": 3_000_000 }))], say("ok")];
    let (_, item, output) = called(with(server("toy", &[]), script).answer(yes)).await;
    assert_eq!(item["status"], "completed");
    let kept = item["result"]["content"][0]["text"].as_str().unwrap().len();
    assert!(kept < 1_100_000 && output.len() < 20_000, "{kept} {}", output.len());
    assert!(output.contains("truncated"), "{}", &output[..200]);
}

#[tokio::test]
async fn a_tool_that_hangs_is_left_and_the_turn_goes_on() {
    if no_python() {
        return;
    }
    let toy = ServerSettings { tool_timeout: Duration::from_millis(300), ..server("toy", &[]) };
    let script = vec![vec![act("hang", &json!({}))], say("ok")];
    let (_, item, output) = called(with(toy, script).answer(yes)).await;
    assert_eq!(item["status"], "failed");
    assert_eq!(output, "the tool took longer than 0.3 s");
}

#[tokio::test]
async fn a_server_that_dies_is_told_and_comes_back() {
    if no_python() {
        return;
    }
    let crash = vec![act("crash", &json!({}))];
    let add = vec![act("add", &json!({ "a": 2, "b": 3 }))];
    let script = vec![crash, say("hm"), add, say("ok")];
    let (stage, item, output) = called(with(server("toy", &[]), script).answer(yes)).await;
    assert_eq!(item["status"], "failed");
    assert!(output.starts_with("the MCP server `toy` is gone"), "{output}");
    stage.turn("again").await;
    assert_eq!(done(&stage)["status"], "completed");
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_notice() {
    if no_python() {
        return;
    }
    let nowhere = Way::Stdio {
        command: "/nowhere/at/all".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
    };
    let silent = Duration::from_millis(300);
    let table = [
        (ServerSettings { way: nowhere, ..server("toy", &[]) }, "cannot run `/nowhere/at/all`"),
        (ServerSettings { startup_timeout: silent, ..server("toy", &["silent"]) }, "longer than"),
        (server("toy", &["broken"]), "no cheese at all"),
    ];
    for (toy, want) in table {
        let stage = with(toy, vec![say("hello")]).open();
        assert_eq!(stage.turn("go").await["status"], "completed");
        let told = stage.wait("mcpServer/startupStatus/updated", 1).await;
        assert_eq!(told["status"], "failed", "{told}");
        assert!(told["error"].as_str().unwrap().contains(want), "{told}");
        stage.turn("again").await;
        assert_eq!(stage.count("mcpServer/startupStatus/updated"), 2, "it is not tried again");
    }
}

#[tokio::test]
async fn rubbish_before_the_protocol_is_passed_over() {
    if no_python() {
        return;
    }
    let script = vec![vec![act("look", &json!({}))], say("ok")];
    let (_, item, _) = called(with(server("toy", &["rubbish"]), script)).await;
    assert_eq!(item["status"], "completed", "{item}");
}

/// A server over HTTP; ends with the test.
struct Http {
    child: std::process::Child,
    url: String,
}

impl Http {
    fn start() -> Self {
        let Way::Stdio { command, args, env, .. } = server("toy", &["http"]).way else { panic!() };
        let mut command = std::process::Command::new(command);
        command.args(args).env_clear().envs(env).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_server_over_http_needs_its_key() {
    if no_python() {
        return;
    }
    let http = Http::start();
    for (key, status) in [("Bearer token", "ready"), ("Bearer other", "failed")] {
        let headers = BTreeMap::from([("authorization".to_owned(), key.to_owned())]);
        let way = Way::Http { url: http.url.clone(), headers, authority: None };
        let script = vec![vec![act("look", &json!({}))], say("ok")];
        let stage = with(ServerSettings { way, ..server("toy", &[]) }, script).open();
        stage.turn("go").await;
        let told = stage.wait("mcpServer/startupStatus/updated", 1).await;
        assert_eq!(told["status"], status, "{told}");
        if status == "ready" {
            assert_eq!(done(&stage)["result"]["content"][0]["text"], "over HTTP");
        }
    }
}

#[tokio::test]
async fn a_server_over_tls_needs_an_authority_that_is_named() {
    if no_python() {
        return;
    }
    let http = Http::start();
    let front = Front::before(&http.url);
    let url = front.base_url().replace("/v1", "/mcp");
    let ours = Some(tls::file("ca.pem"));
    let missing = Some(tls::file("nowhere.pem"));
    for (authority, status) in [(ours, "ready"), (None, "failed"), (missing, "failed")] {
        let headers = BTreeMap::from([("authorization".to_owned(), "Bearer token".to_owned())]);
        let way = Way::Http { url: url.clone(), headers, authority: authority.clone() };
        let script = vec![vec![act("look", &json!({}))], say("ok")];
        let stage = with(ServerSettings { way, ..server("toy", &[]) }, script).open();
        assert_eq!(stage.turn("go").await["status"], "completed", "{authority:?}");
        let told = stage.wait("mcpServer/startupStatus/updated", 1).await;
        assert_eq!(told["status"], status, "{authority:?}: {told}");
        if status == "ready" {
            assert_eq!(done(&stage)["result"]["content"][0]["text"], "over HTTP");
        } else {
            let why = told["error"].as_str().unwrap();
            assert!(why.contains("CODEX_CA_CERTIFICATE"), "{authority:?}: {why}");
        }
    }
}

#[tokio::test]
async fn a_question_of_the_server_goes_to_the_client() {
    if no_python() {
        return;
    }
    let script = vec![vec![act("ask", &json!({}))], say("ok")];
    let toy = ServerSettings { tool_timeout: Duration::from_secs(30), ..server("toy", &[]) };
    let setting = with(toy, script).answer(|_, params| {
        let named = params["message"] == "Who are you?";
        let content = if named { json!({ "name": "Ada" }) } else { json!({}) };
        Some(Ok(json!({ "action": "accept", "content": content })))
    });
    let (stage, item, output) = called(setting).await;
    assert_eq!(item["status"], "completed", "{item}");
    let told: Value = serde_json::from_str(body(&output)).unwrap();
    assert_eq!(told, json!({ "action": "accept", "content": { "name": "Ada" } }));
    let asked = stage.wait("mcpServer/elicitation/request", 1).await;
    assert_eq!((&asked["serverName"], &asked["mode"]), (&json!("toy"), &json!("form")));
    assert!(asked["requestedSchema"]["properties"]["name"].is_object(), "{asked}");
}

#[tokio::test]
async fn an_interrupt_leaves_no_question_open() {
    if no_python() {
        return;
    }
    let script = vec![vec![act("ask", &json!({}))], say("ok")];
    let setting = with(server("toy", &[]), script).answer(|_, params| {
        (params["message"] != "Who are you?").then(|| Ok(json!({ "action": "accept" })))
    });
    let stage = setting.open();
    let turn = stage.thread.start_turn(bindery_engine::thread::TurnInput::text("go"));
    let turn = turn.await.unwrap();
    stage.wait("mcpServer/elicitation/request", 1).await;
    stage.thread.interrupt(&turn).await.unwrap();
    assert_eq!(stage.ended(0).await["status"], "interrupted");
    let settled = async {
        while *stage.ears.open.lock().unwrap() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("the question is still open");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_server_started_ends_with_the_thread() {
    if no_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let stage = with(server("toy", &["family", file.to_str().unwrap()]), vec![say("hi")]).open();
    stage.turn("go").await;
    let pids = std::fs::read_to_string(&file).unwrap();
    let pids: Vec<PathBuf> = pids.split(' ').map(|pid| PathBuf::from("/proc").join(pid)).collect();
    assert!(pids.iter().all(|pid| pid.exists()), "{pids:?}");
    tokio::time::timeout(PATIENCE, stage.thread.close()).await.expect("it closes");
    let dead = |pid: &PathBuf| {
        let state = std::fs::read_to_string(pid.join("stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    let gone = async {
        while !pids.iter().all(dead) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they live on");
}
