//! Sessions for the bench, made from turns that Codex really wrote; the same in every run.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use bindery::sessions::clock::rfc3339;

/// Sessions in the home.
pub(super) const SESSIONS: usize = 500;
const TOTAL: f64 = 1.024e9;
const LONG: u64 = 200_000_000;
/// July 2026.
const BASE_MS: i64 = 1_782_896_400_000;
/// Of everything that decides what is made.
const STAMP: &str = "3";

/// What was made.
pub(super) struct Data {
    /// A Codex home with a gigabyte of sessions.
    pub(super) home: PathBuf,
    /// One session of 200 MB.
    pub(super) long: PathBuf,
}

/// Makes the sessions, unless they are there.
pub(super) fn make(pool: &Path, folder: &Path) -> anyhow::Result<Data> {
    let (home, long) = (folder.join("home"), folder.join("long.jsonl"));
    let stamp = folder.join("made");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == STAMP) {
        return Ok(Data { home, long });
    }
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let pool = Pool::read(pool)?;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let weights: Vec<f64> = (0..SESSIONS).map(|_| (1.1 * dice.normal()).exp()).collect();
    let scale = TOTAL / weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        let start = BASE_MS + index as i64 * 120 * 86_400_000 / SESSIONS as i64;
        let id = dice.uuid(start);
        let archived = dice.below(20) == 0;
        let path = place(&home, start, &id, archived);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        pool.session(&path, &id, (weight * scale) as u64, start, &mut dice)?;
    }
    let id = dice.uuid(BASE_MS);
    pool.session(&long, &id, LONG, BASE_MS, &mut dice)?;
    fs::write(stamp, STAMP)?;
    Ok(Data { home, long })
}

/// A session of 4 GB, a hundred lines of which have 40 MB.
pub(super) fn make_huge(long: &Path, path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut head = String::new();
    File::open(long)?.take(4_000_000).read_to_string(&mut head)?;
    let lines: Vec<&str> = head.lines().collect();
    let whole = &lines[..lines.len() - 1];
    writeln!(out, "{}", whole[0])?;
    let block = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".repeat(1_000);
    for index in 0..100 {
        for line in whole.iter().skip(1 + index % 50).take(20) {
            writeln!(out, "{line}")?;
        }
        let head = [
            format!("{{\"timestamp\":\"2026-07-01T09:00:00.000Z\",\"ordinal\":{index},"),
            "\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\","
                .to_owned(),
            "\"content\":[{\"type\":\"input_text\",\"text\":\"look\"},".to_owned(),
            "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,".to_owned(),
        ];
        out.write_all(head.concat().as_bytes())?;
        for _ in 0..40_000_000 / block.len() {
            out.write_all(block.as_bytes())?;
        }
        writeln!(out, "\"}}]}}}}")?;
    }
    Ok(out.flush()?)
}

fn place(home: &Path, start: i64, id: &str, archived: bool) -> PathBuf {
    let time = rfc3339(start);
    let (date, clock) = (&time[..10], time[11..19].replace(':', "-"));
    let name = format!("rollout-{date}T{clock}-{id}.jsonl");
    match archived {
        true => home.join("archived_sessions").join(name),
        false => home.join("sessions").join(date.replace('-', "/")).join(name),
    }
}

/// Real heads and turns, without time and number.
struct Pool {
    heads: Vec<String>,
    turns: Vec<Vec<String>>,
}

