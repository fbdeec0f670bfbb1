//! A real Codex on a scripted model: for trying things by hand, and for tests in other languages.
//!
//! `cargo run -p bindery-testkit --example stage -- SCRIPT.json` prints the environment to export
//! and stays until its stdin ends.
//!
//! With `--lines` it is told everything as lines of JSON, and answers each with a line. The first
//! is `{"script", "options": {trusted, unrestricted, settings, tables}}`; then come
//! `{"push": [reply…]}`, `{"open": "gate"}`, `{"gate": ["name", count]}`, `{"requests": count}`,
//! `{"hangUps": count}` (these three wait) and `{"bodies": true}`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers")]

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::time::Duration;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Script};
use serde_json::{Value, json};

/// How long a line that waits may wait.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("--lines") => by_lines(),
        Some(path) => {
            by_hand(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
        }
        None => by_hand(Script::always("Hello from a scripted model.")),
    }
}

fn by_hand(script: Script) {
    let model = Model::start(script);
    let mut options = Options { trusted: true, ..Options::default() };
    options.tables.push_str("[tools.update_plan]\nenabled = true\n");
    let codex = RealCodex::with(&model, &options);
    println!("export BINDERY_CODEX='{}'", codex.program().display());
    for (name, value) in codex.env().iter().filter(|(name, _)| name != "PATH") {
        println!("export {name}='{value}'");
    }
    println!("cd '{}'", codex.project().display());
    let mut end = Vec::new();
    std::io::stdin().read_to_end(&mut end).unwrap();
}

fn by_lines() {
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let first: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let script: Script = serde_json::from_value(first["script"].clone()).unwrap_or_default();
    let model = Model::start(script);
    let codex = RealCodex::with(&model, &options(&first["options"]));
    let env: BTreeMap<_, _> = codex.env().into_iter().collect();
    let (program, project, home) = (codex.program(), codex.project(), codex.home());
    println!("{}", json!({ "codex": program, "project": project, "home": home, "env": env }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for line in lines {
        let asked: Value = serde_json::from_str(&line).unwrap();
        let answer = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, answered(&model, &asked)).await });
        println!("{}", answer.unwrap_or_else(|_| json!({ "error": format!("in vain: {line}") })));
    }
}

fn options(asked: &Value) -> Options {
    let flag = |name: &str, otherwise| asked[name].as_bool().unwrap_or(otherwise);
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    Options {
        trusted: flag("trusted", true),
        unrestricted: flag("unrestricted", false),
        settings: text("settings"),
        tables: text("tables"),
        ..Options::default()
    }
}

async fn answered(model: &Model, asked: &Value) -> Value {
    let (name, value) = asked.as_object().and_then(|fields| fields.iter().next()).unwrap();
    let count = || usize::try_from(value.as_u64().unwrap_or_default()).unwrap();
    match name.as_str() {
        "push" => model.push(serde_json::from_value::<Vec<Reply>>(value.clone()).unwrap()),
        "open" => model.open(value.as_str().unwrap()),
        "gate" => {
            let count = usize::try_from(value[1].as_u64().unwrap()).unwrap();
            model.wait_for_gate(value[0].as_str().unwrap(), count).await;
        }
        "requests" => drop(model.wait_for_requests(count()).await),
        "hangUps" => model.wait_for_hang_ups(count()).await,
        "bodies" => return json!({ "bodies": model.bodies() }),
        other => return json!({ "error": format!("no such line: {other}") }),
    }
    json!({})
}
