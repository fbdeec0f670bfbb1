//! Lines made fit to be copied from: valid UTF-8, and no halves of surrogate pairs.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Preparing the search costs as much as searching a short line.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));

/// The line as text. Pieces of it go out as they stand, so they must be good JSON anywhere.
pub(super) fn repair(line: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    };
    match ESCAPE.find(text.as_bytes()) {
        Some(first) => match without_halves(&text, first) {
            Some(whole) => Cow::Owned(whole),
            None => text,
        },
        None => text,
    }
}

/// Replaces each escape that is half a surrogate pair; none if there is none.
fn without_halves(text: &str, first: usize) -> Option<String> {
    // Backslashes come in pairs before an escape of their own, so the walk starts at a safe place.
    let mut at = text.as_bytes()[..first].iter().rposition(|&byte| byte != b'\\').unwrap_or(0);
    let (mut whole, mut copied) = (String::new(), 0);
    while let Some(offset) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let start = at + offset;
        let unit = unit_at(text, start);
        at = match unit {
            None => (start + 2).min(text.len()),
            Some(0xd800..=0xdbff) if matches!(unit_at(text, start + 6), Some(0xdc00..=0xdfff)) => {
                start + 12
            }
            Some(0xd800..=0xdfff) => {
                whole.push_str(&text[copied..start]);
                whole.push_str("\\ufffd");
                copied = start + 6;
                copied
            }
            Some(_) => start + 6,
        };
    }
    (copied > 0).then(|| whole + &text[copied..])
}

/// The code unit of an escape `\uXXXX` at this place.
fn unit_at(text: &str, start: usize) -> Option<u16> {
    let digits = text.get(start..start + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_lines_stay_and_bad_ones_become_good() {
        #[rustfmt::skip]
        let table = [
            // line                          becomes
            (&br#"{"a":"x"}"#[..],           r#"{"a":"x"}"#),
            (br#"["\ud83d\ude00"]"#,         r#"["\ud83d\ude00"]"#),
            (br#"["\ud83dx"]"#,              r#"["\ufffdx"]"#),
            (br#"["\ude00\ud83d\u0041"]"#,   r#"["\ufffd\ufffd\u0041"]"#),
            (br#"["\\ud83d"]"#,              r#"["\\ud83d"]"#),
            (br#"["\\\ud83d"]"#,             r#"["\\\ufffd"]"#),
            (br#"["\\\\","\ud83d\\"]"#,      r#"["\\\\","\ufffd\\"]"#),
            (br#"\u"#,                       r#"\u"#),
            (br#"\ud83d\u"#,                 r#"\ufffd\u"#),
            (b"\\\\\xff\\u00e4\\",           "\\\\\u{fffd}\\u00e4\\"),
            ("\\\u{e4}\\ud83d".as_bytes(),   "\\\u{e4}\\ufffd"),
        ];
        for (line, want) in table {
            assert_eq!(repair(line), want, "line: {}", String::from_utf8_lossy(line));
        }
    }
}
