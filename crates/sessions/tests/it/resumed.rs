//! What we would tell a model of a session that the real Codex wrote, against what Codex tells it.

use std::path::Path;

use bindery_sessions::find;
use bindery_sessions::resume::{self, Options, Resumed};
use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::{Value, json};

/// An item as far as models see it: Codex leaves out its own notes when it sends one.
pub(crate) fn seen(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        for key in ["id", "status", "internal_chat_message_metadata_passthrough", "phase"] {
            fields.remove(key);
        }
        fields.retain(|_, value| !value.is_null());
    }
    let content = item.get_mut("content").and_then(Value::as_array_mut);
    for block in content.into_iter().flatten() {
        if let Some(fields) = block.as_object_mut() {
            fields.retain(|key, value| key != "annotations" && !value.is_null());
        }
    }
    item
}

pub(crate) fn load(home: &Path, thread: &str) -> Resumed {
    let roots = [home.to_owned()];
    let file = find::resolve(thread, &roots).unwrap();
    resume::load(&file.path, &find::files(&roots).unwrap(), Options::default()).unwrap()
}

pub(crate) async fn app_server(codex: &RealCodex) -> Lines {
    let mut lines = Lines::spawn(codex.command(&["app-server"])).unwrap();
    lines.initialize().await;
    lines
}

/// Resumes a thread in a new Codex, says something, and gives what reached the model.
pub(crate) async fn resumed_input(codex: &RealCodex, model: &Model, thread: &str) -> Vec<Value> {
    let mut lines = app_server(codex).await;
    let reply = lines.request("thread/resume", json!({ "threadId": thread })).await;
    assert!(reply.get("error").is_none(), "{reply}");
    lines.run_turn(thread, "and now?").await;
    lines.close().await;
    told(model, model.count() - 1)
}

/// What reached the model with a request.
pub(crate) fn told(model: &Model, request: usize) -> Vec<Value> {
    let body = model.bodies().swap_remove(request);
    body["input"].as_array().unwrap().iter().map(seen).collect()
}

/// Our history must be what Codex tells, up to what the new turn adds.
fn compare(resumed: &Resumed, input: &[Value]) {
    assert_eq!(difference(resumed, input), None);
    assert_eq!((resumed.broken, resumed.shortened), (0, 0));
    assert!(resumed.unknown.is_empty(), "{:?}", resumed.unknown);
}

/// The first difference.
pub(crate) fn difference(resumed: &Resumed, input: &[Value]) -> Option<String> {
    let ours: Vec<Value> = resumed.history.iter().map(seen).collect();
    let input = without_base(&ours, input);
    for (at, ours) in ours.iter().enumerate() {
        match input.get(at) {
            Some(theirs) if ours == theirs => {}
            Some(theirs) => {
                let (ours, theirs) = (short(ours), short(theirs));
                return Some(format!("item {at}: {ours} is told as {theirs}"));
            }
            None => return Some(format!("item {at} is not told: {}", short(ours))),
        }
    }
    let rest = &input[ours.len()..];
    let is_said = |item: &&Value| item["role"] == "assistant" || item["type"] != "message";
    if let Some(item) = rest.iter().find(is_said) {
        return Some(format!("told, but not known: {}", short(item)));
    }
    let last = rest.last().map(|item| &item["content"][0]["text"]);
    // A history too long, or of another sort of model, is compacted first.
    let is_asked = |text: &Value| text == "and now?" || text.to_string().contains("CHECKPOINT");
    (!last.is_some_and(is_asked)).then(|| format!("the new turn is not told: {last:?}"))
}

/// For some models 0.166 tells its instructions as the first message, outside the history.
fn without_base<'a>(ours: &[Value], input: &'a [Value]) -> &'a [Value] {
    let is_base = input[0]["role"] == "developer" && ours.first() != input.first();
    &input[usize::from(is_base)..]
}

fn short(item: &Value) -> String {
    item.to_string().chars().take(400).collect()
}

async fn stage(replies: Vec<Reply>) -> (Model, RealCodex, Lines) {
    let model = Model::start(replies);
    let codex = RealCodex::with(&model, &CodexOptions::unrestricted());
    let lines = app_server(&codex).await;
    (model, codex, lines)
}

fn talk() -> Vec<Reply> {
    vec![
        Reply::new([
            Step::reasoning(["Look first", "Then speak"]),
            Step::commentary("Looking"),
            Step::exec("echo hi; exit 3", "c1"),
        ])
        .when_user("one"),
        Reply::text("It says hi").when_output_of("c1").when_user("one"),
        Reply::text("Fine").always(),
    ]
}

