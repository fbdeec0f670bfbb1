//! Which fields a payload has, found by skipping from key to key.
//!
//! The normaliser reads the same line in full and tells if it is JSON; so this need not.

use super::Kind;
use crate::schema::{self, Row};

const ITEM: &str = "event_msg/item_completed";

/// The findings of a line whose tag is known.
pub(super) fn check(payload: &str, row: &'static Row) -> Vec<(Kind, String)> {
    let mut found = Vec::new();
    let is_item = row.0.starts_with(ITEM) && row.0 != ITEM;
    let outer = if is_item { schema::row(ITEM).unwrap_or(row) } else { row };
    compare(payload.as_bytes(), outer, is_item.then_some(row), &mut found);
    found
}

/// Compares the keys of an object (and of its `item`) with a row; gives where it ends.
fn compare(
    object: &[u8],
    (tag, needed, others): &Row,
    inner: Option<&Row>,
    found: &mut Vec<(Kind, String)>,
) -> usize {
    let mut seen = 0_u32;
    let end = each_key(object, |key, value| {
        let is_same = |known: &&str| known.as_bytes() == key;
        if let Some(place) = needed.iter().position(is_same) {
            seen |= 1 << place;
        } else if !others.iter().any(is_same) {
            found.push((Kind::UnknownField, format!("{tag}.{}", String::from_utf8_lossy(key))));
        }
        match inner {
            Some(row) if key == b"item" && value.first() == Some(&b'{') => {
                compare(value, row, None, found)
            }
            _ => value_end(value, 0),
        }
    });
    for (place, field) in needed.iter().enumerate() {
        if seen & (1 << place) == 0 {
            found.push((Kind::MissingField, format!("{tag}.{field}")));
        }
    }
    end
}

/// Hands out each key of an object with what follows it, and is told how long the value is;
/// gives where the object ends.
fn each_key<'a>(object: &'a [u8], mut take: impl FnMut(&'a [u8], &'a [u8]) -> usize) -> usize {
    let mut at = 1;
    loop {
        at = skip_blank(object, at);
        if object.get(at) != Some(&b'"') {
            return (at + 1).min(object.len());
        }
        let end = string_end(object, at);
        let key = object.get(at + 1..end.saturating_sub(1)).unwrap_or_default();
        at = skip_blank(object, end);
        at += take(key, object.get(at..).unwrap_or_default());
    }
}

fn skip_blank(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',' || *byte == b':';
    from + rest.iter().take_while(|byte| blank(byte)).count()
}

/// Where a string ends that begins at `from`.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(rest) = bytes.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest[found] == b'"' => return at + found + 1,
            Some(found) => at += found + 2,
            None => break,
        }
    }
    bytes.len()
}

/// Where a value ends that begins at `from`.
fn value_end(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_whatever_the_values_hold() {
        let text =
            r#"{"a":"x\"},{","b":{"c":[1,{"d":"]"}]} , "e" : -1.5e3,"f":null,"g":[]},"h":1}"#;
        let mut keys = Vec::new();
        each_key(text.as_bytes(), |key, value| {
            keys.push(String::from_utf8(key.to_vec()).unwrap());
            value_end(value, 0)
        });
        assert_eq!(keys, ["a", "b", "e", "f", "g"]);
        for cut in 0..text.len() {
            each_key(&text.as_bytes()[..cut], |_, value| value_end(value, 0));
        }
    }
}
