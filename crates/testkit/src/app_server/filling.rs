//! Blanks in a message, filled from what was received last.

use serde_json::Value;

/// What blanks are filled with.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// The last message received.
    pub(super) last: Value,
    /// The round of the innermost loop, from 1.
    pub(super) round: u32,
    /// Letters for `$fill`.
    pub(super) filler: String,
}

impl Filling {
    pub(super) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter().map(|value| self.fill(value)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), self.fill(value)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> Value {
        if text == "$fill" {
            return Value::String(self.filler.clone());
        }
        let path = text.strip_prefix('$').filter(|path| {
            *path == "id" || path.starts_with("params.") || path.starts_with("result.")
        });
        match path {
            Some(path) => {
                let pointer = format!("/{}", path.replace('.', "/"));
                self.last.pointer(&pointer).cloned().unwrap_or_default()
            }
            None => Value::String(text.replace("$n", &self.round.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Filling;

    #[test]
    fn blanks_are_filled() {
        let last = json!({ "id": 7, "params": { "threadId": "t", "input": [{ "text": "hi" }] } });
        let filling = Filling { last, round: 3, filler: "xx".to_owned() };
        #[rustfmt::skip]
        let table = [
            (json!("$id"),                          json!(7)),
            (json!(["$params.threadId"]),           json!(["t"])),
            (json!({ "a": "$params.input.0.text" }), json!({ "a": "hi" })),
            (json!("turn_$n"),                      json!("turn_3")),
            (json!("$fill"),                        json!("xx")),
            (json!("$params.nothing"),              json!(null)),
            (json!("costs $5"),                     json!("costs $5")),
        ];
        for (value, want) in table {
            assert_eq!(filling.fill(&value), want);
        }
    }
}