#[tokio::test]
async fn tools_and_reasoning_are_told_again() {
    for mode in ["paginated", "legacy"] {
        let (model, codex, mut lines) = stage(talk()).await;
        let params = json!({ "cwd": codex.project(), "historyMode": mode });
        let thread = lines.start_thread(params).await;
        lines.run_turn(&thread, "one").await;
        lines.run_turn(&thread, "two").await;
        lines.close().await;
        let resumed = load(&codex.home(), &thread);
        assert_eq!(resumed.meta["id"], thread.as_str());
        assert_eq!(resumed.turn_context.as_ref().unwrap()["model"], "gpt-5.5");
        let total = &resumed.tokens.as_ref().unwrap()["total_token_usage"]["total_tokens"];
        assert_eq!(total, 360, "{mode}");
        assert!(resumed.world_state.is_some());
        compare(&resumed, &resumed_input(&codex, &model, &thread).await);
    }
}

#[tokio::test]
async fn forks_and_compactions_are_told_again() {
    let (model, codex, mut lines) = stage(talk()).await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    lines.run_turn(&thread, "one").await;
    let reply = lines.request("thread/fork", json!({ "threadId": thread })).await;
    let fork = reply["result"]["thread"]["id"].as_str().unwrap().to_owned();
    lines.run_turn(&fork, "two").await;
    let reply = lines.request("thread/fork", json!({ "threadId": fork })).await;
    let grandchild = reply["result"]["thread"]["id"].as_str().unwrap().to_owned();
    lines.run_turn(&grandchild, "three").await;
    lines.run_turn(&fork, "not in the grandchild").await;
    lines.request("thread/compact/start", json!({ "threadId": fork })).await;
    lines.until_method("turn/completed").await;
    lines.run_turn(&fork, "four").await;
    lines.close().await;

    let resumed = load(&codex.home(), &grandchild);
    assert!(!json!(resumed.history).to_string().contains("not in the grandchild"));
    compare(&resumed, &resumed_input(&codex, &model, &grandchild).await);
    let resumed = load(&codex.home(), &fork);
    assert_eq!(resumed.compactions, 1);
    compare(&resumed, &resumed_input(&codex, &model, &fork).await);
}

#[tokio::test]
async fn what_was_taken_back_is_not_told_again() {
    let (model, codex, mut lines) = stage(talk()).await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    lines.run_turn(&thread, "one").await;
    let second = lines.run_turn(&thread, "regretted").await;
    let turn = &second["params"]["turn"]["id"];
    let params = json!({ "threadId": thread, "beforeTurnId": turn });
    let reply = lines.request("thread/revert", params).await;
    assert!(reply.get("error").is_none(), "{reply}");
    lines.run_turn(&thread, "three").await;
    lines.close().await;
    let resumed = load(&codex.home(), &thread);
    assert!(!json!(resumed.history).to_string().contains("regretted"));
    assert!(!json!(resumed.turns).to_string().contains("regretted"));
    compare(&resumed, &resumed_input(&codex, &model, &thread).await);
}

#[tokio::test]
async fn turns_are_shown_as_codex_shows_them() {
    for mode in ["paginated", "legacy"] {
        let (_model, codex, mut lines) = stage(talk()).await;
        let params = json!({ "cwd": codex.project(), "historyMode": mode });
        let thread = lines.start_thread(params).await;
        lines.run_turn(&thread, "one").await;
        lines.run_turn(&thread, "two").await;
        lines.close().await;
        let ours = load(&codex.home(), &thread).turns;
        let mut lines = app_server(&codex).await;
        let params = json!({ "threadId": thread, "includeTurns": true });
        let reply = lines.request("thread/read", params).await;
        lines.close().await;
        let theirs = reply["result"]["thread"]["turns"].as_array().unwrap();
        let sketch = |turns: &[Value]| -> Vec<Value> { turns.iter().map(sketch).collect() };
        assert_eq!(sketch(&ours), sketch(theirs), "{mode}");
    }
}

/// A turn without ids that are made up, times, and what is null.
fn sketch(turn: &Value) -> Value {
    let mut turn = turn.clone();
    let is_legacy = turn["items"][0]["startedAtMs"].is_null();
    for item in turn["items"].as_array_mut().unwrap() {
        let fields = item.as_object_mut().unwrap();
        let is_made_up = |key: &str| is_legacy && key.ends_with("AtMs");
        fields.retain(|key, value| !value.is_null() && !is_made_up(key));
        if is_legacy {
            fields.remove("id");
        }
    }
    turn.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    turn
}
