//! The real `codex exec --json` through `run_chat`, with a scripted model behind it.

use std::time::Duration;

use bindery_client::locate::{Located, Via};
use bindery_client::run_chat::codex::CodexAgent;
use bindery_client::run_chat::{ChatRequest, Form, Joined, Output, RunOptions, run_chat};
use bindery_core::map::exec_to_ndjson::{Cause, Exit};
use bindery_core::ndjson::Tokens;
use bindery_core::part::Part;
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const HANG: Duration = Duration::from_secs(120);

/// A real Codex and its model.
struct Stage {
    codex: RealCodex,
    model: Model,
}

/// What came of a run.
struct Ran {
    events: Vec<Value>,
    exit: Exit,
}

impl Stage {
    fn new(script: impl Into<Script>, options: &Options) -> Self {
        let model = Model::start(script);
        let codex = RealCodex::with(&model, options);
        Self { codex, model }
    }

    fn agent(&self) -> CodexAgent {
        let path = self.codex.program().to_owned();
        CodexAgent::new(Located { path, via: Via::Given, shim: None, tools: None })
    }

    fn request(&self, message: &str) -> ChatRequest {
        let env = self.codex.env().into_iter();
        ChatRequest {
            cwd: Some(self.codex.project()),
            env: env.map(|(name, value)| (name.into(), value.into())).collect(),
            ..ChatRequest::new(message)
        }
    }

    async fn say(&self, message: &str) -> Ran {
        self.run(&self.agent(), &self.request(message)).await
    }

    async fn run(&self, agent: &CodexAgent, request: &ChatRequest) -> Ran {
        let abort = CancellationToken::new();
        self.run_until(agent, request, &abort, |_| {}).await
    }

    /// Runs to the end; every output is shown to `watch` first.
    async fn run_until(
        &self,
        agent: &CodexAgent,
        request: &ChatRequest,
        abort: &CancellationToken,
        mut watch: impl FnMut(&Output),
    ) -> Ran {
        let (sender, mut receiver) = mpsc::channel(16);
        let collect = async {
            let (mut joined, mut bytes) = (Joined::default(), Vec::new());
            while let Some(output) = receiver.recv().await {
                watch(&output);
                bytes.extend(joined.push(&output));
            }
            bytes
        };
        let options = RunOptions::default();
        let running = run_chat(agent, request, &options, abort, sender);
        let both = async { tokio::join!(running, collect) };
        let (exit, bytes) = timeout(HANG, both).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Ran { events, exit }.checked()
    }
}

impl Ran {
    /// What holds for every run.
    fn checked(self) -> Self {
        assert_eq!(self.of("result").len(), 1, "{:?}", self.events);
        assert_eq!(self.events.last().unwrap()["type"], "result");
        assert_eq!(self.of("unknown"), Vec::<&Value>::new());
        let ids = |kind| self.of(kind).iter().map(|e| e["tool_id"].clone()).collect::<Vec<_>>();
        let (mut calls, mut results) = (ids("tool_use"), ids("tool_result"));
        calls.sort_by_key(Value::to_string);
        results.sort_by_key(Value::to_string);
        assert_eq!(calls, results);
        self
    }

    fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    fn said(&self) -> Vec<&str> {
        let messages = self.of("message");
        messages.iter().map(|event| event["content"].as_str().unwrap()).collect()
    }

    fn result(&self) -> &Value {
        self.events.last().unwrap()
    }

    /// Status and reason.
    fn verdict(&self) -> (&str, &str) {
        let word = |key: &str| self.result()[key].as_str().unwrap();
        (word("status"), word("reason"))
    }

    fn session(&self) -> String {
        self.of("init")[0]["session_id"].as_str().unwrap().to_owned()
    }
}

const GOOD: (&str, &str) = ("success", "completed");