impl Pool {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        bindery::sessions::record::open(path)?.read_to_string(&mut text)?;
        let mut pool = Self { heads: Vec::new(), turns: Vec::new() };
        for line in text.lines() {
            let Some(body) = line.find("\"type\":\"").map(|at| &line[at..]) else { continue };
            if body.starts_with("\"type\":\"session_meta\"") {
                pool.heads.push(body.to_owned());
                continue;
            }
            if body.starts_with("\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\"") {
                pool.turns.push(Vec::new());
            }
            pool.turns.last_mut().context("a turn")?.push(body.to_owned());
        }
        Ok(pool)
    }

    fn session(
        &self,
        path: &Path,
        id: &str,
        size: u64,
        start: i64,
        dice: &mut Dice,
    ) -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let (mut written, mut ordinal, mut time) = (0, 0, start);
        let head = &self.heads[dice.below(self.heads.len())];
        let old =
            head.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..36)).unwrap_or_default();
        let mut emit = |body: &str, time: i64| -> anyhow::Result<u64> {
            let stamp = rfc3339(time);
            let stamp = stamp.trim_end_matches('Z');
            let line =
                format!("{{\"timestamp\":\"{stamp}.{:03}Z\",\"ordinal\":{ordinal},", time % 1_000);
            out.write_all(line.as_bytes())?;
            out.write_all(body.as_bytes())?;
            out.write_all(b"\n")?;
            ordinal += 1;
            Ok((line.len() + body.len() + 1) as u64)
        };
        written += emit(&head.replace(old, id), time)?;
        for number in 0.. {
            let turn = &self.turns[dice.below(self.turns.len())];
            let mut names = HashMap::new();
            for body in turn {
                time += dice.below(1_800) as i64 + 1;
                written += emit(&renamed(body, number, time, &mut names, dice), time)?;
                if number > 0 && written >= size {
                    return Ok(out.flush()?);
                }
            }
            time += dice.below(240_000) as i64;
            if written >= size {
                break;
            }
        }
        Ok(out.flush()?)
    }
}

/// The line with ids of its own: UUIDs mapped, numbered ids prefixed with the turn's number.
fn renamed(
    body: &str,
    turn: u64,
    time: i64,
    names: &mut HashMap<String, String>,
    dice: &mut Dice,
) -> String {
    let mut text = String::with_capacity(body.len() + 256);
    let mut rest = body;
    while let Some(at) = rest.find(['-', '_']) {
        let is_uuid = rest.as_bytes()[at] == b'-'
            && at >= 8
            && rest.get(at - 8..at + 28).is_some_and(is_uuid);
        if is_uuid {
            let old = &rest[at - 8..at + 28];
            let new = names.entry(old.to_owned()).or_insert_with(|| dice.uuid(time));
            text.push_str(&rest[..at - 8]);
            text.push_str(new);
            rest = &rest[at + 28..];
            continue;
        }
        text.push_str(&rest[..=at]);
        let numbered = ["call", "rs", "msg", "fc", "ctc", "ws", "resp"];
        let after_word = numbered.iter().any(|word| rest[..at].ends_with(word));
        if rest.as_bytes()[at] == b'_'
            && after_word
            && rest.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit)
        {
            text.push_str(&format!("{turn}_"));
        }
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    })
}

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        let part = |bits: u64| ((bits >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        let (a, b) = (part(self.next()), part(self.next()));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn uuid(&mut self, time: i64) -> String {
        let (a, b) = (self.next(), self.next());
        let head = format!("{:012x}", time & 0xffff_ffff_ffff);
        let (c, d) = (a >> 52, 0x8000 | (a & 0x3fff));
        format!("{}-{}-7{c:03x}-{d:04x}-{:012x}", &head[..8], &head[8..], b & 0xffff_ffff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_and_the_rest_is_as_it_was() {
        let old = "01a1e0d8-fa58-7c30-8b28-2a498ba7d4be";
        let body = format!("\"a-b\":\"{old}\",\"c\":\"call_4_1\",\"d\":\"x_y {old}\"}}");
        let (mut names, mut dice) = (HashMap::new(), Dice(7));
        let new = renamed(&body, 3, 5, &mut names, &mut dice);
        let id = names.get(old).unwrap();
        assert_eq!(new, body.replace(old, id).replace("call_4_1", "call_3_4_1"));
        assert!(is_uuid(id));
    }
}
