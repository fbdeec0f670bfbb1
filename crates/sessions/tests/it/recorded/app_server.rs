//! Scenarios of `codex app-server`.

use bindery_core::item::Body;
use bindery_sessions::normalise::Options;
use bindery_sessions::session::of_bytes;
use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::{Value, json};

use super::{Recording, collect};

struct Run {
    codex: RealCodex,
    model: Model,
    lines: Lines,
    thread: String,
}

impl Run {
    async fn start(replies: Vec<Reply>, options: &CodexOptions, settings: Value) -> Self {
        let model = Model::start(replies);
        let codex = RealCodex::with(&model, options);
        let mut lines = Lines::spawn(codex.command(&["app-server"])).unwrap();
        lines.initialize().await;
        let mut params = json!({ "cwd": codex.project() });
        params.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let thread = lines.start_thread(params).await;
        Self { codex, model, lines, thread }
    }

    async fn plain(replies: Vec<Reply>) -> Self {
        Self::start(replies, &CodexOptions::unrestricted(), json!({})).await
    }

    async fn turn(&mut self, words: &str) -> Value {
        self.lines.run_turn(&self.thread, words).await
    }

    /// A request about the thread that must succeed.
    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["threadId"] = json!(self.thread);
        let reply = self.lines.request(method, params).await;
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply
    }

    async fn take(mut self, scenario: &'static str) -> Recording {
        self.lines.close().await;
        let received = self.lines.transcript().iter().filter(|line| line["dir"] == "recv");
        let printed: String = received.map(|line| format!("{}\n", line["msg"])).collect();
        collect(scenario, &self.codex, ("appserver", printed.into_bytes()))
    }
}

fn words(text: &str) -> Value {
    json!([{ "type": "text", "text": text, "text_elements": [] }])
}

/// A goal of the client's: turns that nobody asked for, begun by an output that answers no call.
#[tokio::test]
async fn a_goal_begins_turns_of_its_own() {
    let reached = Step::call("update_goal", json!({ "status": "complete" }), "g1");
    let replies = vec![
        Reply::text("Hi."),
        Reply::text("One."),
        Reply::new([Step::text("Two, three."), reached]),
        Reply::text("Reached.").always(),
    ];
    let mut run = Run::plain(replies).await;
    run.turn("hello").await;
    let goal = json!({ "objective": "count to three", "status": "active", "origin": "user" });
    run.ask("thread/goal/set", goal).await;
    let is_reached = |message: &Value| {
        message["method"] == "thread/goal/updated"
            && message["params"]["goal"]["status"] == "complete"
    };
    run.lines.until(is_reached).await;
    run.lines.until_method("turn/completed").await;
    let recording = run.take("app_goal").await;
    let file = String::from_utf8(recording.rollouts[0].clone()).unwrap();
    assert!(file.contains("\"turn_trigger\":\"goal\""), "{file}");
    assert!(file.contains("\"goal_objective\""), "{file}");
    let session = of_bytes(file.as_bytes(), Options::default());
    let items = session.transcript.turns.iter().flat_map(|turn| &turn.items);
    let goals = items.filter(|item| match &item.body {
        Body::Notice { topic, text, .. } => topic == "goal" && text.contains("count to three"),
        _ => false,
    });
    assert!(goals.count() >= 2);
}

#[tokio::test]
async fn turns_that_are_steered_and_interrupted() {
    let mut run = Run::plain(vec![
        Reply::new([Step::exec("echo hi", "c1")]),
        Reply::new([Step::gate("go"), Step::text("Then.")]),
        Reply::text("Steered."),
    ])
    .await;
    let reply = run.ask("turn/start", json!({ "input": words("one") })).await;
    let turn = reply["result"]["turn"]["id"].clone();
    run.lines.until_method("item/completed").await;
    run.ask("turn/steer", json!({ "input": words("faster"), "expectedTurnId": turn })).await;
    run.model.open("go");
    run.lines.until_method("turn/completed").await;
    run.take("app_steer").await;

    let mut run = Run::plain(vec![Reply::new([Step::exec("sleep 60", "c1")])]).await;
    let reply = run.ask("turn/start", json!({ "input": words("wait") })).await;
    let turn = reply["result"]["turn"]["id"].clone();
    let is_command = |message: &Value| {
        message["method"] == "item/started"
            && message["params"]["item"]["type"] == "commandExecution"
    };
    run.lines.until(is_command).await;
    run.ask("turn/interrupt", json!({ "turnId": turn })).await;
    run.lines.until_method("turn/completed").await;
    run.take("app_interrupt").await;
}

