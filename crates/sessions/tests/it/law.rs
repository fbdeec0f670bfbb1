//! The law of conservation over the whole corpus.

use std::collections::BTreeMap;

use bindery_core::item::{Body, Status};
use bindery_sessions::ledger::Account;
use bindery_sessions::normalise::{Event, Normaliser, Options};
use bindery_sessions::record::{Limits, Records};
use bindery_sessions::session::{Session, of_bytes};
use serde_json::{Value, json};

use crate::corpus;

/// Checks that every line is accounted for exactly once, and that the transcript agrees.
pub(crate) fn check(session: &Session, lines: u64) -> Result<(), String> {
    let ledger = &session.ledger;
    if ledger.lines() != lines {
        return Err(format!("{} of {lines} lines read", ledger.lines()));
    }
    let missing = ledger.missing();
    if !missing.is_empty() {
        return Err(format!("lines without account: {missing:?}"));
    }
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for turn in &session.transcript.turns {
        let items = turn.items.iter().flat_map(|item| &item.origin.lines);
        items.for_each(|line| *seen.entry(*line).or_default() += 1);
    }
    for line in 1..=lines {
        let in_items = seen.get(&line).copied().unwrap_or(0);
        let is_shown = matches!(
            ledger.account(line),
            Some(Account::Shown | Account::Folded | Account::Unknown)
        );
        // A line of several records is in as many items.
        let records = ledger.records(line);
        let fits = match records {
            1 => in_items == usize::from(is_shown),
            _ => in_items <= records && (in_items > 0) == is_shown,
        };
        if !fits {
            return Err(format!("line {line} is in {in_items} items: {:?}", ledger.account(line)));
        }
    }
    Ok(())
}

pub(crate) fn lines(bytes: &[u8]) -> u64 {
    let feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    feeds + u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n"))
}

#[test]
fn every_line_of_the_corpus_is_accounted_for_and_known() {
    let mut breaches = Vec::new();
    let mut count = 0;
    for entry in corpus::sessions() {
        let session = of_bytes(&entry.bytes, Options::default());
        count += session.ledger.lines();
        if let Err(breach) = check(&session, lines(&entry.bytes)) {
            breaches.push(format!("{}: {breach}", entry.name));
        }
        for item in session.transcript.turns.iter().flat_map(|turn| &turn.items) {
            if let Body::Unknown { tag, why, .. } = &item.body {
                breaches.push(format!("{}: {tag}: {why}", entry.name));
            }
        }
    }
    assert_eq!(breaches, [""; 0]);
    assert!(count > 14_000, "{count} lines only");
}

#[test]
fn a_turn_of_any_length_is_handed_out_in_pieces_and_put_together() {
    let head =
        "{\"timestamp\":\"2026-02-01T10:00:00.000Z\",\"type\":\"response_item\",\"payload\":";
    let mut text = String::new();
    for call in 0..10_000 {
        text += &format!(
            "{head}{{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{{}}\",\"call_id\":\"c{call}\"}}}}\n\
             {head}{{\"type\":\"function_call_output\",\"call_id\":\"c{call}\",\"output\":\"{call}\"}}}}\n"
        );
    }
    let mut pieces = 0;
    let mut records = Records::new(text.as_bytes(), Limits::default());
    let mut normaliser = Normaliser::new(Options::default(), |_| pieces += 1);
    while let Some(record) = records.next().unwrap() {
        assert!(normaliser.take(&record));
    }
    normaliser.finish();
    assert!(pieces > 1);
    let session = of_bytes(text.as_bytes(), Options::default());
    assert_eq!(check(&session, 20_000), Ok(()));
    assert_eq!(session.transcript.turns.len(), 1);
    let items = &session.transcript.turns[0].items;
    assert_eq!(items.len(), 10_000);
    assert!(items.iter().all(|item| item.status == Status::Ok && item.origin.lines.len() == 2));
}

/// The largest piece that was handed out of a file, in bytes of JSON, and how many there were.
fn pieces(lines: impl Iterator<Item = String>) -> (usize, usize) {
    let text: String = lines.collect();
    let (mut largest, mut count) = (0, 0);
    let mut normaliser = Normaliser::new(Options::default(), |event| {
        let Event::Turn { turn, .. } = event else { return };
        largest = largest.max(serde_json::to_vec(&turn).unwrap().len());
        count += 1;
    });
    let mut records = Records::new(text.as_bytes(), Limits::default());
    while let Some(record) = records.next().unwrap() {
        normaliser.take(&record);
    }
    let (_, ledger) = normaliser.finish();
    assert_eq!(ledger.missing(), [0; 0]);
    (largest, count)
}

/// Whatever a file is full of, no more than a piece of it is held: outputs of one long turn,
/// setup, lines that nobody understands, with no turn around them.
#[test]
fn no_file_is_held_whole_whatever_it_is_full_of() {
    let line = |kind: &str, payload: Value| {
        let time = "2026-02-01T10:00:00.000Z";
        format!("{}\n", json!({ "timestamp": time, "type": kind, "payload": payload }))
    };
    let words = "word ".repeat(50_000);
    let outputs = (0..200).flat_map(|call| {
        let id = format!("c{call}");
        let call = json!({ "type": "function_call", "name": "shell", "arguments": "{}",
            "call_id": id });
        let output = json!({ "type": "function_call_output", "call_id": id, "output": words });
        [line("response_item", call), line("response_item", output)]
    });
    let setup = (0..200).map(|_| {
        line(
            "response_item",
            json!({ "type": "message", "role": "developer",
            "content": [{ "type": "input_text", "text": words }] }),
        )
    });
    let begun = std::iter::once(line("event_msg", json!({ "type": "task_started" })));
    let unknown = (0..200).map(|_| line("tomorrow", json!({ "text": words })));
    let after_a_turn = ["task_started", "task_complete"].into_iter();
    let after_a_turn = after_a_turn.map(|kind| line("event_msg", json!({ "type": kind })));
    let cases = [
        ("outputs", pieces(outputs)),
        ("setup in a turn", pieces(begun.chain(setup.clone()))),
        ("setup", pieces(setup)),
        ("unknown", pieces(unknown)),
        (
            "unknown after a turn",
            pieces(
                after_a_turn.chain((0..200).map(|_| line("tomorrow", json!({ "text": words })))),
            ),
        ),
    ];
    for (what, (largest, count)) in cases {
        assert!(count > 1 && largest < 24 << 20, "{what}: {count} pieces, {largest} bytes");
    }
}
