//! What the model says, as Codex passes it on.

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Script, Step, Usage};
use serde_json::json;

use crate::run;

#[tokio::test]
async fn text_comes_in_deltas() {
    let reply = Reply::new([Step::chunked("Héllo there", 4)]);
    let ran = run(vec![reply], &Options::default()).await;
    assert_eq!(ran.turn["status"], "completed", "{}", ran.turn);
    let deltas = ran.lines.received("item/agentMessage/delta");
    let deltas: Vec<_> = deltas.iter().map(|delta| delta["params"]["delta"].clone()).collect();
    assert_eq!(deltas, ["Héll", "o th", "ere"]);
    assert_eq!(ran.items("agentMessage")[0]["text"], "Héllo there");
    assert_eq!(ran.model.count(), 1);
}

#[tokio::test]
async fn reasoning_comes_in_parts() {
    let reasoning = Step::Reasoning {
        summary: vec!["**First**".to_owned(), "**Second**".to_owned()],
        content: vec!["raw".to_owned()],
    };
    let ran = run(vec![Reply::new([reasoning, Step::text("Hi")])], &Options::default()).await;
    let item = &ran.items("reasoning")[0];
    assert_eq!(item["summary"], json!(["**First**", "**Second**"]), "{item}");
    assert_eq!(item["content"], json!(["raw"]));
    assert_eq!(ran.lines.received("item/reasoning/summaryPartAdded").len(), 2);
    assert_eq!(ran.lines.received("item/reasoning/textDelta").len(), 1);
}

#[tokio::test]
async fn usage_and_phase_and_web_search_arrive() {
    let usage = Usage { input: 7, cached: 3, output: 5, reasoning: 2 };
    let search = Step::WebSearch { query: "weather".to_owned() };
    let steps = [Step::commentary("Looking."), search, Step::text("Sunny."), Step::Usage(usage)];
    let ran = run(vec![Reply::new(steps)], &Options::default()).await;
    let last = &ran.lines.received("thread/tokenUsage/updated")[0]["params"]["tokenUsage"]["last"];
    assert_eq!(last["inputTokens"], 7);
    assert_eq!(last["cachedInputTokens"], 3);
    assert_eq!(last["reasoningOutputTokens"], 2);
    assert_eq!(last["totalTokens"], 12);
    assert_eq!(ran.items("webSearch")[0]["query"], "weather");
    assert_eq!(ran.items("agentMessage")[0]["phase"], "commentary");
}

#[tokio::test]
async fn concurrent_threads_get_their_own_replies() {
    let model = Model::start(vec![
        Reply::new([Step::gate("both"), Step::text("for A")]).when_user("I am A"),
        Reply::new([Step::gate("both"), Step::text("for B")]).when_user("I am B"),
    ]);
    let codex = RealCodex::new(&model);
    let mut lines = Lines::spawn(codex.command(&["app-server"])).expect("Codex starts");
    lines.initialize().await;
    for name in ["A", "B"] {
        let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
        let input = json!([{ "type": "text", "text": format!("I am {name}") }]);
        lines.request("turn/start", json!({ "threadId": thread, "input": input })).await;
    }
    model.wait_for_gate("both", 2).await;
    model.open("both");
    model.open("both");
    let mut texts = Vec::new();
    for _ in 0..2 {
        let turn = lines.until_method("turn/completed").await;
        texts.push(turn["params"]["turn"]["items"][0]["text"].to_string());
    }
    texts.sort();
    assert_eq!(texts, [r#""for A""#, r#""for B""#]);
    assert!(model.unanswered().is_empty());
}

#[tokio::test]
async fn an_interrupt_hangs_up_on_the_model() {
    let model = Model::start(vec![Reply::new([Step::text("Wait"), Step::Silence])]);
    let codex = RealCodex::new(&model);
    let mut lines = Lines::spawn(codex.command(&["app-server"])).expect("Codex starts");
    lines.initialize().await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    let input = json!([{ "type": "text", "text": "hello" }]);
    let params = json!({ "threadId": thread, "input": input });
    let reply = lines.request("turn/start", params).await;
    lines.until_method("item/agentMessage/delta").await;
    let turn = &reply["result"]["turn"]["id"];
    lines.request("turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await;
    model.wait_for_hang_ups(1).await;
    let completed = lines.until_method("turn/completed").await;
    assert_eq!(completed["params"]["turn"]["status"], "interrupted");
    assert_eq!(lines.close().await, Some(0));
}

/// Nothing here needs a runtime: the model has its own.
#[test]
fn codex_exec_runs_in_a_synchronous_test() {
    let model = Model::start(Script::always("Hello"));
    let codex = RealCodex::new(&model);
    let mut command = codex.command(&["exec", "--json", "say hello"]);
    let output = command.stdin(std::process::Stdio::null()).output().expect("Codex runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(r#""text":"Hello""#), "{text}");
    assert_eq!(model.count(), 1);
}

#[test]
fn a_script_is_data() {
    let script = json!({ "replies": [
        { "when": { "user": "weather", "after_tool": false }, "times": 2, "steps": [
            { "type": "text", "text": "Hi", "chunk": 1 },
            { "type": "call", "name": "exec_command", "arguments": { "cmd": "ls" }, "call_id": "c" },
            { "type": "usage", "input": 1 },
            { "type": "bytes", "bytes": [255, 0] },
            { "type": "bytes", "bytes": "garbage" },
            { "type": "cut" },
        ] },
        { "times": "always", "steps": [{ "type": "status", "status": 500, "body": "oh" }] },
    ] });
    let read: Script = serde_json::from_value(script).expect("a script");
    let written = serde_json::to_value(&read).expect("JSON");
    let again: Script = serde_json::from_value(written).expect("a script");
    assert_eq!(read, again);
    let typo = json!({ "replies": [{ "stepz": [] }] });
    assert!(serde_json::from_value::<Script>(typo).is_err());
}
