//! Text in which everything that differs from run to run has a name instead.

use bindery_testkit::codex::RealCodex;

/// The text with its paths, ids and times named.
pub(crate) fn stable(text: &str, codex: &RealCodex) -> String {
    let named = [
        (codex.project(), "[project]"),
        (codex.home(), "[codex home]"),
        (codex.user_home(), "[home]"),
        (codex.program().to_owned(), "[codex]"),
    ];
    let text = named
        .iter()
        .fold(text.to_owned(), |text, (path, name)| text.replace(&*path.to_string_lossy(), name));
    text.split_inclusive('\n').map(|line| times(&ids(line))).collect()
}

/// Ids look like `019a8f5e-7c3e-7d50-b1d5-0f4f2b3c8a91`.
fn ids(text: &str) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        let length = match rest.get(..36).is_some_and(is_id) {
            true => {
                named.push_str("[id]");
                36
            }
            false => {
                named.push(ch);
                ch.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    named
}

fn is_id(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// `0.2 s`, wherever it stands, with the blanks that put it at the right edge.
fn times(text: &str) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" s") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let number = before.trim_end_matches(|ch: char| ch.is_ascii_digit() || ch == '.');
        let ends = !after.starts_with(|ch: char| ch.is_alphanumeric());
        if ends && number.len() < before.len() {
            let number = number.strip_suffix('<').unwrap_or(number);
            let edge = number.trim_end_matches(' ');
            let blanks = if number.len() - edge.len() > 1 { "  " } else { &number[edge.len()..] };
            named.push_str(&format!("{edge}{blanks}[time]"));
        } else {
            named.push_str(&rest[..at + 2]);
        }
        rest = after;
    }
    named + rest
}
