//! Spellings: `agentMessage` on the wire, `AgentMessage` and `agent_message` in files.

use std::fmt::Write as _;

use serde_json::Value;

/// `agentMessage` → `AgentMessage`.
pub(crate) fn pascal(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `aggregatedOutput` → `aggregated_output`.
pub(crate) fn snake(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            if !out.is_empty() {
                out.push('_');
            }
            out.push(letter.to_ascii_lowercase());
        } else {
            out.push(letter);
        }
    }
    out
}

/// `aggregated_output` and `AggregatedOutput` → `aggregatedOutput`.
pub(crate) fn camel(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut raise = false;
    for letter in word.chars() {
        match letter {
            '_' if !out.is_empty() => raise = true,
            letter if out.is_empty() => out.push(letter.to_ascii_lowercase()),
            letter if raise => {
                out.push(letter.to_ascii_uppercase());
                raise = false;
            }
            letter => out.push(letter),
        }
    }
    out
}

/// The same value with other keys; with `kinds`, other values of `type`, too.
pub(super) fn snake_keys(value: &Value, kinds: bool) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| snake_keys(value, kinds)).collect(),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| match (key.as_str(), value) {
                ("type", Value::String(kind)) if kinds => (key.clone(), Value::from(snake(kind))),
                _ => (snake(key), snake_keys(value, kinds)),
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// A path as a URI; what is no absolute path stays as it is.
pub(super) fn file_uri(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_respelt() {
        assert_eq!(pascal("agentMessage"), "AgentMessage");
        assert_eq!(snake("aggregatedOutput"), "aggregated_output");
        assert_eq!(camel("aggregated_output"), "aggregatedOutput");
        assert_eq!(camel("AgentMessage"), "agentMessage");
        assert_eq!(file_uri("/a b/ü%.txt"), "file:///a%20b/%C3%BC%25.txt");
    }
}
