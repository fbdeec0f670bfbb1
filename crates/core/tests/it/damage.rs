//! Damaged lines: nothing panics, and every stream still keeps the contract.

use bindery_core::content::Gather;
use bindery_core::part::Part;
use bindery_core::spec::Spec;
use bindery_core::transcript::Transcript;
use serde_json::Value;

use crate::chance::Chance;
use crate::recording::{self, Player};
use crate::replay::{check, sketch};

/// Lines damaged in one run of the tests.
const LINES: usize = 20_000;

/// How a line is damaged.
type Damage = fn(&mut Chance, &mut Vec<u8>, &[Vec<u8>]);

const DAMAGES: [Damage; 12] = [
    flip,
    overwrite,
    cut_off,
    cut_out,
    splice,
    repeat_a_key,
    huge_number,
    nest,
    retype,
    rename,
    swap_ids,
    invalid_utf8,
];

#[test]
fn no_damage_breaks_the_decoder_or_the_contract() {
    let tapes: Vec<(String, Vec<Vec<u8>>)> =
        recording::names().into_iter().map(|name| (name.clone(), received(&name))).collect();
    let pool: Vec<Vec<u8>> = tapes.iter().flat_map(|(_, lines)| lines.clone()).collect();
    let (mut damaged, mut seed) = (0, 0);
    while damaged < LINES {
        for (name, lines) in &tapes {
            seed += 1;
            let mut chance = Chance::new(seed);
            let (lines, count) = spoil(&mut chance, lines, &pool);
            damaged += count;
            let context = format!("{name}, seed {seed}");
            survive(&lines, &context);
        }
    }
}

fn received(name: &str) -> Vec<Vec<u8>> {
    let lines = recording::lines(name).into_iter().filter(|line| line.received);
    lines.map(|line| line.message.to_string().into_bytes()).collect()
}

/// Damages some lines, and doubles, drops and swaps others.
fn spoil(chance: &mut Chance, lines: &[Vec<u8>], pool: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
    let (mut spoilt, mut damaged) = (Vec::new(), 0);
    // Some streams are hit hard, some hardly at all, so that damage meets turns that still live.
    let mercy = 1 + chance.below(8);
    for line in lines {
        let mut line = line.clone();
        if chance.once_in(mercy) {
            for _ in 0..=chance.below(2) {
                chance.of(&DAMAGES)(chance, &mut line, pool);
            }
            damaged += 1;
        }
        match chance.below(24) {
            0 => {}
            1 => spoilt.extend([line.clone(), line]),
            2 if !spoilt.is_empty() => spoilt.insert(spoilt.len() - 1, line),
            3 => spoilt.extend([line, chance.of(pool).clone()]),
            _ => spoilt.push(line),
        }
    }
    (spoilt, damaged)
}

fn survive(lines: &[Vec<u8>], context: &str) {
    let mut player = Player::default();
    lines.iter().for_each(|line| player.take(line));
    for parts in player.finish() {
        if let Err(breach) = check(&parts) {
            panic!("{context}: {breach}\n{}", sketch(&parts));
        }
        assert!(matches!(parts.last(), Some(Part::Finish { .. })), "{context}: no finish");
        fold(&parts);
    }
}

/// Everything that takes parts takes these too.
fn fold(parts: &[Part]) {
    let (mut transcript, mut gather) = (Transcript::default(), Gather::new(Spec::V3));
    for part in parts {
        transcript.apply(part);
        gather.push(part);
        assert!(part.to_json(Spec::V4).is_some());
        let _ = part.to_json(Spec::V3);
    }
    gather.finish();
}

#[expect(clippy::ptr_arg, reason = "all damages have one shape")]
fn flip(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = place(chance, line) {
        line[at] ^= 1 << chance.below(8);
    }
}

#[expect(clippy::ptr_arg, reason = "all damages have one shape")]
fn overwrite(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = place(chance, line) {
        line[at] = *chance.of(b"{}[]\",:0-e\\ \x00n");
    }
}

fn cut_off(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    line.truncate(chance.below(line.len() + 1));
}

fn cut_out(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let (a, b) = (chance.below(line.len() + 1), chance.below(line.len() + 1));
    line.drain(a.min(b)..a.max(b));
}

