//! Chunk law: cutting a recorded stream at any byte changes nothing, down to the parts.

use std::collections::BTreeMap;

use bindery_core::lines::{Line, LineSplitter};
use bindery_core::part::Part;
use serde_json::Value;

use crate::chance::Chance;
use crate::recording::{self, Player};

/// One connection of a recording: what Codex sent, and what we answered after how many lines.
#[derive(Default)]
struct Tape {
    bytes: Vec<u8>,
    lines: usize,
    answers: Vec<(usize, Value)>,
}

fn tapes(name: &str) -> Vec<Tape> {
    let mut tapes: BTreeMap<String, Tape> = BTreeMap::new();
    for line in recording::lines(name) {
        let tape = tapes.entry(line.conn).or_default();
        if line.received {
            tape.bytes.extend_from_slice(line.message.to_string().as_bytes());
            tape.bytes.push(b'\n');
            tape.lines += 1;
        } else {
            tape.answers.push((tape.lines, line.message));
        }
    }
    tapes.into_values().collect()
}

/// Plays a tape in these chunks.
fn play<'a>(tape: &Tape, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<Part>> {
    let (mut player, mut splitter, mut lines) = (Player::default(), LineSplitter::new(1 << 20), 0);
    let mut answers = tape.answers.iter().peekable();
    for chunk in chunks {
        for line in splitter.push(chunk) {
            let Line::Whole(line) = line else { panic!("a line over the limit") };
            while let Some((_, answer)) = answers.next_if(|(after, _)| *after <= lines) {
                player.answer(answer);
            }
            player.take(&line);
            lines += 1;
        }
    }
    assert_eq!(splitter.finish(), None);
    answers.for_each(|(_, answer)| player.answer(answer));
    player.turns
}

/// Cuts at these places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    for &cut in cuts {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces.push(&bytes[from..]);
    pieces
}

#[test]
fn every_recording_is_the_same_byte_by_byte() {
    for name in recording::names() {
        let (mut whole, mut bytewise) = (Vec::new(), Vec::new());
        for tape in tapes(&name) {
            whole.extend(play(&tape, [&tape.bytes[..]]));
            bytewise.extend(play(&tape, tape.bytes.chunks(1)));
        }
        assert_eq!(whole, recording::parts(&name), "{name}");
        assert_eq!(bytewise, whole, "{name}");
    }
}

/// Small recordings, and at every how many bytes they are cut: deltas, a retry, a question.
const SMALL: [(&str, usize); 3] =
    [("optout_notifications", 1), ("error_disconnect_once", 17), ("command_approval_decline", 17)];

#[test]
fn a_small_recording_may_be_cut_anywhere() {
    for (name, step) in SMALL {
        for tape in tapes(name) {
            let whole = play(&tape, [&tape.bytes[..]]);
            assert!(!whole.is_empty());
            for cut in (0..=tape.bytes.len()).step_by(step) {
                let (a, b) = tape.bytes.split_at(cut);
                assert_eq!(play(&tape, [a, b]), whole, "{name}, cut at {cut}");
            }
        }
    }
}

#[test]
fn every_recording_may_be_cut_many_times() {
    let mut chance = Chance::new(1);
    for name in recording::names() {
        for tape in tapes(&name) {
            let whole = play(&tape, [&tape.bytes[..]]);
            for _ in 0..4 {
                let count = chance.below(30);
                let mut cuts: Vec<usize> =
                    (0..count).map(|_| chance.below(tape.bytes.len() + 1)).collect();
                cuts.sort_unstable();
                let pieces = pieces(&tape.bytes, &cuts);
                assert_eq!(play(&tape, pieces), whole, "{name}, cut at {cuts:?}");
            }
        }
    }
}
