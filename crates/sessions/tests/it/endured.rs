//! Resuming what is old, cut, garbled or too long.

use std::path::Path;

use bindery_sessions::resume::{self, Options, Resumed};
use serde_json::{Value, json};

use crate::corpus;

fn load(path: &Path, bytes: &[u8]) -> Resumed {
    std::fs::write(path, bytes).unwrap();
    resume::load(path, &[], Options::default()).unwrap()
}

/// What is in a history, for reading.
fn sketch(history: &[Value]) -> Vec<String> {
    let name = |item: &Value| {
        let kind = item["type"].as_str().unwrap_or_default();
        let role = item["role"].as_str().unwrap_or_default();
        format!("{kind} {role}").trim().to_owned()
    };
    history.iter().map(name).collect()
}

#[test]
fn every_file_of_the_corpus_has_a_history_and_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    for entry in corpus::sessions() {
        let resumed = load(&path, &entry.bytes);
        assert_eq!((resumed.broken, resumed.shortened), (0, 0), "{}", entry.name);
        assert!(resumed.unknown.is_empty(), "{}: {:?}", entry.name, resumed.unknown);
        assert!(resumed.meta["id"].is_string(), "{}", entry.name);
        let items = resumed.turns.iter().flat_map(|turn| turn["items"].as_array().unwrap());
        for item in items {
            assert!(item["id"].is_string() && item["type"].is_string(), "{}", entry.name);
        }
        let few = resume::load(&path, &[], Options { turns: 0, ..Options::default() }).unwrap();
        assert_eq!(few.history, resumed.history, "{}", entry.name);
    }
}

#[test]
fn the_oldest_files_are_resumed_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let resumed = load(&path, &corpus::file("0.20.0/shell.rollout.jsonl").bytes);
    let history = sketch(&resumed.history);
    assert!(history.contains(&"message user".to_owned()), "{history:?}");
    assert!(history.contains(&"function_call_output".to_owned()), "{history:?}");
    assert_eq!(resumed.turns.len(), 1);
    let kinds = resumed.turns[0]["items"].as_array().unwrap();
    assert_eq!(kinds.first().unwrap()["type"], "userMessage");
    assert_eq!(kinds.last().unwrap()["type"], "agentMessage");
}

#[test]
fn a_file_cut_anywhere_is_resumed_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let bytes = &corpus::file("0.166.0/shell.rollout.jsonl").bytes;
    let whole = load(&path, bytes);
    let mut last = 0;
    for end in (0..bytes.len()).step_by(97) {
        let cut = load(&path, &bytes[..end]);
        assert!(cut.broken <= 1);
        let known = cut.history.len().min(whole.history.len());
        // A call that is not answered yet is answered by us.
        let same = (0..known).filter(|at| cut.history[*at] == whole.history[*at]).count();
        assert!(same + 1 >= known && cut.history.len() + 1 >= last, "{end}");
        last = cut.history.len();
    }
}

#[test]
fn garbage_between_lines_is_counted_and_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let bytes = &corpus::file("0.98.0/shell.rollout.jsonl").bytes;
    let whole = load(&path, bytes);
    let mut garbled = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        garbled.extend_from_slice(line);
        garbled.extend_from_slice(b"{\"timestamp\":\"2026\",\"type\":\"response_item\",\"pay\n");
        garbled.extend_from_slice(b"\xff\x00\n\n");
        garbled.extend_from_slice(b"{\"timestamp\":\"t\",\"type\":\"tomorrow\",\"payload\":{}}\n");
    }
    let resumed = load(&path, &garbled);
    assert_eq!(resumed.history, whole.history);
    assert_eq!(resumed.turns, whole.turns);
    assert_eq!((resumed.broken, resumed.unknown["tomorrow"]), (2 * whole.lines, whole.lines));
}

#[test]
fn a_history_over_the_limit_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let item = |text: &str| {
        let content = json!([{ "type": "input_text", "text": text }]);
        let payload = json!({ "type": "message", "role": "user", "content": content });
        format!("{}\n", json!({ "timestamp": "t", "type": "response_item", "payload": payload }))
    };
    let compacted = json!({ "message": "", "replacement_history": [] });
    let compacted = json!({ "timestamp": "t", "type": "compacted", "payload": compacted });
    let long = item(&"x".repeat(60_000));
    let options = Options { history: 100_000, ..Options::default() };
    std::fs::write(&path, format!("{long}{long}")).unwrap();
    let error = resume::load(&path, &[], options).unwrap_err();
    assert_eq!(error.code(), "too_long");
    assert!(error.hint().unwrap().contains("compact"));
    // What was compacted away does not count.
    std::fs::write(&path, format!("{long}{compacted}\n{long}")).unwrap();
    assert_eq!(resume::load(&path, &[], options).unwrap().history.len(), 1);
}

#[test]
fn only_the_last_turns_are_kept_if_so_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let bytes = &corpus::file("0.166.0/app_paginated.rollout.jsonl").bytes;
    let all = load(&path, bytes);
    let some = resume::load(&path, &[], Options { turns: 2, ..Options::default() }).unwrap();
    let surplus = all.turns.len() - 2;
    assert_eq!(some.turns, all.turns[surplus..]);
    assert_eq!(some.earlier_turns, surplus as u64);
}
