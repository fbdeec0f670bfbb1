//! The same JSON in other spellings: blanks, the order of keys and escapes change nothing.

use std::collections::BTreeMap;

use bindery_sessions::find;
use bindery_sessions::normalise::Options;
use bindery_sessions::session::{of_bytes, tail};
use bindery_sessions::summary::{Reader, Summary};
use serde_json::value::RawValue;

use crate::corpus;

type Spelling = fn(&str) -> String;

type Fields = BTreeMap<String, Box<RawValue>>;

/// Keys of the line, its payload and the item in it in alphabetical order.
fn reordered(line: &str) -> String {
    let sorted = |text: &str| serde_json::from_str::<Fields>(text).unwrap();
    let raw = |fields: &Fields| RawValue::from_string(serde_json::to_string(fields).unwrap());
    let mut outer = sorted(line);
    if let Some(payload) = outer.get("payload").map(|payload| sorted(payload.get())) {
        let mut payload = payload;
        if let Some(item) = payload.get("item").map(|item| sorted(item.get())) {
            payload.insert("item".to_owned(), raw(&item).unwrap());
        }
        outer.insert("payload".to_owned(), raw(&payload).unwrap());
    }
    serde_json::to_string(&outer).unwrap()
}

/// Blanks after colons and commas, and escapes in keys and type words, where they are asked for.
fn respelt(line: &str, blanks: bool, escapes: bool) -> String {
    let (mut out, mut rest, mut last_key) = (String::new(), line, String::new());
    while let Some(letter) = rest.chars().next() {
        if letter != '"' {
            out.push(letter);
            if blanks && matches!(letter, ':' | ',' | '{') {
                out.push(' ');
            }
            rest = &rest[letter.len_utf8()..];
            continue;
        }
        let mut end = 1;
        while rest.as_bytes()[end] != b'"' {
            end += if rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
        }
        let (text, after) = rest.split_at(end + 1);
        let is_key = after.starts_with(':');
        let inner = &text[1..text.len() - 1];
        let is_word = !is_key && matches!(last_key.as_str(), "type" | "role" | "status" | "name");
        match inner.chars().next() {
            Some(first) if escapes && (is_key || is_word) && first.is_ascii_alphanumeric() => {
                out.push_str(&format!("\"\\u{:04x}{}\"", u32::from(first), &inner[1..]));
            }
            _ => out.push_str(text),
        }
        last_key = if is_key { inner.to_owned() } else { String::new() };
        rest = after;
    }
    out
}

fn each_line(bytes: &[u8], spell: impl Fn(&str) -> String) -> Vec<u8> {
    let mut out = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).unwrap();
        match serde_json::from_str::<Fields>(text) {
            Ok(_) => out.extend_from_slice(spell(text.trim_end()).as_bytes()),
            Err(_) => out.extend_from_slice(text.trim_end().as_bytes()),
        }
        if line.ends_with(b"\n") {
            out.push(b'\n');
        }
    }
    out
}

/// The row of a list, without what the spelling itself changes.
fn row(folder: &std::path::Path, bytes: &[u8]) -> Summary {
    let path =
        folder.join("rollout-2026-11-15T20-14-38-01a1e0d8-fa58-7c30-8b28-2a498ba7d4be.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let file = find::resolve(path.to_str().unwrap(), &[]).unwrap();
    let mut summary = Reader::default().summary(&file, true).unwrap();
    (summary.size, summary.updated_ms) =
        (0, summary.updated_ms.filter(|at| *at != file.modified_ms));
    summary
}

#[test]
fn every_spelling_of_a_file_reads_alike() {
    let folder = tempfile::tempdir().unwrap();
    let spellings: [(&str, Spelling); 4] = [
        ("blanks", |line| respelt(line, true, false)),
        ("order", reordered),
        ("escapes", |line| respelt(line, false, true)),
        ("all", |line| respelt(&reordered(line), true, true)),
    ];
    let mut breaches = Vec::new();
    for entry in corpus::sessions() {
        let plain = of_bytes(&entry.bytes, Options::default());
        let plain_row = row(folder.path(), &entry.bytes);
        for (name, spell) in spellings {
            let bytes = each_line(&entry.bytes, spell);
            let other = of_bytes(&bytes, Options::default());
            if plain.transcript != other.transcript {
                breaches.push(format!("{} {name}: transcript", entry.name));
            }
            if plain.ledger != other.ledger {
                breaches.push(format!("{} {name}: ledger", entry.name));
            }
            let other_row = row(folder.path(), &bytes);
            if plain_row != other_row {
                breaches.push(format!("{} {name}: {plain_row:?} {other_row:?}", entry.name));
            }
        }
    }
    assert_eq!(breaches.len(), 0, "{:#?}", &breaches[..breaches.len().min(20)]);
}

#[test]
fn the_last_turn_of_a_long_file_is_found_in_any_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let line = |payload: &str| {
        format!(
            "{{\"timestamp\":\"2026-02-01T10:00:00.000Z\",\"type\":\"event_msg\",\"payload\":{payload}}}\n"
        )
    };
    let mut text = String::new();
    let padding = "x".repeat(40_000);
    for turn in 0..20 {
        text += &line(&format!("{{\"type\":\"task_started\",\"turn_id\":\"t{turn}\"}}"));
        text +=
            &line(&format!("{{\"type\":\"user_message\",\"message\":\"ask {turn} {padding}\"}}"));
        text += &line(&format!("{{\"type\":\"task_complete\",\"turn_id\":\"t{turn}\"}}"));
    }
    let plain = folder.path().join("plain.jsonl");
    std::fs::write(&plain, &text).unwrap();
    let want = tail(&plain, 1, Options::default()).unwrap();
    assert!(want.ledger.lines() < 60, "{}", want.ledger.lines());
    for spell in [|line: &str| respelt(line, true, false), |line: &str| respelt(line, false, true)]
    {
        let path = folder.path().join("other.jsonl");
        std::fs::write(&path, each_line(text.as_bytes(), spell)).unwrap();
        let session = tail(&path, 1, Options::default()).unwrap();
        assert_eq!(session.transcript.turns, want.transcript.turns);
        assert!(session.ledger.lines() < 60, "{}", session.ledger.lines());
    }
}
