//! Steps of the AI SDK on the real Codex: tools the caller runs, approvals the caller gives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_client::answerer::ByToken;
use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::compaction::Compaction;
use bindery_client::model::{LanguageModel, ModelSettings, Step};
use bindery_client::packet_log::PacketLog;
use bindery_client::tools::{Output, Tool, ToolSet};
use bindery_core::call::CallOptions;
use bindery_core::interrupt::{Answer, Ask};
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script, Step as Say};
use serde_json::{Value, json};

use crate::backend::asked_about;
use crate::stage::{Stage, Told, launch};

fn settings(stage: &Stage) -> ModelSettings {
    let cwd = Some(stage.codex.project().display().to_string());
    ModelSettings {
        thread: ThreadSettings { cwd, ..ThreadSettings::default() },
        ..ModelSettings::default()
    }
}

fn tools(names: &[&str]) -> Value {
    let tool = |name: &&str| {
        json!({ "type": "function", "name": name, "description": name,
            "inputSchema": { "type": "object", "properties": {} } })
    };
    names.iter().map(tool).collect()
}

async fn start(model: &LanguageModel, options: Value) -> Step {
    let options: CallOptions = serde_json::from_value(options).unwrap();
    model.stream(&options).await.unwrap().turn
}

async fn step(model: &LanguageModel, options: Value) -> Told {
    let mut step = start(model, options).await;
    let mut parts = Vec::new();
    while let Some(part) =
        tokio::time::timeout(Duration::from_secs(120), step.next()).await.expect("a hang")
    {
        parts.push(part);
    }
    Told { parts }
}

/// A prompt in which the assistant has called tools and the caller answers.
fn answered(thread: &Value, user: &str, results: &[(&str, &str, &str)]) -> Value {
    let calls: Vec<Value> = (results.iter())
        .map(|(id, name, _)| {
            json!({ "type": "tool-call", "toolCallId": id, "toolName": name, "input": {},
            "providerOptions": { "codex": { "threadId": thread } } })
        })
        .collect();
    let outputs: Vec<Value> = (results.iter())
        .map(|(id, name, text)| {
            json!({ "type": "tool-result", "toolCallId": id, "toolName": name,
            "output": { "type": "text", "value": text } })
        })
        .collect();
    json!([
        { "role": "user", "content": user },
        { "role": "assistant", "content": calls },
        { "role": "tool", "content": outputs },
    ])
}

fn thread_of(told: &Told) -> Value {
    told.generated().provider_metadata.unwrap()["codex"]["threadId"].clone()
}

fn calls(told: &Told) -> Vec<(String, String)> {
    let calls = told.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) if !call.provider_executed => {
            Some((call.tool_name.clone(), call.tool_call_id.to_string()))
        }
        _ => None,
    });
    calls.collect()
}

async fn parallel_tools_of_the_caller_run_over_two_steps_and_usage_adds_up() {
    let stage = Stage::free(vec![
        Reply::new([Say::call("red", json!({}), "c1"), Say::call("blue", json!({}), "c2")]),
        Reply::text("purple"),
    ])
    .await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let tools = tools(&["red", "blue"]);
    let prompt = json!([{ "role": "user", "content": "mix" }]);
    let first = step(&model, json!({ "prompt": prompt, "tools": tools })).await;
    assert_eq!(first.end(), Unified::ToolCalls);
    // Codex asks for parallel calls in whatever order they come to run.
    let mut asked = calls(&first);
    asked.sort();
    assert_eq!(asked, [("blue".into(), "c2".into()), ("red".into(), "c1".into())]);
    let results = [("c2", "blue", "#00f"), ("c1", "red", "#f00")];
    let prompt = answered(&thread_of(&first), "mix", &results);
    let second = step(&model, json!({ "prompt": prompt, "tools": tools })).await;
    assert_eq!((second.text().as_str(), second.end()), ("purple", Unified::Stop));
    let used = |told: &Told| told.generated().usage.unwrap().input_tokens.total.unwrap_or(0);
    assert_eq!(used(&first) + used(&second), 200);
    let heard = stage.model.bodies()[1]["input"].to_string();
    assert!(heard.contains("#f00") && heard.contains("#00f"), "{heard}");
}

