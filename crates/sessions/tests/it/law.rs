//! The law of conservation over the whole corpus.

use std::collections::BTreeMap;

use bindery_core::item::{Body, Status};
use bindery_sessions::ledger::Account;
use bindery_sessions::normalise::{Normaliser, Options};
use bindery_sessions::record::{Limits, Records};
use bindery_sessions::session::{Session, of_bytes};

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