#[tokio::test]
async fn text_and_reasoning() {
    let reply = Reply::new([Step::reasoning(["**Thinking**"]), Step::text("Hello")]);
    let stage = Stage::new(vec![reply], &Options::default());
    let ran = stage.say("say hello").await;
    assert_eq!((ran.said(), ran.verdict()), (vec!["Hello"], GOOD));
    assert_eq!(ran.exit, Exit::code(0));
    // Codex also warns that its home is a temporary folder, which is true.
    let noise = |event: &&&Value| event["content"].as_str().unwrap().starts_with("Reading");
    assert_eq!(ran.of("stderr").iter().filter(noise).count(), 0);
    let usage = ran.of("usage")[0];
    assert_eq!(usage["turn"], usage["total"]);
    assert_eq!(usage["turn"]["input_tokens"], 100);
}

#[tokio::test]
async fn a_prompt_that_begins_with_a_hyphen() {
    let stage = Stage::new(Script::always("Hello"), &Options::default());
    let ran = stage.say("--version\n- and more\n").await;
    assert_eq!(ran.verdict(), GOOD);
    let body = stage.model.bodies()[0].to_string();
    assert!(body.contains("--version\\n- and more"), "{body}");
}

#[tokio::test]
async fn a_failing_command() {
    let replies =
        vec![Reply::new([Step::exec("echo oops >&2; exit 3", "c1")]), Reply::text("It failed")];
    let ran = Stage::new(replies, &Options::unrestricted()).say("try").await;
    assert_eq!((ran.said(), ran.verdict()), (vec!["It failed"], GOOD));
    let result = ran.of("tool_result")[0];
    assert_eq!(result["tool_name"], "codex_command_execution");
    let outcome = (&result["status"], &result["exit_code"], &result["output"]);
    assert_eq!(outcome, (&json!("error"), &json!(3), &json!("oops\n")));
}

#[tokio::test]
async fn a_patch() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n";
    let replies = vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("Done")];
    let stage = Stage::new(replies, &Options::unrestricted());
    let ran = stage.say("patch").await;
    assert_eq!(ran.verdict(), GOOD);
    let result = ran.of("tool_result")[0];
    let path = stage.codex.project().join("new.txt");
    assert_eq!(result["tool_name"], "codex_file_change");
    assert_eq!(result["output"], format!("add {}", path.display()));
    assert_eq!(result["status"], "success");
}

/// A stdio MCP server with one tool that adds and one that fails.
const MCP: &str = r#"
import { createInterface } from 'node:readline';
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
const tool = (name) => ({ name, description: name, inputSchema: { type: 'object' } });
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} },
      serverInfo: { name: 't', version: '1' } });
  } else if (method === 'tools/list') {
    say(id, { tools: [tool('add'), tool('boom')] });
  } else if (method === 'tools/call' && params.name === 'add') {
    const sum = params.arguments.a + params.arguments.b;
    say(id, { content: [{ type: 'text', text: String(sum) }] });
  } else if (method === 'tools/call') {
    say(id, { content: [{ type: 'text', text: 'boom failed' }], isError: true });
  } else if (id !== undefined) {
    say(id, {});
  }
});
"#;

#[tokio::test]
async fn mcp_tools() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("server.mjs");
    std::fs::write(&server, MCP).unwrap();
    let options = Options::unrestricted().mcp_server("t", "node", &[server.to_str().unwrap()]);
    let call = |name: &str, id: &str| {
        Reply::new([Step::call_in("mcp__t", name, json!({ "a": 2, "b": 3 }), id)])
    };
    let replies = vec![call("add", "c1"), call("boom", "c2"), Reply::text("Done")];
    let ran = Stage::new(replies, &options).say("add").await;
    assert_eq!(ran.verdict(), GOOD, "{:?}", ran.events);
    let results = ran.of("tool_result");
    let told: Vec<_> =
        results.iter().map(|r| json!([r["tool_name"], r["status"], r["output"]])).collect();
    let want =
        [json!(["mcp:t/add", "success", "5"]), json!(["mcp:t/boom", "error", "boom failed"])];
    assert_eq!(told, want);
    assert_eq!(ran.of("tool_use")[0]["parameters"], json!({ "a": 2, "b": 3 }));
}

