//! Files as a later Codex might write them: unknown fields, types, statuses, roles and blocks at
//! every depth of every line. Each is reported, shown or named, and none is drawn as a success.

use std::collections::{BTreeMap, BTreeSet};

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
                let text = format!("{NEW} words");
                let block = json!({ "type": NEW, "text": text, NEW: text });
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

/// Why a mutation is not visible enough: what is Codex's own must be named by `validate`; data of
/// others must be shown as it is, or its field be named as one that is not shown.
fn hidden(bytes: &[u8], session: &Session, mutation: &Mutation, line: u64) -> Option<&'static str> {
    let findings = report(bytes).findings;
    if findings.iter().any(|found| found.what.contains(NEW) && found.line == line) {
        return None;
    }
    if !is_kept(&mutation.path) && !is_of_others(&mutation.path) {
        return Some("not named by validate");
    }
    let shown = serde_json::to_string(&session.transcript).unwrap();
    let is_seen = shown.contains(NEW) || !session.ledger.left_out(line).is_empty();
    (!is_seen).then_some("seen nowhere")
}

/// Schemas and names that clients and tools bring along: nothing of Codex's words.
fn is_of_others(path: &str) -> bool {
    let data = ["/dynamic_tools", "/final_output_json_schema", "/retained_context/", "/tools"];
    let own_names = ["/changes", "/state/environments/environments", "/state/top_level_tools"];
    data.iter().any(|part| path.contains(part)) || own_names.iter().any(|end| path.ends_with(end))
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

/// What was tried on the files of one version, and what was not as it should be.
#[derive(Default)]
struct Trial {
    seen: BTreeSet<(String, String, &'static str)>,
    counts: BTreeMap<&'static str, usize>,
    breaches: Vec<String>,
}

impl Trial {
    /// Mutates each place of each tag once, in the first file of the version that has it.
    fn mutate(&mut self, entry: &corpus::Entry) {
        let text = String::from_utf8_lossy(&entry.bytes);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let tag = format!(
                "{} {} {}",
                value["type"], value["payload"]["type"], value["payload"]["item"]["type"]
            );
            for mutation in mutations(&value) {
                let path = mutation.path.split('/').filter(|step| step.parse::<u64>().is_err());
                if self.seen.insert((tag.clone(), path.collect(), mutation.what)) {
                    self.check(entry, &lines, index, &mutation);
                }
            }
        }
    }

    fn check(&mut self, entry: &corpus::Entry, lines: &[&str], index: usize, mutation: &Mutation) {
        *self.counts.entry(mutation.what).or_default() += 1;
        let mutated = mutation.line.to_string();
        let mut all = lines.to_vec();
        all[index] = &mutated;
        let bytes = format!("{}\n", all.join("\n")).into_bytes();
        let session = of_bytes(&bytes, Options::default());
        let number = index as u64 + 1;
        let mut breach = |why: &str| {
            let place = format!("{}:{number} {} at {}", entry.name, mutation.what, mutation.path);
            self.breaches.push(format!("{place}: {why}"));
        };
        if let Err(why) = law::check(&session, law::lines(&bytes)) {
            breach(&why);
        }
        if let Some(why) = hidden(&bytes, &session, mutation, number) {
            breach(why);
        }
        let good = successes(&session, number);
        if !mutation.what.ends_with("key") && !good.is_empty() && !is_kept(&mutation.path) {
            breach(&format!("drawn as success: {good:?}"));
        }
    }
}

#[test]
fn what_a_later_codex_adds_is_named_by_validate_and_seen_and_no_success() {
    let mut versions: BTreeMap<&str, Vec<&'static corpus::Entry>> = BTreeMap::new();
    for entry in corpus::sessions() {
        versions.entry(entry.name.split('/').next().unwrap()).or_default().push(entry);
    }
    let trials: Vec<Trial> = std::thread::scope(|scope| {
        let run = |entries: Vec<&'static corpus::Entry>| {
            scope.spawn(move || {
                let mut trial = Trial::default();
                entries.iter().for_each(|entry| trial.mutate(entry));
                trial
            })
        };
        let threads: Vec<_> = versions.into_values().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(trials.len() >= 15, "{} versions only", trials.len());
    let mut counts = BTreeMap::new();
    for (what, count) in trials.iter().flat_map(|trial| &trial.counts) {
        *counts.entry(*what).or_insert(0) += count;
    }
    let mut breaches: Vec<_> = trials.into_iter().flat_map(|trial| trial.breaches).collect();
    let count = breaches.len();
    // One of each kind is enough to see what is wrong.
    let mut kinds = BTreeSet::new();
    breaches.retain(|breach| kinds.insert(breach.split_once(' ').unwrap().1.to_owned()));
    breaches.truncate(100);
    assert!(breaches.is_empty(), "{count} of {counts:?}\n{}", breaches.join("\n"));
    assert!(counts["key"] > 1_000 && counts["type"] > 400 && counts["status or role"] > 100);
    assert!(counts["block"] > 100, "{counts:?}");
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
