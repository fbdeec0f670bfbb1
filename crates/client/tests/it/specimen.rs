//! Values made from a JSON schema: the least it allows, all it knows, and nothing where it may.

use serde_json::{Map, Value, json};

/// How much of a schema a specimen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Only what is required; lists are empty.
    Least,
    /// Everything, down to a few levels; lists have one element.
    All,
    /// Everything, and `null` wherever it is allowed.
    Nulls,
}

/// Deeper than this, only what is required is shown: schemas refer to themselves.
const DEPTH: usize = 6;

/// One specimen for each variant of a schema, in every extent; `root` holds its definitions.
pub(crate) fn specimens(root: &Value, schema: &Value) -> Vec<Value> {
    let mut specimens = Vec::new();
    let schema = resolve(root, schema);
    let variants = variants(schema).map_or(1, Vec::len);
    for extent in [Extent::Least, Extent::All, Extent::Nulls] {
        for variant in 0..variants {
            specimens.push(Maker { root, extent }.make(schema, variant, 0));
        }
    }
    specimens
}

struct Maker<'a> {
    root: &'a Value,
    extent: Extent,
}

impl Maker<'_> {
    fn make(&self, schema: &Value, variant: usize, depth: usize) -> Value {
        let schema = resolve(self.root, schema);
        if let Some(word) = schema["enum"].as_array().and_then(|words| words.first()) {
            return word.clone();
        }
        if self.extent == Extent::Nulls && depth > 0 && is_nullable(schema) {
            return Value::Null;
        }
        let mut value = self.plain(schema, depth);
        let chosen = variants(schema).and_then(|variants| variants.get(variant));
        let every = schema["allOf"].as_array().into_iter().flatten();
        for piece in chosen.into_iter().chain(every) {
            value = join(value, self.make(piece, 0, depth));
        }
        value
    }

    fn plain(&self, schema: &Value, depth: usize) -> Value {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().cloned().unwrap_or_default(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("object") => self.object(schema, depth),
            Some("array") if self.whole(depth) && schema.get("items").is_some() => {
                json!([self.make(&schema["items"], 0, depth + 1)])
            }
            Some("array") => json!([]),
            Some("string") => json!("x"),
            Some("integer") => schema
                .get("minimum")
                .map_or(json!(1), |least| json!(least.as_f64().map_or(1, |least| least as i64))),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required = |name: &String| {
            schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)))
        };
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| self.whole(depth) || required(name));
        let fields: Map<String, Value> =
            fields.map(|(name, field)| (name.clone(), self.make(field, 0, depth + 1))).collect();
        Value::Object(fields)
    }

    fn whole(&self, depth: usize) -> bool {
        self.extent != Extent::Least && depth < DEPTH
    }
}

fn variants(schema: &Value) -> Option<&Vec<Value>> {
    schema["oneOf"].as_array().or(schema["anyOf"].as_array())
}

fn is_nullable(schema: &Value) -> bool {
    let null = json!("null");
    schema["type"].as_array().is_some_and(|kinds| kinds.contains(&null))
        || variants(schema).is_some_and(|variants| variants.iter().any(|one| one["type"] == null))
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    while let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        schema = root.pointer(path).unwrap_or_else(|| panic!("no {path} in the schema"));
    }
    schema
}

fn join(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Object(mut a), Value::Object(b)) => {
            a.extend(b);
            Value::Object(a)
        }
        (Value::Null, b) => b,
        (a, Value::Null) => a,
        (_, b) => b,
    }
}

#[test]
fn a_specimen_shows_what_its_schema_says() {
    let schema = json!({
        "type": "object", "required": ["a", "c"],
        "properties": {
            "a": { "$ref": "#/definitions/A" }, "b": { "type": ["integer", "null"] },
            "c": { "type": "array", "items": { "type": "boolean" } },
        },
        "oneOf": [
            { "type": "object", "required": ["t"], "properties": { "t": { "enum": ["one"] } } },
            { "type": "object", "required": ["t"], "properties": { "t": { "enum": ["two"] } } },
        ],
        "definitions": { "A": { "allOf": [{ "type": "string" }] } },
    });
    let made = specimens(&schema, &schema);
    assert_eq!(
        made,
        [
            json!({ "a": "x", "c": [], "t": "one" }),
            json!({ "a": "x", "c": [], "t": "two" }),
            json!({ "a": "x", "b": 1, "c": [true], "t": "one" }),
            json!({ "a": "x", "b": 1, "c": [true], "t": "two" }),
            json!({ "a": "x", "b": null, "c": [true], "t": "one" }),
            json!({ "a": "x", "b": null, "c": [true], "t": "two" }),
        ]
    );
}
