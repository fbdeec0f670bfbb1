//! What was taken back, inherited, packed in pieces or cannot be read: each is told.

use std::path::PathBuf;

use bindery_core::item::Body;
use bindery_core::transcript::TurnRecord;
use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::normalise::{Event, Options};
use bindery_sessions::session;
use bindery_sessions::summary::SessionStatus;

use crate::corpus;

const ID: &str = "01a1e0d8-fa58-7c30-8b28-2a498ba7d4be";

fn written(bytes: &[u8], name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn turns(path: &std::path::Path) -> Vec<TurnRecord> {
    let mut turns = Vec::new();
    session::stream(path, Options::default(), |event| {
        if let Event::Turn { turn, .. } = event {
            turns.push(*turn);
        }
    })
    .unwrap();
    turns
}

#[test]
fn turns_that_were_taken_back_say_so_when_they_are_handed_out() {
    let mut count = 0;
    for entry in corpus::sessions() {
        if !String::from_utf8_lossy(&entry.bytes).contains("thread_rolled_back") {
            continue;
        }
        let (_folder, path) = written(&entry.bytes, "rollout.jsonl");
        let whole = session::of_bytes(&entry.bytes, Options::default());
        let want: Vec<_> = whole.transcript.turns.iter().map(|turn| turn.rolled_back).collect();
        let got: Vec<_> = turns(&path).iter().map(|turn| turn.rolled_back).collect();
        assert_eq!(got, want, "{}", entry.name);
        let loaded = session::load(&path, Options::default()).unwrap();
        assert_eq!(loaded.transcript, whole.transcript, "{}", entry.name);
        count += usize::from(want.contains(&true));
    }
    assert!(count > 0);
}

#[test]
fn every_frame_of_a_packed_file_is_read() {
    let name = "rollout-2026-11-15T20-20-10-01a1e0de-091e-7b70-a0eb-4db66fd8a949.jsonl.zst";
    let frame = std::fs::read(corpus::folder().join(name)).unwrap();
    let (_folder, one) = written(&frame, "one.jsonl.zst");
    // A frame of notes in between has no content.
    let note = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0], b"note".as_slice()].concat();
    let (_folder, two) = written(&[&frame[..], &note, &frame].concat(), "two.jsonl.zst");
    let lines = |path| session::load(path, Options::default()).unwrap().ledger.lines();
    assert_eq!(lines(&two), 2 * lines(&one));
    let (_folder, odd) = written(&[&frame[..], b"no frame"].concat(), "odd.jsonl.zst");
    assert!(session::load(&odd, Options::default()).is_err());
}

#[test]
fn a_long_last_line_hides_neither_status_nor_tokens() {
    let head = |kind: &str| {
        format!("{{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"{kind}\",\"payload\":")
    };
    let count = r#"{"type":"token_count","info":{"total_token_usage":{"total_tokens":1234},"last_token_usage":{}}}"#;
    for length in [20_000, 40_000, 300_000, 2_000_000] {
        let filler = format!(
            "{}{{\"type\":\"agent_message\",\"message\":\"{}\"}}}}\n",
            head("event_msg"),
            "word ".repeat(100)
        );
        let mut text = format!("{}{{\"id\":\"{ID}\"}}}}\n", head("session_meta"));
        text += &filler.repeat(400);
        text += &format!("{}{count}}}\n", head("event_msg"));
        text += &format!(
            "{}{{\"type\":\"task_complete\",\"last_agent_message\":\"{}\"}}}}\n",
            head("event_msg"),
            "x ".repeat(length / 2)
        );
        let (folder, _) =
            written(text.as_bytes(), &format!("rollout-2026-11-15T20-14-38-{ID}.jsonl"));
        let list = Catalogue::default().list(&[folder.path().to_owned()], false).unwrap();
        assert_eq!((list[0].status, list[0].tokens), (SessionStatus::Done, Some(1234)), "{length}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let (folder, _) = written(b"no zstd", &format!("rollout-2026-11-15T20-14-38-{ID}.jsonl.zst"));
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", folder.path().join("gone.jsonl")).unwrap();
    let mut catalogue = Catalogue::default();
    assert!(catalogue.list(&[folder.path().to_owned()], false).unwrap().is_empty());
    let named: Vec<_> =
        catalogue.unreadable().iter().map(|u| u.path.file_name().unwrap()).collect();
    assert_eq!(named.len(), if cfg!(unix) { 2 } else { 1 }, "{named:?}");
}

#[test]
fn a_sub_agent_is_not_titled_or_shown_with_its_parents_words() {
    let (older, newer) = ("Please do SCN:agents now", "let somebody count");
    for (version, words) in [("0.153.0", older), ("0.166.0", older), ("0.169.0", newer)] {
        let file = corpus::file(&format!("{version}/agents2.1.rollout.jsonl"));
        let (folder, path) =
            written(&file.bytes, &format!("rollout-2026-11-15T20-14-38-{ID}.jsonl"));
        let list = Catalogue::default().list(&[folder.path().to_owned()], false).unwrap();
        let title = list[0].title.clone().unwrap();
        assert!(!title.contains(words), "{version}: {title}");
        // Its prompt is encrypted; the name of the task is not.
        let task = title.rsplit('/').next().unwrap();
        assert!(["look_files", "count"].contains(&task), "{title}");
        let turns = turns(&path);
        let asked = turns
            .iter()
            .flat_map(|turn| &turn.items)
            .filter(|item| matches!(&item.body, Body::User { text, .. } if text.contains(words)));
        let marks: Vec<_> = asked.map(|item| item.origin.mark.as_deref()).collect();
        assert_eq!(marks, [Some("inherited")], "{version}");
    }
}

#[test]
fn the_last_turns_name_their_lines_as_the_whole_file_does() {
    let mut text = String::new();
    let bytes = &corpus::file("0.166.0/app_paginated.rollout.jsonl").bytes;
    let lines: Vec<_> = std::str::from_utf8(bytes).unwrap().lines().collect();
    text.push_str(lines[0]);
    text.push('\n');
    // More than the window that is read first.
    while text.len() < 600_000 {
        text.push_str(&lines[1..].join("\n"));
        text.push('\n');
    }
    let odd = "{\"timestamp\":\"2026-11-15T20:14:39.000Z\",\"ordinal\":9,\"type\":\"tomorrow\",\"payload\":{}}\n";
    text.push_str(odd);
    let (_folder, path) = written(text.as_bytes(), "rollout.jsonl");
    let whole = session::load(&path, Options::default()).unwrap();
    let tail = session::tail(&path, 1, Options::default()).unwrap();
    let (last, want) =
        (tail.transcript.turns.last().unwrap(), whole.transcript.turns.last().unwrap());
    let lines = |turn: &TurnRecord| -> Vec<u64> {
        turn.items.iter().flat_map(|item| item.origin.lines.clone()).collect()
    };
    assert_eq!(lines(last), lines(want));
    assert_eq!(last.items, want.items);
}

#[test]
fn a_missing_parent_is_named() {
    let base = serde_json::json!({
        "thread_id": "01a1e0d9-66ec-7f42-8535-d9c43664c8cd", "end_ordinal_exclusive": 4,
    });
    let payload = serde_json::json!({ "id": ID, "history_base": base });
    let head = format!(
        "{{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"session_meta\",\"payload\":{payload}}}\n"
    );
    let (_folder, path) = written(head.as_bytes(), "rollout.jsonl");
    let chain = session::chain(&path, &[]);
    let missing = session::missing_base(&chain, &[]);
    assert_eq!(missing.as_deref(), Some("01a1e0d9-66ec-7f42-8535-d9c43664c8cd"));
}
