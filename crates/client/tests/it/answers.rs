//! What a call of the AI SDK is told: all calls of a response in one step, an end to what it stops.

use std::time::Duration;

use bindery_client::model::{LanguageModel, ModelSettings};
use bindery_core::call::CallOptions;
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::model::{Reply, Step as Say};
use serde_json::{Value, json};

use crate::stage::{Stage, Told};

fn model(stage: &Stage) -> LanguageModel {
    let cwd = Some(stage.codex.project().display().to_string());
    let thread = ThreadSettings { cwd, ..ThreadSettings::default() };
    LanguageModel::new(stage.server.clone(), ModelSettings { thread, ..ModelSettings::default() })
}

fn call(user: &str, thread: Option<&Value>) -> CallOptions {
    let tool = |name: &str| {
        json!({ "type": "function", "name": name, "description": name,
            "inputSchema": { "type": "object", "properties": {} } })
    };
    let own = thread.map(|thread| json!({ "threadId": thread })).unwrap_or(json!({}));
    let options = json!({
        "prompt": [{ "role": "user", "content": user }],
        "tools": [tool("red"), tool("blue")],
        "providerOptions": { "codex": own },
    });
    serde_json::from_value(options).unwrap()
}

async fn step(model: &LanguageModel, options: &CallOptions) -> Told {
    let mut step = model.stream(options).await.unwrap().turn;
    let mut parts = Vec::new();
    while let Some(part) =
        tokio::time::timeout(Duration::from_secs(60), step.next()).await.expect("a hang")
    {
        parts.push(part);
    }
    Told { parts }
}

fn calls(told: &Told) -> Vec<String> {
    let calls = told.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) if !call.provider_executed => Some(call.tool_call_id.to_string()),
        _ => None,
    });
    calls.collect()
}

/// A model that thinks for longer between two calls than a step takes to settle.
fn slow() -> Reply {
    let (red, blue) = (Say::call("red", json!({}), "c1"), Say::call("blue", json!({}), "c2"));
    Reply::new([red, Say::Delay { ms: 400 }, blue]).when_user("mix")
}

async fn a_slow_models_calls_are_one_step() {
    let stage = Stage::free(vec![slow()]).await;
    let told = step(&model(&stage), &call("mix", None)).await;
    assert_eq!((calls(&told), told.end()), (vec!["c1".into(), "c2".into()], Unified::ToolCalls));
}

async fn a_slow_models_calls_are_one_step_in_a_thread_of_another_process() {
    let mut stage = Stage::free(vec![Reply::text("hi").when_user("hello"), slow()]).await;
    let first = step(&model(&stage), &call("hello", None)).await;
    let thread = first.generated().provider_metadata.unwrap()["codex"]["threadId"].clone();
    stage.reopen().await;
    let told = step(&model(&stage), &call("mix", Some(&thread))).await;
    assert_eq!((calls(&told), told.end()), (vec!["c1".into(), "c2".into()], Unified::ToolCalls));
}

async fn a_call_of_a_response_that_was_cut_off_is_asked_all_the_same() {
    let cut = Reply::new([Say::call("red", json!({}), "c1"), Say::Cut]).when_user("mix");
    let stage = Stage::free(vec![cut]).await;
    let told = step(&model(&stage), &call("mix", None)).await;
    assert_eq!((calls(&told), told.end()), (vec!["c1".into()], Unified::ToolCalls));
}

#[cfg(unix)]
async fn a_stopped_turn_ends_its_command_and_leaves_those_of_earlier_turns() {
    let stage = Stage::free(vec![
        Reply::new([Say::call(
            "exec_command",
            json!({ "cmd": "echo $$ > earlier; exec sleep 600", "yield_time_ms": 250 }),
            "c0",
        )])
        .when_user("serve"),
        Reply::text("it runs").when_after_tool(true),
        Reply::new([Say::exec("echo $$ > pid; exec sleep 600", "c1")]).when_user("run"),
    ])
    .await;
    let model = model(&stage);
    let first = step(&model, &call("serve", None)).await;
    assert_eq!(first.text(), "it runs");
    // Left running on purpose: that is no failure.
    let left = &first.results("codex_command_execution")[0];
    assert_eq!((&left.result["status"], left.is_error), (&json!("running"), false));
    let thread = first.generated().provider_metadata.unwrap()["codex"]["threadId"].clone();
    let running = model.stream(&call("run", Some(&thread))).await.unwrap();
    let process = written(&stage, "pid").await;
    drop(running);
    crate::stdio::assert_dies(process).await;
    let earlier = written(&stage, "earlier").await;
    assert!(std::path::Path::new(&format!("/proc/{earlier}")).exists());
}

/// The number that a command has written into a file of the project, once it has.
#[cfg(unix)]
async fn written(stage: &Stage, name: &str) -> u32 {
    let path = stage.codex.project().join(name);
    let number = async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if let Some(number) = text.strip_suffix('\n').and_then(|text| text.parse().ok()) {
                return number;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), number).await.expect("no such file")
}

crate::backend::on_both! {
    a_slow_models_calls_are_one_step,
    a_slow_models_calls_are_one_step_in_a_thread_of_another_process,
    a_call_of_a_response_that_was_cut_off_is_asked_all_the_same,
    a_stopped_turn_ends_its_command_and_leaves_those_of_earlier_turns,
}