fn splice(chance: &mut Chance, line: &mut Vec<u8>, pool: &[Vec<u8>]) {
    let other = chance.of(pool);
    line.truncate(chance.below(line.len() + 1));
    line.extend_from_slice(&other[chance.below(other.len())..]);
}

/// Says one field of the line a second time.
fn repeat_a_key(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let text = String::from_utf8_lossy(line).into_owned();
    let colons: Vec<usize> = text.match_indices("\":").map(|(at, _)| at).collect();
    if colons.is_empty() {
        return;
    }
    let end = *chance.of(&colons);
    let Some(start) = text[..end].rfind('"') else { return };
    let value = *chance.of(&["null", "1", "\"twice\"", "{}", "[]"]);
    let field = format!("{}:{value},", &text[start..=end]);
    *line = format!("{}{field}{}", &text[..start], &text[start..]).into_bytes();
}

const NUMBERS: [&str; 10] = [
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "9223372036854775807",
    "4294967296",
    "1e308",
    "1e999",
    "-0",
    "0.1",
    "-1",
];

fn huge_number(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let number = *chance.of(&NUMBERS);
    replace(chance, line, Value::is_number, |_| number.to_owned());
}

fn nest(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let depth = *chance.of(&[3, 120, 130, 20_000]);
    replace(
        chance,
        line,
        |_| true,
        |old| format!("{}{old}{}", "[".repeat(depth), "]".repeat(depth)),
    );
}

fn retype(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let other = *chance.of(&["null", "0", "\"\"", "true", "[]", "{}", "[null]", "{\"x\":1}"]);
    replace(chance, line, |_| true, |_| other.to_owned());
}

const WORDS: [&str; 9] = [
    "turn/completed",
    "item/completed",
    "item/started",
    "error",
    "item/agentMessage/delta",
    "agentMessage",
    "commandExecution",
    "reasoning",
    "\u{fffd}\u{0}🦀",
];

fn rename(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let word = serde_json::to_string(chance.of(&WORDS)).unwrap();
    replace(chance, line, Value::is_string, |_| word.clone());
}

/// Gives a string the value of another: items under the names of others, other threads, turns.
fn swap_ids(chance: &mut Chance, line: &mut Vec<u8>, pool: &[Vec<u8>]) {
    let Ok(other) = serde_json::from_slice::<Value>(chance.of(pool).as_slice()) else { return };
    let key = *chance.of(&["itemId", "threadId", "turnId", "id"]);
    let Some(id) = find(&other, key) else { return };
    let id = id.to_string();
    replace(chance, line, Value::is_string, |_| id.clone());
}

fn invalid_utf8(chance: &mut Chance, line: &mut Vec<u8>, _: &[Vec<u8>]) {
    let at = chance.below(line.len() + 1);
    line.splice(at..at, chance.of(&[&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\\ud800"]).to_vec());
}

fn place(chance: &mut Chance, line: &[u8]) -> Option<usize> {
    (!line.is_empty()).then(|| chance.below(line.len()))
}

/// Replaces one value of a line that is JSON by other text.
fn replace(
    chance: &mut Chance,
    line: &mut Vec<u8>,
    fits: impl Fn(&Value) -> bool,
    with: impl Fn(&str) -> String,
) {
    let Ok(mut root) = serde_json::from_slice::<Value>(line) else { return };
    let mut paths = Vec::new();
    walk(&root, &mut String::new(), &mut |path, value| {
        if fits(value) {
            paths.push(path.to_owned());
        }
    });
    if paths.is_empty() {
        return;
    }
    let Some(value) = root.pointer_mut(chance.of(&paths).as_str()) else { return };
    let text = with(&std::mem::replace(value, Value::from(MARK)).to_string());
    *line = root.to_string().replace(&format!("\"{MARK}\""), &text).into_bytes();
}

const MARK: &str = "<the damaged place>";

fn walk(value: &Value, path: &mut String, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, value);
    let children: Vec<(String, &Value)> = match value {
        Value::Array(values) => {
            values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let length = path.len();
        path.push('/');
        path.push_str(&name);
        walk(child, path, visit);
        path.truncate(length);
    }
}

fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields
            .get(key)
            .filter(|value| value.is_string())
            .or_else(|| fields.values().find_map(|value| find(value, key))),
        Value::Array(values) => values.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}
