//! Questions that are answered in words: the model's own, and the forms of MCP servers.

use bindery::core::interrupt::Ask;
use serde_json::Value;

use crate::view::wording::text_at;

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Its name in the answer.
    pub(crate) id: String,
    /// In a word or two.
    pub(crate) header: String,
    /// In full.
    pub(crate) text: String,
    /// What can be chosen: value, label, explanation.
    pub(crate) options: Vec<(Value, String, String)>,
    /// Other words than the options are an answer too.
    pub(crate) free: bool,
    /// What is typed is not shown.
    pub(crate) secret: bool,
    /// An empty line leaves it out.
    pub(crate) optional: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    Whole,
}

/// The questions of an interrupt that is answered in words.
pub(crate) fn questions(ask: &Ask) -> Vec<Question> {
    match ask {
        Ask::UserInput { questions } => questions.iter().map(asked).collect(),
        Ask::Elicitation { schema: Some(schema), tool_params: None, mode, .. } if mode != "url" => {
            let required = |name: &str| {
                let list = schema.get("required").and_then(Value::as_array);
                list.is_some_and(|list| list.iter().any(|known| known == name))
            };
            let fields = schema.get("properties").and_then(Value::as_object);
            let fields = fields.into_iter().flatten();
            fields.map(|(name, field)| form_field(name, field, required(name))).collect()
        }
        _ => Vec::new(),
    }
}

impl Question {
    /// What a typed line means, or why it is no answer; nothing if the question is left out.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, &'static str> {
        let line = line.trim();
        if line.is_empty() {
            return if self.optional { Ok(None) } else { Err("an answer is needed") };
        }
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|index| self.options.get(index));
        let by_label = || self.options.iter().find(|(_, label, _)| label == line);
        match by_number.or_else(by_label) {
            Some((value, _, _)) => Ok(Some(value.clone())),
            None if self.free => self.typed(line).map(Some),
            None => Err("choose one of the numbers"),
        }
    }

    fn typed(&self, line: &str) -> Result<Value, &'static str> {
        let number = || line.parse::<f64>().map(Value::from).map_err(|_| "a number is needed");
        let whole = || line.parse::<i64>().map(Value::from).map_err(|_| "a whole number is needed");
        match self.kind {
            Kind::Text => Ok(Value::from(line)),
            Kind::Number => whole().or_else(|_| number()),
            Kind::Whole => whole(),
        }
    }
}

/// Codex: `{id, header, question, options: [{label, description}], isOther, isSecret}`.
fn asked(question: &Value) -> Question {
    let at = |key: &str| text_at(question, &[key]).unwrap_or_default().to_owned();
    let flag = |key: &str| question.get(key) == Some(&Value::Bool(true));
    let options = question.get("options").and_then(Value::as_array).into_iter().flatten();
    let options: Vec<_> = options
        .map(|option| {
            let at = |key: &str| text_at(option, &[key]).unwrap_or_default().to_owned();
            (Value::from(at("label")), at("label"), at("description"))
        })
        .collect();
    Question {
        id: at("id"),
        header: at("header"),
        text: at("question"),
        free: options.is_empty() || flag("isOther"),
        options,
        secret: flag("isSecret"),
        optional: false,
        kind: Kind::Text,
    }
}

/// A field of a form, in MCP's small subset of JSON Schema.
fn form_field(name: &str, field: &Value, required: bool) -> Question {
    let options = field_options(field);
    let kind = match text_at(field, &["type"]) {
        Some("number") => Kind::Number,
        Some("integer") => Kind::Whole,
        _ => Kind::Text,
    };
    Question {
        id: name.to_owned(),
        header: text_at(field, &["title"]).unwrap_or(name).to_owned(),
        text: text_at(field, &["description"]).unwrap_or_default().to_owned(),
        free: options.is_empty(),
        options,
        secret: false,
        optional: !required,
        kind,
    }
}

fn field_options(field: &Value) -> Vec<(Value, String, String)> {
    let option = |value: Value, label: &str| (value, label.to_owned(), String::new());
    if text_at(field, &["type"]) == Some("boolean") {
        return vec![option(Value::Bool(true), "yes"), option(Value::Bool(false), "no")];
    }
    let list = |key: &str| field.get(key).and_then(Value::as_array);
    if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        let read = |entry: &Value| {
            let value = entry.get("const")?;
            Some(option(value.clone(), text_at(entry, &["title"]).or(value.as_str())?))
        };
        return titled.iter().filter_map(read).collect();
    }
    let names = list("enumNames").cloned().unwrap_or_default();
    let values = list("enum").into_iter().flatten().enumerate();
    let read = |(index, value): (usize, &Value)| {
        let name = names.get(index).and_then(Value::as_str).or(value.as_str())?;
        Some(option(value.clone(), name))
    };
    values.filter_map(read).collect()
}
