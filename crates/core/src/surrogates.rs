//! JSON with half a surrogate pair in it.
//!
//! JSON allows the escape of half a pair (`\ud800`), which JavaScript writes when a text is cut in
//! the middle of a character; no text of ours can hold one. Such a half is read as U+FFFD, the
//! character that stands for one that cannot be shown, instead of costing all that is around it.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// What half a pair is read as; as long as what it replaces.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// JSON text in which every half is replaced, and how many were.
pub fn mended(json: &str) -> (Cow<'_, str>, usize) {
    let (mended, count) = mended_bytes(json.as_bytes());
    match mended {
        // Escapes are ASCII, so what was UTF-8 still is.
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => (Cow::Owned(text), count),
            Err(_) => (Cow::Borrowed(json), 0),
        },
        Cow::Borrowed(_) => (Cow::Borrowed(json), 0),
    }
}

/// The same of bytes.
pub fn mended_bytes(json: &[u8]) -> (Cow<'_, [u8]>, usize) {
    if !may_have_halves(json) {
        return (Cow::Borrowed(json), 0);
    }
    let mut bytes = json.to_vec();
    match mend(&mut bytes) {
        0 => (Cow::Borrowed(json), 0),
        count => (Cow::Owned(bytes), count),
    }
}

/// Replaces every half in place; how many there were.
pub fn mend(json: &mut [u8]) -> usize {
    if !may_have_halves(json) {
        return 0;
    }
    let (mut at, mut count) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += found;
        match escaped(json, at) {
            Some(0xd800..0xdc00) if matches!(escaped(json, at + 6), Some(0xdc00..0xe000)) => {
                at += 12;
            }
            Some(0xd800..0xe000) => {
                json[at..at + 6].copy_from_slice(REPLACEMENT);
                (at, count) = (at + 6, count + 1);
            }
            Some(_) => at += 6,
            // An escape of one character; what follows a backslash is none of its own.
            None => at += 2,
        }
    }
    count
}

fn may_have_halves(json: &[u8]) -> bool {
    memmem::find(json, b"\\ud").is_some() || memmem::find(json, b"\\uD").is_some()
}

/// The number of the escape `\uXXXX` that begins here, if one does.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else_is() {
        #[rustfmt::skip]
        let table = [
            (r#""plain""#,                  r#""plain""#,                  0),
            (r#""\ud83d\ude00""#,           r#""\ud83d\ude00""#,           0),
            (r#""\uD83D\uDE00""#,           r#""\uD83D\uDE00""#,           0),
            (r#""a\ud83d""#,                r#""a\ufffd""#,                1),
            (r#""\ude00b""#,                r#""\ufffdb""#,                1),
            (r#""\ud83dx\ude00""#,          r#""\ufffdx\ufffd""#,          2),
            (r#""\ud83d\ud83d\ude00""#,     r#""\ufffd\ud83d\ude00""#,     1),
            (r#""\ude00\ud83d""#,           r#""\ufffd\ufffd""#,           2),
            (r#""\ud83d\n""#,               r#""\ufffd\n""#,               1),
            // A backslash that is itself escaped begins nothing.
            (r#""C:\\ud83d""#,              r#""C:\\ud83d""#,              0),
            (r#""\\\ud83d""#,               r#""\\\ufffd""#,               1),
            (r#"{"\udc00":["\ud800"]}"#,    r#"{"\ufffd":["\ufffd"]}"#,    2),
            ("\"\u{e9}\\ud800\u{1f600}\"",  "\"\u{e9}\\ufffd\u{1f600}\"",  1),
        ];
        for (json, want, count) in table {
            let (mended, replaced) = mended(json);
            assert_eq!((&*mended, replaced), (want, count), "{json}");
            assert!(serde_json::from_str::<Value>(&mended).is_ok(), "{mended}");
            assert_eq!(matches!(mended, Cow::Borrowed(_)), count == 0);
        }
    }

    #[test]
    fn what_is_cut_off_is_left_to_whoever_reads_it() {
        for json in [r#""\ud8"#, r#""\ud83d\"#, r#""\ud83d\u"#, r#""\"#, r#""\udzzz""#] {
            let (text, _) = mended(json);
            assert!(serde_json::from_str::<Value>(&text).is_err(), "{json}");
        }
    }
}
