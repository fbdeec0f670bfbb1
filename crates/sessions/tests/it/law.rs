//! The law of conservation over the whole corpus.

use std::collections::BTreeMap;

use bindery_core::item::Body;
use bindery_sessions::ledger::Account;
use bindery_sessions::normalise::Options;
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
        if in_items != usize::from(is_shown) {
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
