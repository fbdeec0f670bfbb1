//! The scenarios on the real Codex: what it does must be what we do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

use crate::patch::run;
use crate::scenario::{Files, Given, Scenario, anywhere, files};

/// Where we depart from Codex 0.166, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("add_onto_dir", BEFORE),
    ("parent_is_file", BEFORE),
    ("move_to_dir", BEFORE),
    ("second_write_would_fail", "Codex writes the first file, we none"),
    ("file_and_folder_of_one_name", "Codex writes the first file, we none"),
    ("delete_then_folder_of_its_name", "we check against the files as they are"),
    ("move_self", "Codex loses the file, we keep it where it is"),
    ("move_dest_added_too", TWICE),
    ("move_dest_updated_too", TWICE),
    ("move_then_update_new", TWICE),
    ("move_swap", "Codex loses one of the files, we touch none"),
    ("link_and_its_file", "two names of one file are one file to us"),
    ("script_bare_patch", "our own words"),
    ("add_over_binary", SHOWN),
    ("link_added_over", SHOWN),
    ("link_deleted", SHOWN),
    ("link_moved", SHOWN),
    ("link_updated", SHOWN),
    ("link_to_folder", PLACE),
    ("link_to_nothing_added", PLACE),
];

const PLACE: &str = "the turn's diff tells files by where they are, as git knows them";

const SHOWN: &str = "Codex shows no diff of a turn that touches links or what is no text, we do";

const BEFORE: &str = "what cannot be written is refused before anything is, and with the cause";

const TWICE: &str = "a file that another is moved to is a file of the patch: two things at once";

/// What came of a scenario, without names of folders.
#[derive(Debug, PartialEq)]
struct Came {
    text: String,
    files: Files,
    changes: Value,
    diff: String,
}

#[tokio::test]
async fn codex_does_the_same() {
    let scenarios = Scenario::all();
    let model = Model::start(script(&scenarios));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let mut command = codex.command(&["app-server"]);
    command.env("RUST_BACKTRACE", "0");
    let mut lines = Lines::spawn(command).unwrap();
    lines.initialize().await;
    let mut came = Vec::new();
    for scenario in &scenarios {
        came.push(theirs(scenario, &mut lines).await);
    }
    lines.close().await;
    let bodies = model.bodies();
    let mut wrong = BTreeMap::new();
    for (scenario, (cwd, mut theirs)) in scenarios.iter().zip(came) {
        theirs.text = anywhere(&output(&bodies, &call_id(scenario)), &cwd);
        let ours = ours(scenario);
        if ours != theirs {
            wrong.insert(&*scenario.name, format!("\n  ours {ours:?}\n  theirs {theirs:?}"));
        }
    }
    let known: BTreeMap<_, _> = DIFFERENCES.iter().copied().collect();
    let unknown = wrong.iter().filter(|(name, _)| !known.contains_key(**name));
    let unknown: Vec<_> = unknown.map(|(name, text)| format!("{name}:{text}")).collect();
    assert!(unknown.is_empty(), "{} scenarios differ:\n{}", unknown.len(), unknown.join("\n"));
    let gone: Vec<_> = known.keys().filter(|name| !wrong.contains_key(**name)).collect();
    assert!(gone.is_empty(), "these are no differences: {gone:?}");
}

fn script(scenarios: &[Scenario]) -> Script {
    Script::new(scenarios.iter().flat_map(|scenario| {
        let call = call_id(scenario);
        let step = match scenario.given() {
            Given::Patch(text) => Step::custom("apply_patch", &text, &call),
            Given::Script(script) => Step::exec(&script, &call),
        };
        let ask = Reply::new([step]).when_user(&prompt(scenario));
        [ask, Reply::text("Done").when_output_of(&call)]
    }))
}

fn call_id(scenario: &Scenario) -> String {
    format!("call-{}", scenario.name)
}

fn prompt(scenario: &Scenario) -> String {
    format!("<{}>", scenario.name)
}

/// What came of it and where; what the model was told is read when all is over.
async fn theirs(scenario: &Scenario, lines: &mut Lines) -> (PathBuf, Came) {
    let (_folder, cwd) = scenario.stage();
    let thread = lines.start_thread(json!({ "cwd": cwd })).await;
    let begun = lines.transcript().len();
    let ended = lines.run_turn(&thread, &prompt(scenario)).await;
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{}: {ended}", scenario.name);
    let items = lines.transcript()[begun..].iter().map(|line| &line["msg"]);
    let items = items.filter(|message| message["method"] == "item/completed");
    let change =
        items.map(|message| &message["params"]["item"]).find(|item| item["type"] == "fileChange");
    let changes = change.map_or(Value::Null, |item| plain(&item["changes"], &cwd));
    let diffs = lines.transcript()[begun..].iter().map(|line| &line["msg"]);
    let mut diffs = diffs.filter(|message| message["method"] == "turn/diff/updated");
    let diff = diffs.next_back().and_then(|message| message["params"]["diff"].as_str());
    // A folder above may have a `.git`, and is the root of the paths then.
    let mut diff = anywhere(diff.unwrap_or_default(), &cwd);
    let above: Vec<_> = cwd.ancestors().skip(1).collect();
    for folder in above.into_iter().rev() {
        let below = cwd.strip_prefix(folder).unwrap().display().to_string();
        diff = diff.replace(&format!("/{below}/"), "/");
    }
    let came = Came { text: String::new(), files: files(&cwd), changes, diff };
    (cwd, came)
}

fn ours(scenario: &Scenario) -> Came {
    let (_folder, cwd) = scenario.stage();
    let outcome = run(&scenario.given(), &cwd);
    let changes = outcome.changes.map_or(Value::Null, |changes| plain(&json!(changes), &cwd));
    let diff = anywhere(&outcome.diff, &cwd);
    Came { text: anywhere(&outcome.text, &cwd), files: files(&cwd), changes, diff }
}

fn plain(value: &Value, cwd: &Path) -> Value {
    serde_json::from_str(&anywhere(&value.to_string(), cwd)).unwrap()
}

/// What the model was told, without exit code and times.
fn output(bodies: &[Value], call: &str) -> String {
    let items = bodies.iter().filter_map(|body| body["input"].as_array()).flatten();
    let mut outputs = items.filter(|item| item["call_id"] == call && !item["output"].is_null());
    let text = outputs.next().unwrap()["output"].as_str().unwrap();
    match text.rfind("\nOutput:\n") {
        Some(head) => text[head + "\nOutput:\n".len()..].to_owned(),
        None => text.to_owned(),
    }
}