#[tokio::test]
async fn a_plan() {
    let options = Options {
        tables: "[tools.update_plan]\nenabled = true\n".to_owned(),
        ..Options::default()
    };
    let plan = |status: &str, id: &str| {
        let steps = json!([{ "step": "look", "status": status }]);
        Reply::new([Step::call("update_plan", json!({ "plan": steps }), id)])
    };
    let replies = vec![plan("in_progress", "c1"), plan("completed", "c2"), Reply::text("Done")];
    let ran = Stage::new(replies, &options).say("plan").await;
    let plans: Vec<_> = ran.of("plan").iter().map(|plan| plan["items"].clone()).collect();
    let step = |done: bool| json!([{ "text": "look", "completed": done }]);
    assert_eq!(plans, [step(false), step(true)]);
}

#[tokio::test]
async fn a_web_search() {
    let steps = [Step::WebSearch { query: "rust sse".to_owned() }, Step::text("Found")];
    let ran = Stage::new(vec![Reply::new(steps)], &Options::default()).say("search").await;
    assert_eq!((ran.said(), ran.verdict()), (vec!["Found"], GOOD));
    let call = ran.of("tool_use")[0];
    assert_eq!(call["tool_name"], "codex_web_search");
    assert_eq!(call["parameters"]["query"], "rust sse");
    assert!(call["call_id"].is_string(), "the second `id`: {call}");
}

#[tokio::test]
async fn http_errors_fail_the_run_once() {
    #[rustfmt::skip]
    let table = [
        ("400", Step::status(400, "invalid_request_error", "bad thing")),
        ("401", Step::status(401, "invalid_api_key", "no key")),
        ("429", Step::usage_limit()),
        ("500", Step::status(500, "server_error", "broken")),
        ("cut", Step::Cut),
    ];
    for (name, step) in table {
        let script = Script::new([Reply::new([step]).always()]);
        let ran = Stage::new(script, &Options::default()).say("fail").await;
        assert_eq!(ran.verdict(), ("error", "failed"), "{name}: {:?}", ran.events);
        assert_eq!(ran.exit.code, Some(1), "{name}");
        let errors = ran.of("error");
        let fatal: Vec<_> = errors.iter().filter(|error| error["fatal"] == true).collect();
        assert_eq!(fatal.len(), 1, "{name}: {errors:?}");
        assert_eq!(fatal[0]["message"], ran.result()["error"], "{name}");
    }
}

#[tokio::test]
async fn a_retry_that_succeeds_is_a_warning() {
    let replies = vec![Reply::new([Step::Cut]), Reply::text("Hello")];
    let ran = Stage::new(replies, &Options::default()).say("retry").await;
    assert_eq!((ran.said(), ran.verdict()), (vec!["Hello"], GOOD));
    let notices = ran.of("stderr");
    let retries: Vec<_> = notices.iter().filter(|event| event["topic"] == "retry").collect();
    assert_eq!(retries.len(), 1, "{notices:?}");
    assert_eq!(retries[0]["severity"], "warning");
    assert_eq!(ran.of("error"), Vec::<&Value>::new());
}

/// A model that lets a command run for long, so that there is something to interrupt.
fn sleeping() -> Stage {
    let sleep = json!({ "cmd": "echo started; sleep 600", "yield_time_ms": 30000 });
    let replies = vec![Reply::new([Step::call("exec_command", sleep, "c1")]), Reply::text("Done")];
    Stage::new(replies, &Options::unrestricted())
}

/// The number of the process, once it runs a command.
fn at_command(output: &Output, pid: &mut Option<u32>) -> Option<u32> {
    match output {
        Output::Started { pid: started } => *pid = Some(*started),
        Output::Lines(lines) if String::from_utf8_lossy(lines).contains("tool_use") => {
            return *pid;
        }
        _ => {}
    }
    None
}

#[tokio::test]
async fn signals_from_outside() {
    for (signal, want_code, want_signal) in
        [(Signal::INT, Some(1), None), (Signal::TERM, None, Some("SIGTERM"))]
    {
        let stage = sleeping();
        let (agent, request) = (stage.agent(), stage.request("sleep"));
        let (abort, mut pid) = (CancellationToken::new(), None);
        let send = |output: &Output| {
            if let Some(pid) = at_command(output, &mut pid) {
                let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                kill_process(pid, signal).unwrap();
            }
        };
        let ran = stage.run_until(&agent, &request, &abort, send).await;
        let ended = (ran.exit.code, ran.exit.signal.as_deref());
        assert_eq!(ended, (want_code, want_signal), "{:?}", ran.events);
        assert_eq!(ran.result()["status"], "error");
        assert_eq!(ran.of("tool_result")[0]["status"], "error");
    }
}