async fn tools_work_after_a_call_without_tools() {
    let stage = Stage::free(vec![
        Reply::text("hello"),
        Reply::new([Say::call("now", json!({}), "c1")]),
        Reply::text("noon"),
    ])
    .await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let prompt = json!([{ "role": "user", "content": "hi" }]);
    assert_eq!(step(&model, json!({ "prompt": prompt })).await.text(), "hello");
    let tools = tools(&["now"]);
    let first = step(&model, json!({ "prompt": prompt, "tools": tools })).await;
    assert_eq!(calls(&first), [("now".into(), "c1".into())]);
    let prompt = answered(&thread_of(&first), "hi", &[("c1", "now", "12:00")]);
    let second = step(&model, json!({ "prompt": prompt, "tools": tools })).await;
    assert_eq!(second.text(), "noon");
}

async fn three_users_with_tools_pending_never_see_each_other() {
    let reply = |user: &str| {
        [
            Reply::text(&format!("for {user} alone")).when_input(&format!("secret of {user}")),
            Reply::new([Say::call("who", json!({}), &format!("call_{user}"))])
                .when_input(&format!("I am {user}")),
        ]
    };
    let script: Vec<Reply> = ["ann", "bob", "cid"].iter().flat_map(|user| reply(user)).collect();
    let stage = Stage::free(script).await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let tools = tools(&["who"]);
    let mut threads = Vec::new();
    for user in ["ann", "bob", "cid"] {
        let prompt = json!([{ "role": "user", "content": format!("I am {user}") }]);
        let told = step(&model, json!({ "prompt": prompt, "tools": tools })).await;
        assert_eq!(calls(&told), [("who".into(), format!("call_{user}"))]);
        threads.push((user, thread_of(&told)));
    }
    // Answered in another order than asked, two of them at once.
    let answer = async |(user, thread): &(&str, Value)| {
        let (call, secret) = (format!("call_{user}"), format!("secret of {user}"));
        let prompt = answered(thread, &format!("I am {user}"), &[(&call, "who", &secret)]);
        step(&model, json!({ "prompt": prompt, "tools": tools })).await.text()
    };
    let (cid, ann) = tokio::join!(answer(&threads[2]), answer(&threads[0]));
    assert_eq!((cid.as_str(), ann.as_str()), ("for cid alone", "for ann alone"));
    assert_eq!(answer(&threads[1]).await, "for bob alone");
}

async fn a_tool_never_answered_blocks_nobody() {
    let stage = Stage::free(vec![
        Reply::new([Say::call("slow", json!({}), "c1")]).when_user("stuck"),
        Reply::text("free").when_user("other"),
        Reply::text("moved on").when_user("never mind"),
    ])
    .await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let prompt = json!([{ "role": "user", "content": "stuck" }]);
    let stuck = step(&model, json!({ "prompt": prompt, "tools": tools(&["slow"]) })).await;
    assert_eq!(stuck.end(), Unified::ToolCalls);
    let prompt = json!([{ "role": "user", "content": "other" }]);
    assert_eq!(step(&model, json!({ "prompt": prompt })).await.text(), "free");
    // The same thread goes on too: the caller has something newer to say.
    let thread = thread_of(&stuck);
    let prompt = json!([{ "role": "user", "content": "never mind" }]);
    let options = json!({ "codex": { "threadId": thread } });
    let told = step(&model, json!({ "prompt": prompt, "providerOptions": options })).await;
    assert_eq!(told.text(), "moved on");
}

