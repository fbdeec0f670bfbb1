//! Every kind of reply, as the real Codex takes it.

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

/// Runs one turn against the script and gives the client after it.
async fn turn(script: impl Into<Script>, options: &Options) -> (Lines, Value, Model, RealCodex) {
    let model = Model::start(script);
    let codex = RealCodex::with(&model, options);
    let mut lines = Lines::spawn(codex.command(&["app-server"])).unwrap();
    lines.initialize().await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    let completed = lines.run_turn(&thread, "say hello").await;
    (lines, completed["params"]["turn"].clone(), model, codex)
}

fn items(lines: &Lines, kind: &str) -> Vec<Value> {
    let items = lines.received("item/completed").into_iter();
    items.map(|message| message["params"]["item"].clone()).filter(|i| i["type"] == kind).collect()
}

#[tokio::test]
async fn text_comes_in_deltas() {
    let reply = Reply::new([Step::chunked("Hello there", 4)]);
    let (lines, turn, model, _codex) = turn(vec![reply], &Options::default()).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let deltas = lines.received("item/agentMessage/delta");
    let deltas: Vec<_> = deltas.iter().map(|delta| delta["params"]["delta"].clone()).collect();
    assert_eq!(deltas, ["Hell", "o th", "ere"]);
    assert_eq!(items(&lines, "agentMessage")[0]["text"], "Hello there");
    assert_eq!(model.count(), 1);
}
