//! Files as a later Codex might write them: unknown fields, types, statuses, roles and blocks at
//! every depth of every line. Each is reported, shown or named, and none is drawn as a success.

use std::collections::BTreeSet;

use bindery_core::item::{Body, Status};
use bindery_sessions::normalise::Options;
use bindery_sessions::render::{Density, Style, terminal};
use bindery_sessions::session::{Session, of_bytes};
use bindery_sessions::validate::Report;
use serde_json::{Value, json};

use crate::{corpus, law};

/// A word that no Codex has written yet.
const NEW: &str = "zyxnew";

/// A change of one line.
struct Mutation {
    what: &'static str,
    path: String,
    line: Value,
}

/// Every place of a value, as a path that is the same in all lines of a tag.
fn places(value: &Value, path: &str, take: &mut dyn FnMut(&str, &Value)) {
    take(path, value);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{path}/{}", name.replace('/', "~1")), take);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate().take(2) {
                places(value, &format!("{path}/{index}"), take);
            }
        }
        _ => {}
    }
}

fn mutations(line: &Value) -> Vec<Mutation> {
    let mut found = Vec::new();
    let mut add = |what: &'static str, path: &str, change: &dyn Fn(&mut Value)| {
        let mut line = line.clone();
        change(line.pointer_mut(path).unwrap());
        found.push(Mutation { what, path: path.to_owned(), line });
    };
    places(line, "", &mut |path, value| match value {
        Value::Object(_) => {
            add("key", path, &|at| at[NEW] = json!(format!("{NEW} words")));
            add("nested key", path, &|at| at[NEW] = json!({ "inner": [format!("{NEW} words")] }));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let is_typed = items.iter().any(|item| item.get("type").is_some());
            add(if is_typed { "block" } else { "entry with a new key" }, path, &|at| {
                let block = json!({ "type": NEW, "text": format!("{NEW} words") });
                at.as_array_mut().unwrap().push(block);
            });
        }
        Value::String(_) => {
            let name = path.rsplit('/').next().unwrap();
            if ["type", "status", "role"].contains(&name) {
                add(if name == "type" { "type" } else { "status or role" }, path, &|at| {
                    *at = json!(NEW);
                });
            }
        }
        _ => {}
    });
    found
}

fn report(bytes: &[u8]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let mut report = Report::default();
    report.check(&path).unwrap();
    report
}

/// Where a mutation is seen; none if nowhere.
fn fate(bytes: &[u8], session: &Session, line: u64) -> Option<&'static str> {
    if report(bytes).findings.iter().any(|finding| finding.what.contains(NEW)) {
        return Some("reported");
    }
    let shown = serde_json::to_string(&session.transcript).unwrap();
    let named = !session.ledger.left_out(line).is_empty();
    (shown.contains(NEW) || named).then_some("shown or named")
}

/// Calls of the mutated line that look as if they went well.
fn successes(session: &Session, line: u64) -> Vec<String> {
    let items = session.transcript.turns.iter().flat_map(|turn| &turn.items);
    let of_line = items.filter(|item| item.origin.lines.contains(&line));
    let good = of_line.filter(|item| item.status == Status::Ok);
    good.filter_map(|item| match &item.body {
        Body::Tool(tool) => Some(tool.name.clone()),
        _ => None,
    })
    .collect()
}

#[test]
fn what_a_later_codex_adds_is_reported_shown_or_named_and_no_success() {
    let mut seen = BTreeSet::new();
    let (mut breaches, mut counts) = (Vec::new(), std::collections::BTreeMap::new());
    for entry in corpus::sessions() {
        let text = String::from_utf8_lossy(&entry.bytes);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let tag = format!(
                "{} {} {}",
                value["type"], value["payload"]["type"], value["payload"]["item"]["type"]
            );
            for mutation in mutations(&value) {
                // Once for each place of a tag, in the first file of any version that has it.
                let path: String =
                    mutation.path.split('/').filter(|p| p.parse::<u64>().is_err()).collect();
                if !seen.insert((tag.clone(), path, mutation.what)) {
                    continue;
                }
                *counts.entry(mutation.what).or_insert(0) += 1;
                let mutated = mutation.line.to_string();
                let mut all = lines.clone();
                all[index] = &mutated;
                let bytes = format!("{}\n", all.join("\n")).into_bytes();
                let session = of_bytes(&bytes, Options::default());
                let number = index as u64 + 1;
                let place =
                    || format!("{}:{number} {} at {}", entry.name, mutation.what, mutation.path);
                if let Err(breach) = law::check(&session, law::lines(&bytes)) {
                    breaches.push(format!("{}: {breach}", place()));
                }
                if fate(&bytes, &session, number).is_none() {
                    breaches.push(format!("{}: seen nowhere", place()));
                }
                let good = successes(&session, number);
                if !mutation.what.ends_with("key") && !good.is_empty() && !is_kept(&mutation.path) {
                    breaches.push(format!("{}: drawn as success: {good:?}", place()));
                }
            }
        }
    }
    let count = breaches.len();
    breaches.truncate(60);
    assert!(breaches.is_empty(), "{count} of {counts:?}\n{}", breaches.join("\n"));
    assert!(counts["key"] > 150 && counts["type"] > 60 && counts["status or role"] > 20);
    assert!(counts["block"] > 20, "{counts:?}");
}

/// Data of a tool's own, shown as it is: a type in it is nothing of Codex's.
fn is_kept(path: &str) -> bool {
    let kept =
        ["/arguments", "/result/", "/content_items", "/agents_states", "/invocation/", "/tools"];
    kept.iter().any(|part| path.contains(part))
}

#[test]
fn an_unknown_status_is_drawn_as_neither_done_nor_failed() {
    let file = corpus::file("0.166.0/shell.rollout.jsonl");
    let text = String::from_utf8(file.bytes.clone()).unwrap();
    let changed =
        text.replace("\"status\":\"completed\",\"stdout\"", "\"status\":\"sparkling\",\"stdout\"");
    let changed = if changed == text {
        text.replace("\"status\":\"completed\"", "\"status\":\"sparkling\"")
    } else {
        changed
    };
    let session = of_bytes(changed.as_bytes(), Options::default());
    let tools: Vec<_> = (session.transcript.turns.iter().flat_map(|turn| &turn.items))
        .filter(|item| matches!(item.body, Body::Tool(_)))
        .collect();
    assert!(!tools.is_empty() && tools.iter().all(|item| item.status == Status::Unknown));
    for density in [Density::Conversation, Density::Activity, Density::Everything] {
        let mut out = Vec::new();
        for turn in &session.transcript.turns {
            terminal(&mut out, None, turn, Style { density, ..Style::default() }).unwrap();
        }
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("sparkling") && !page.contains('✓') && !page.contains('✗'), "{page}");
    }
}
