//! The test doubles, with the real Codex at the other end.

mod model;

mod tools;

mod faults;

mod chat;

mod sub_agent;

mod app_server;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Script};
use serde_json::{Value, json};

/// A finished turn and everything that took part in it.
struct Ran {
    turn: Value,
    lines: Lines,
    model: Model,
    codex: RealCodex,
}

/// Runs one turn, `say hello`, of the real Codex against the script.
async fn run(script: impl Into<Script>, options: &Options) -> Ran {
    let model = Model::start(script);
    let codex = RealCodex::with(&model, options);
    let mut lines = Lines::spawn(codex.command(&["app-server"])).expect("Codex starts");
    lines.initialize().await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    let completed = lines.run_turn(&thread, "say hello").await;
    Ran { turn: completed["params"]["turn"].clone(), lines, model, codex }
}

impl Ran {
    /// Completed items of this type.
    fn items(&self, kind: &str) -> Vec<Value> {
        let items = self.lines.received("item/completed").into_iter();
        let items = items.map(|message| message["params"]["item"].clone());
        items.filter(|item| item["type"] == kind).collect()
    }

    /// The outputs of tools the model got in its last request.
    fn outputs(&self) -> Vec<String> {
        let body = self.model.bodies().pop().unwrap_or_default();
        let items = body["input"].as_array().cloned().unwrap_or_default();
        let outputs = items.into_iter().map(|item| item["output"].clone());
        outputs.filter(|output| !output.is_null()).map(text).collect()
    }

    /// The names of tools the model was offered in its first request.
    fn tools(&self) -> Vec<String> {
        let bodies = self.model.bodies();
        let tools = bodies[0]["tools"].as_array().into_iter().flatten();
        let name = |tool: &Value| text(tool.get("name").unwrap_or(&tool["type"]).clone());
        tools.map(name).collect()
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
