//! Long texts of a recording, shortened in place; its lines stay as they are otherwise.

/// Bytes of a JSON string that are kept of a longer one.
const KEPT: usize = 600;

/// Strings up to this length stay whole.
const LONGEST: usize = 4_000;

/// Shortens the long strings of JSON lines.
pub(super) fn lines(text: &str) -> String {
    let (mut short, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('"') {
        let length = literal(&rest[at + 1..]);
        short.push_str(&rest[..=at]);
        let (string, after) = rest[at + 1..].split_at(length);
        match string.len() > LONGEST {
            true => short.push_str(&shortened(string)),
            false => short.push_str(string),
        }
        rest = match after.strip_prefix('"') {
            Some(after) => {
                short.push('"');
                after
            }
            None => after,
        };
    }
    short + rest
}

/// Bytes before the quote that ends a string.
fn literal(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

fn shortened(string: &str) -> String {
    // Not inside an escape: those begin with a backslash and have at most six letters.
    let mut end = string.floor_char_boundary(KEPT);
    if let Some(slash) = string[..end].rfind('\\')
        && end - slash <= 12
    {
        end = slash - string[..slash].bytes().rev().take_while(|byte| *byte == b'\\').count();
    }
    let count = string.chars().count();
    format!("{}…[corpus: shortened, {count} chars originally]…", &string[..end])
}

#[test]
fn shortened_lines_are_json_still() {
    let long = format!("{}\\\"\u{1b}é{}", "a".repeat(593), "\\\\\n".repeat(3_000));
    let line = serde_json::json!({ "a": long, "b": ["short", long] }).to_string();
    let short = lines(&format!("{line}\n{line}\n"));
    assert_eq!(short.lines().count(), 2);
    for line in short.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["b"][0], "short");
        assert!(value["a"].as_str().unwrap().contains("…[corpus: shortened, "), "{value}");
    }
}