async fn an_approval_is_given_by_a_later_call() {
    let script = vec![
        Reply::new([Say::exec(asked_about(), "c1")]).when_after_tool(false),
        Reply::text("done"),
    ];
    for (approved, status) in [(true, "completed"), (false, "declined")] {
        let stage = Stage::with(Script::new(script.clone()), &Options::default()).await;
        let mut settings = settings(&stage);
        settings.answerer = Arc::new(ByToken);
        settings.thread.approval_policy = Some(json!("untrusted"));
        settings.thread.sandbox = Some("read-only".into());
        let model = LanguageModel::new(stage.server.clone(), settings);
        let prompt = json!([{ "role": "user", "content": "go" }]);
        let first = step(&model, json!({ "prompt": prompt })).await;
        assert_eq!(first.end(), Unified::ToolCalls);
        let asked = first.parts.iter().find_map(|part| match part {
            Part::ToolApprovalRequest { approval_id, .. } => Some(approval_id.clone()),
            _ => None,
        });
        let thread = thread_of(&first);
        let second = step(
            &model,
            json!({ "prompt": [
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "c1",
                "toolName": "codex_command_execution", "input": {}, "providerExecuted": true,
                "providerOptions": { "codex": { "threadId": thread } } }] },
            { "role": "tool", "content": [{ "type": "tool-approval-response",
                "approvalId": asked.unwrap(), "approved": approved }] } ] }),
        )
        .await;
        assert_eq!((second.text().as_str(), second.end()), ("done", Unified::Stop));
        let results = second.results("codex_command_execution");
        assert_eq!(results[0].result["status"], status);
    }
}

async fn answers_that_nobody_waits_for_are_an_error_with_a_hint() {
    let stage = Stage::free(Script::always("ok")).await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let thread = step(&model, json!({ "prompt": [{ "role": "user", "content": "hi" }] })).await;
    let prompt = answered(&thread_of(&thread), "hi", &[("c9", "gone", "x")]);
    let options: CallOptions = serde_json::from_value(json!({ "prompt": prompt })).unwrap();
    let err = model.stream(&options).await.unwrap_err();
    assert_eq!((err.code(), err.hint().is_some()), ("nothing_waits", true));
}

async fn our_own_tools_run_in_place_and_failures_go_back_to_the_model() {
    let stage = Stage::free(vec![
        Reply::new([
            Say::call("add", json!({ "a": 2, "b": 3 }), "c1"),
            Say::call("fail", json!({}), "c2"),
            Say::call("picture", json!({}), "c3"),
        ]),
        Reply::text("done"),
    ])
    .await;
    let any = || json!({ "type": "object", "properties": {} });
    let mut settings = settings(&stage);
    settings.tools = ToolSet::default()
        .with(
            "add",
            Tool::new("adds", any(), |call| async move {
                let number = |key: &str| call.input[key].as_i64().unwrap_or(0);
                Ok(Output::text((number("a") + number("b")).to_string()))
            }),
        )
        .with("fail", Tool::new("fails", any(), |_| async { Err("no such thing".to_owned()) }))
        .with(
            "picture",
            Tool::new("shows", any(), |_| async {
                let dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA\
                           DUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
                Ok(Output::text("a dot").and_image(dot))
            }),
        );
    let model = LanguageModel::new(stage.server.clone(), settings);
    let told = step(&model, json!({ "prompt": [{ "role": "user", "content": "go" }] })).await;
    assert_eq!((told.text().as_str(), told.end()), ("done", Unified::Stop));
    let add = &told.results("add")[0];
    assert_eq!((&add.result["success"], add.is_error), (&json!(true), false));
    assert!(told.results("fail")[0].is_error);
    let heard = stage.model.bodies()[1]["input"].to_string();
    for text in ["\"5\"", "no such thing", "a dot", "input_image"] {
        assert!(heard.contains(text), "{text}: {heard}");
    }
}