#[tokio::test]
async fn an_abort_from_inside() {
    let stage = sleeping();
    let (agent, request) = (stage.agent(), stage.request("sleep"));
    let (abort, mut pid) = (CancellationToken::new(), None);
    let stop = |output: &Output| {
        if at_command(output, &mut pid).is_some() {
            abort.cancel();
        }
    };
    let ran = stage.run_until(&agent, &request, &abort, stop).await;
    assert_eq!(ran.verdict(), ("error", "aborted"));
    assert_eq!(ran.exit.cause, Some(Cause::Aborted));
    assert_eq!(ran.of("tool_result")[0]["state"], "aborted");
}

#[tokio::test]
async fn a_resumed_thread_counts_its_own_tokens() {
    let stage = Stage::new(Script::always("Hello"), &Options::default());
    let first = stage.say("one").await;
    let total: Tokens = serde_json::from_value(first.of("usage")[0]["total"].clone()).unwrap();
    let request = ChatRequest { session_id: Some(first.session()), ..stage.request("two") };
    let agent = CodexAgent { baseline: Some(total), ..stage.agent() };
    let second = stage.run(&agent, &request).await;
    assert_eq!(second.verdict(), GOOD, "{:?}", second.events);
    assert_eq!(second.session(), first.session());
    let usage = second.of("usage")[0];
    let counts = |key: &str| usage[key]["input_tokens"].clone();
    assert_eq!((counts("turn"), counts("total")), (json!(100), json!(200)));
    let unknown = stage.run(&stage.agent(), &request).await;
    assert_eq!(unknown.of("usage")[0].get("turn"), None);
}

#[tokio::test]
async fn an_unknown_thread_to_resume() {
    let stage = Stage::new(Script::always("Hello"), &Options::default());
    let id = "01a1e0d5-f2ca-7473-90d7-6d5e624bd35a";
    let request = ChatRequest { session_id: Some(id.to_owned()), ..stage.request("go on") };
    let ran = stage.run(&stage.agent(), &request).await;
    assert_eq!((ran.verdict(), ran.exit.code), (("error", "exit"), Some(1)));
    let error = ran.result()["error"].as_str().unwrap();
    assert!(error.contains(id), "the last words tell why: {error}");
}

#[tokio::test]
async fn a_missing_program() {
    let stage = Stage::new(Script::always("Hello"), &Options::default());
    let mut agent = stage.agent();
    agent.codex.path = stage.codex.project().join("no-codex");
    let ran = stage.run(&agent, &stage.request("hi")).await;
    assert_eq!(ran.verdict(), ("error", "not_started"));
    assert_eq!((ran.exit.code, ran.exit.cause), (None, Some(Cause::NotStarted)));
}

#[tokio::test]
async fn the_same_run_as_parts() {
    let replies = vec![Reply::new([Step::exec("echo hi", "c1")]), Reply::text("Done")];
    let stage = Stage::new(replies, &Options::unrestricted());
    let (abort, (sender, mut receiver)) = (CancellationToken::new(), mpsc::channel(16));
    let options = RunOptions { form: Form::Parts, ..RunOptions::default() };
    let (agent, request) = (stage.agent(), stage.request("hi"));
    let collect = async {
        let mut parts = Vec::new();
        while let Some(output) = receiver.recv().await {
            if let Output::Parts(more) = output {
                parts.extend(more);
            }
        }
        parts
    };
    let running = run_chat(&agent, &request, &options, &abort, sender);
    let (_, parts) = timeout(HANG, async { tokio::join!(running, collect) }).await.unwrap();
    assert!(matches!(parts[0], Part::StreamStart { .. }));
    let result = parts.iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(&result.result),
        _ => None,
    });
    let want = json!({ "status": "completed", "aggregatedOutput": "hi\n", "exitCode": 0 });
    assert_eq!(result, Some(&want));
    assert!(matches!(parts.last(), Some(Part::Finish { .. })));
}
