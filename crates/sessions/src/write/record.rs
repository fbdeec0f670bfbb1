//! The lines after the first, and how a line is spelt.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One line of a session, without its time and number.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// What the model said, was told, called or was answered: told to it again on resume.
    ResponseItem(Value),
    /// What clients are shown or told; the payload's `type` says what.
    Event(Value),
    /// The settings of a turn.
    TurnContext(Value),
    /// A history shortened: `{message, replacement_history}`.
    Compacted(Value),
    /// What the model knows of its surroundings: `{full, state}`.
    WorldState(Value),
    /// The tokens of one answer.
    TokenUsage(Value),
    /// The settings of the session; the writer adds the first one.
    SessionMeta(Value),
    /// Any other line.
    Other {
        /// The line's type.
        kind: String,
        /// Its payload.
        payload: Value,
    },
}

impl Record {
    /// The line's type.
    pub fn kind(&self) -> &str {
        match self {
            Self::ResponseItem(_) => "response_item",
            Self::Event(_) => "event_msg",
            Self::TurnContext(_) => "turn_context",
            Self::Compacted(_) => "compacted",
            Self::WorldState(_) => "world_state",
            Self::TokenUsage(_) => "token_usage_record",
            Self::SessionMeta(_) => "session_meta",
            Self::Other { kind, .. } => kind,
        }
    }

    /// The line's payload.
    pub fn payload(&self) -> &Value {
        match self {
            Self::ResponseItem(payload)
            | Self::Event(payload)
            | Self::TurnContext(payload)
            | Self::Compacted(payload)
            | Self::WorldState(payload)
            | Self::TokenUsage(payload)
            | Self::SessionMeta(payload)
            | Self::Other { payload, .. } => payload,
        }
    }

    /// The whole line, with its line feed.
    pub fn line(&self, stamp: &str, ordinal: Option<u64>) -> String {
        let number = ordinal.map_or_else(String::new, |ordinal| format!(",\"ordinal\":{ordinal}"));
        let (stamp, kind) = (Value::from(stamp), Value::from(self.kind()));
        // Values have string keys only, so this cannot fail.
        let payload = serde_json::to_string(&TypeFirst(self.payload())).unwrap_or_default();
        format!("{{\"timestamp\":{stamp}{number},\"type\":{kind},\"payload\":{payload}}}\n")
    }
}

/// A value with `type` before the other keys of every object, as Codex writes it: readers tell
/// lines by their first bytes.
struct TypeFirst<'a>(&'a Value);

impl Serialize for TypeFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(values) => serializer.collect_seq(values.iter().map(TypeFirst)),
            Value::Object(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                if let Some(kind) = map.get("type") {
                    out.serialize_entry("type", &TypeFirst(kind))?;
                }
                for (key, value) in map.iter().filter(|(key, _)| *key != "type") {
                    out.serialize_entry(key, &TypeFirst(value))?;
                }
                out.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_begins_with_what_it_is() {
        let item =
            json!({ "id": "i1", "type": "UserMessage", "content": [{ "a": 1, "type": "t" }] });
        let record = Record::Event(json!({ "item": item, "type": "item_completed" }));
        let line = record.line("2026-11-15T20:14:38.993Z", Some(7));
        let want = concat!(
            r#"{"timestamp":"2026-11-15T20:14:38.993Z","ordinal":7,"type":"event_msg","#,
            r#""payload":{"type":"item_completed","item":{"type":"UserMessage","#,
            r#""content":[{"type":"t","a":1}],"id":"i1"}}}"#,
            "\n",
        );
        assert_eq!(line, want);
        let line = Record::ResponseItem(json!({ "type": "m", "text": "a\nb\u{2028}" }));
        assert_eq!(line.line("t", None).matches('\n').count(), 1);
    }
}