#[tokio::test]
async fn threads_that_are_compacted_forked_and_reverted() {
    let mut run = Run::plain(vec![Reply::text("Hi").always()]).await;
    run.turn("one").await;
    run.ask("thread/compact/start", json!({})).await;
    run.lines.until_method("turn/completed").await;
    run.turn("two").await;
    run.take("app_compact").await;

    let mut run = Run::plain(vec![Reply::text("Hi").always()]).await;
    run.turn("one").await;
    let reply = run.ask("thread/fork", json!({})).await;
    run.thread = reply["result"]["thread"]["id"].as_str().unwrap().to_owned();
    run.turn("two").await;
    assert_eq!(run.take("app_fork").await.rollouts.len(), 2);

    let mut run = Run::plain(vec![Reply::text("Hi").always()]).await;
    run.turn("one").await;
    let second = run.turn("two").await;
    let turn = second["params"]["turn"]["id"].clone();
    run.ask("thread/revert", json!({ "beforeTurnId": turn })).await;
    run.turn("three").await;
    run.take("app_revert").await;

    let replies = vec![Reply::text("Hi").always()];
    let legacy = json!({ "historyMode": "legacy" });
    let mut run = Run::start(replies, &CodexOptions::unrestricted(), legacy).await;
    run.turn("one").await;
    run.take("app_legacy").await;
}

#[tokio::test]
async fn reviews_shell_commands_names_and_injected_items() {
    let mut run = Run::plain(vec![Reply::text("Nothing to say.").always()]).await;
    let target = json!({ "type": "custom", "instructions": "look at main.rs" });
    run.ask("review/start", json!({ "target": target })).await;
    run.lines.until_method("turn/completed").await;
    run.take("app_review").await;

    let mut run = Run::plain(vec![Reply::text("Hi").always()]).await;
    run.ask("thread/name/set", json!({ "name": "weeks" })).await;
    run.ask("thread/shellCommand", json!({ "command": "echo mine" })).await;
    run.lines.until_method("turn/completed").await;
    let item = json!({ "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": "told before" }] });
    run.ask("thread/inject_items", json!({ "items": [item] })).await;
    run.turn("go on").await;
    run.take("app_inject").await;
}

#[tokio::test]
async fn a_command_is_declined() {
    let command = json!({ "cmd": "touch made", "justification": "to make it",
        "sandbox_permissions": "require_escalated" });
    let replies =
        vec![Reply::new([Step::call("exec_command", command, "c1")]), Reply::text("Not done.")];
    let settings = json!({ "sandbox": "read-only", "approvalPolicy": "on-request" });
    let mut run = Run::start(replies, &CodexOptions::default(), settings).await;
    run.ask("turn/start", json!({ "input": words("make it") })).await;
    let question = run.lines.until_method("item/commandExecution/requestApproval").await;
    let answer = json!({ "id": question["id"], "result": { "decision": "decline" } });
    run.lines.send(answer).await;
    run.lines.until_method("turn/completed").await;
    run.take("app_approve").await;
}

#[tokio::test]
async fn sub_agents_of_both_forms() {
    let replies = |namespace: &str, spawn: Value, wait: Value| {
        vec![
            Reply::text("One, two, three.").when_header("x-openai-subagent", ""),
            Reply::new([Step::call_in(namespace, "spawn_agent", spawn, "s1")]),
            Reply::new([Step::call_in(namespace, "wait_agent", wait, "w1")]),
            Reply::text("All done."),
        ]
    };
    let wait = json!({ "targets": ["${s1.agent_id}"] });
    let first = replies("multi_agent_v1", json!({ "message": "count to three" }), wait);
    let mut run = Run::plain(first).await;
    run.turn("let somebody count").await;
    assert_eq!(run.take("agents").await.rollouts.len(), 2);

    let spawn = json!({ "task_name": "count", "message": "count to three", "fork_turns": "all" });
    let options = CodexOptions::unrestricted().feature("multi_agent_v2", true);
    let second = replies("collaboration", spawn, json!({}));
    let mut run = Run::start(second, &options, json!({})).await;
    run.turn("let somebody count").await;
    assert_eq!(run.take("agents2").await.rollouts.len(), 2);
}