async fn an_interrupt_is_answered_by_token_once_and_marked_delivered() {
    let script = vec![Reply::new([Say::exec(asked_about(), "c1")]), Reply::text("done")];
    let stage = Stage::with(script, &Options::default()).await;
    let mut settings = settings(&stage);
    settings.answerer = Arc::new(ByToken);
    settings.deadlines.settle = None;
    settings.thread.approval_policy = Some(json!("untrusted"));
    let interrupts = settings.interrupts.clone();
    let model = LanguageModel::new(stage.server.clone(), settings);
    let mut turn = start(&model, json!({ "prompt": [{ "role": "user", "content": "go" }] })).await;
    let mut parts = Vec::new();
    let mut tokens = Vec::new();
    while let Some(part) = turn.next().await {
        if let Part::ToolApprovalRequest { approval_id, .. } = &part {
            let pending = interrupts.pending();
            assert!(matches!(&pending[0].ask, Ask::Command { .. }), "{pending:?}");
            let yes = || Answer::decision(bindery_core::interrupt::Decision::Accept);
            interrupts.answer(approval_id, yes()).unwrap();
            let again = interrupts.answer(approval_id, yes()).unwrap_err();
            assert_eq!(again.code(), "interrupt_answered");
            tokens.push(approval_id.clone());
        }
        parts.push(part);
    }
    assert_eq!(Told { parts }.text(), "done");
    let state = interrupts.get(&tokens[0]).unwrap().state;
    assert!(matches!(state, bindery_client::interrupts::State::Delivered(_)), "{state:?}");
}

async fn a_resumed_thread_is_compacted_before_its_turn_when_the_settings_say_so() {
    let mut stage = Stage::free(vec![
        Reply::text("one").when_user("first"),
        Reply::text("two").when_user("second"),
        Reply::text("a summary").always(),
    ])
    .await;
    let model = LanguageModel::new(stage.server.clone(), settings(&stage));
    let prompt = json!([{ "role": "user", "content": "first" }]);
    let thread = thread_of(&step(&model, json!({ "prompt": prompt })).await);
    drop(model);
    stage.reopen().await;
    let mut settings = settings(&stage);
    settings.compaction = Compaction::When(Arc::new(|opened| !opened.model.is_empty()));
    settings.strict_compaction = true;
    let model = LanguageModel::new(stage.server.clone(), settings);
    let prompt = json!([{ "role": "user", "content": "second" }]);
    let options = json!({ "codex": { "threadId": thread } });
    let told = step(&model, json!({ "prompt": prompt, "providerOptions": options })).await;
    assert_eq!(told.text(), "two");
    assert_eq!(stage.model.count(), 3);
    assert!(stage.model.bodies()[2]["input"].to_string().contains("a summary"));
}

async fn every_line_is_logged_with_secrets_masked() {
    let model = Model::start(Script::always("ok"));
    let codex = RealCodex::new(&model);
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = log.clone();
    let packet_log = Some(PacketLog::new(move |direction, line| {
        lines.lock().unwrap().push(format!("{direction:?} {line}"));
    }));
    let options = ConnectOptions { packet_log, ..ConnectOptions::default() };
    let server = AppServer::spawn(&launch(&codex), &options).await.unwrap();
    let _: Result<Value, _> =
        server.request("account/login/start", &json!({ "apiKey": "sk-very-secret-key" })).await;
    server.close().await;
    let log = log.lock().unwrap().join("\n");
    assert!(log.contains("Sent") && log.contains("initialize") && log.contains("userAgent"));
    assert!(log.contains("account/login/start") && !log.contains("very-secret"), "{log}");
}

crate::backend::on_both! {
    parallel_tools_of_the_caller_run_over_two_steps_and_usage_adds_up,
    tools_work_after_a_call_without_tools,
    three_users_with_tools_pending_never_see_each_other,
    a_tool_never_answered_blocks_nobody,
    an_approval_is_given_by_a_later_call,
    answers_that_nobody_waits_for_are_an_error_with_a_hint,
    our_own_tools_run_in_place_and_failures_go_back_to_the_model,
    an_interrupt_is_answered_by_token_once_and_marked_delivered,
    a_resumed_thread_is_compacted_before_its_turn_when_the_settings_say_so,
    every_line_is_logged_with_secrets_masked,
}
