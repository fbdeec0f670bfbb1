//! Broken files: whatever was done to them, nothing panics and no line is lost.

use bindery_sessions::normalise::Options;
use bindery_sessions::session::of_bytes;

use crate::{corpus, law};

/// A small generator: the same corruptions in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }
}

#[test]
fn ten_thousand_corruptions_lose_no_line() {
    // Small files, of every version: many corruptions of short files find more than few of long.
    let files: Vec<_> = corpus::sessions().filter(|entry| entry.bytes.len() < 24_000).collect();
    assert!(files.len() > 100);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..10_000 {
        let file = files[dice.below(files.len())];
        let mut bytes = file.bytes.clone();
        let what = corrupt(&mut bytes, &mut dice, &files);
        let session = of_bytes(&bytes, Options::default());
        if let Err(breach) = law::check(&session, law::lines(&bytes)) {
            panic!("round {round}: {}, {what}: {breach}", file.name);
        }
    }
}

fn corrupt(bytes: &mut Vec<u8>, dice: &mut Dice, files: &[&corpus::Entry]) -> &'static str {
    let length = bytes.len();
    match dice.below(8) {
        0 => {
            bytes.truncate(dice.below(length));
            "cut"
        }
        1 => {
            for _ in 0..=dice.below(8) {
                let at = dice.below(length);
                bytes[at] ^= 1 << dice.below(8);
            }
            "flip"
        }
        2 => {
            let other = &files[dice.below(files.len())].bytes;
            let from = dice.below(other.len());
            let piece = &other[from..(from + dice.below(4_000)).min(other.len())];
            let at = dice.below(length);
            bytes.splice(at..at, piece.iter().copied());
            "splice"
        }
        3 => {
            with_lines(bytes, |lines| {
                let at = dice.below(lines.len());
                let line = lines[at].clone();
                lines.insert(dice.below(lines.len()), line);
            });
            "duplicate"
        }
        4 => {
            with_lines(bytes, |lines| {
                for _ in 0..4 {
                    let (a, b) = (dice.below(lines.len()), dice.below(lines.len()));
                    lines.swap(a, b);
                }
            });
            "reorder"
        }
        5 => {
            let at = dice.below(length);
            bytes.splice(at..at, [0xff, 0xfe, 0x00, 0xc3]);
            "non-UTF-8"
        }
        6 => {
            with_lines(bytes, |lines| {
                let at = dice.below(lines.len());
                lines.remove(at);
            });
            "drop"
        }
        _ => {
            let at = dice.below(length);
            let end = (at + dice.below(600)).min(length);
            bytes.drain(at..end);
            "hole"
        }
    }
}

fn with_lines(bytes: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> =
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    *bytes = lines.concat();
}
