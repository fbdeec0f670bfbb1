//! Numbers, times and values in words.

use serde_json::Value;

/// `0.2 s`, `4.1 s`, `31 s`, `2 min 5 s`, `1 h 3 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..50 => "<0.1 s".to_owned(),
        50..9_950 => format!("{}.{} s", (ms + 50) / 1000, (ms + 50) / 100 % 10),
        9_950..60_000 => format!("{} s", ((ms + 500) / 1000).min(59)),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `12,480`
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A JSON value in one line; text without its quotes.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// The text at one of `keys`, the first that is there and says something.
pub fn text_at<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(key)?.as_str()).filter(|text| !text.is_empty())
}

/// A path with the home folder as `~`.
pub(crate) fn homely(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(home.trim_end_matches('/')) {
        Some("") if !home.is_empty() => "~".to_owned(),
        Some(rest) if home.len() > 1 && rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        let table = [
            (0, "<0.1 s"),
            (210, "0.2 s"),
            (4_099, "4.1 s"),
            (9_960, "10 s"),
            (31_000, "31 s"),
            (59_900, "59 s"),
            (125_000, "2 min 5 s"),
            (3_780_000, "1 h 3 min"),
        ];
        for (ms, want) in table {
            assert_eq!(duration(ms), want, "{ms}");
        }
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!([0, 999, 1_204, 1_234_567].map(count), ["0", "999", "1,204", "1,234,567"]);
    }
}
