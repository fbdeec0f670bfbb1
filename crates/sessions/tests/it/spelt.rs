//! Items in both spellings: what Codex kept in a file and what it told its client are the same.

use std::collections::HashMap;

use bindery_sessions::resume::items;
use bindery_sessions::write::shown::{self, Completed};
use bindery_sessions::write::{Format, Record};
use serde_json::Value;

use crate::corpus;

fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Without nulls and times.
fn lean(item: &Value) -> Value {
    match item {
        Value::Object(map) => {
            let fields = map.iter().filter(|(key, value)| {
                !value.is_null() && !matches!(key.as_str(), "startedAtMs" | "completedAtMs")
            });
            Value::Object(fields.map(|(key, value)| (key.clone(), lean(value))).collect())
        }
        Value::Array(values) => values.iter().map(lean).collect(),
        other => other.clone(),
    }
}

/// The items of a session file.
fn kept(bytes: &[u8]) -> Vec<Value> {
    let lines = lines(bytes);
    let items = lines.iter().filter(|line| line["payload"]["type"] == "item_completed");
    items.map(|line| line["payload"]["item"].clone()).collect()
}

/// A file in today's form whose live side was recorded, too.
fn is_recent(entry: &corpus::Entry, path: &str) -> bool {
    ["0.166.0", "0.169.0"].iter().any(|version| entry.name.starts_with(&format!("{version}{path}")))
}

#[test]
fn kept_items_are_shown_as_codex_showed_them() {
    let mut compared = HashMap::<String, usize>::new();
    for entry in corpus::sessions().filter(|entry| is_recent(entry, "/app_")) {
        let name = entry.name.replace(".rollout.jsonl", ".appserver.jsonl");
        let Some(live) = corpus::all().iter().find(|other| other.name == name) else { continue };
        let told = lines(&live.bytes);
        let told = told.iter().filter(|message| message["method"] == "item/completed");
        let told: HashMap<&str, &Value> = told
            .map(|message| &message["params"]["item"])
            .map(|item| (item["id"].as_str().unwrap(), item))
            .collect();
        for item in kept(&entry.bytes) {
            let shown = items::shown(&item);
            if let Some(told) = told.get(item["id"].as_str().unwrap()) {
                assert_eq!(lean(&shown), lean(told), "{}", entry.name);
                *compared.entry(item["type"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    assert!(compared.len() >= 9, "{compared:?}");
}

#[test]
fn shown_items_are_kept_as_codex_kept_them() {
    let at = Completed { thread: "t", turn: "u", started_ms: 1, completed_ms: 2 };
    let mut compared = HashMap::<String, usize>::new();
    for entry in corpus::sessions().filter(|entry| is_recent(entry, "/")) {
        for item in kept(&entry.bytes) {
            let records = shown::records(Format::Paginated, at, &items::shown(&item));
            let [Record::Event(event)] = records.as_slice() else { panic!("{records:?}") };
            let kind = item["type"].as_str().unwrap();
            // What people are told of reviews is less than what is kept of them; where a file
            // that was read is, is told whole.
            if !kind.ends_with("ReviewMode") {
                assert_eq!(plain(&event["item"]), plain(&item), "{}", entry.name);
                *compared.entry(kind.to_owned()).or_default() += 1;
            }
        }
    }
    assert!(compared.len() >= 13, "{compared:?}");
}

/// Without what the protocol does not tell.
fn plain(item: &Value) -> Value {
    let mut item = lean(item);
    if let Some(fields) = item.as_object_mut() {
        for key in ["stdout", "stderr", "receiver_agents", "duration"] {
            fields.remove(key);
        }
        let actions = fields.get_mut("parsed_cmd").and_then(Value::as_array_mut);
        for action in actions.into_iter().flatten() {
            action["path"] = Value::Null;
        }
    }
    item
}
