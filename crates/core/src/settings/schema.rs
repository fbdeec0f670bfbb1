//! JSON Schema of the settings, made from the same table that checks them.

use serde_json::{Map, Value, json};

use super::shape::{self, SHAPES, Shape};

/// The schema of an object of settings.
pub fn schema() -> Value {
    let mut object = fields(SHAPES);
    object["description"] = json!(
        "Settings of a thread or turn, as `providerOptions.codex` has them. Which of them a \
         caller may use is the tenant's policy."
    );
    object["examples"] = json!([{ "approvalPolicy": "on-request", "sandbox": "workspace-write" }]);
    object
}

fn fields(shapes: &[(&str, Shape)]) -> Value {
    let named = shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.schema()));
    let properties: Map<String, Value> = named.collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string", "minLength": 1 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Word(words) => json!({ "type": "string", "enum": words }),
            Self::AbsolutePaths => {
                json!({ "type": "array", "items": { "type": "string", "pattern": "^/" } })
            }
            Self::Object(of) => fields(of),
            Self::ApprovalPolicy => approval_policy(),
            Self::SandboxPolicy => sandbox_policy(),
            Self::Config => json!({
                "type": "object",
                "description": "Overrides of `config.toml`, by dotted key or nested.",
                "additionalProperties": true,
            }),
            Self::Extra(taken) => json!({
                "type": "object",
                "description": "Parameters that are passed to Codex unread.",
                "propertyNames": { "not": { "enum": taken } },
                "additionalProperties": true,
            }),
        }
    }
}

fn approval_policy() -> Value {
    let mut granular = fields(&[("granular", Shape::Object(shape::GRANULAR))]);
    granular["title"] = json!("GranularApprovalPolicy");
    let word = json!({
        "type": "string", "enum": shape::APPROVAL_WORDS, "title": "PlainApprovalPolicy",
    });
    json!({ "oneOf": [word, granular] })
}

fn sandbox_policy() -> Value {
    let kinds = shape::SANDBOX_POLICIES.iter().map(|(kind, of)| {
        let mut policy = fields(of);
        policy["properties"]["type"] = json!({ "type": "string", "const": kind });
        policy["required"] = json!(["type"]);
        let (first, rest) = kind.split_at(1);
        policy["title"] = json!(format!("{}{rest}Policy", first.to_uppercase()));
        policy
    });
    json!({ "oneOf": kinds.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_schema() {
        let schema = schema();
        let named = schema["properties"].as_object().unwrap();
        assert_eq!(named.len(), SHAPES.len());
        assert_eq!(
            schema["properties"]["sandbox"]["enum"],
            json!(["read-only", "workspace-write", "danger-full-access"])
        );
        let policies = schema["properties"]["sandboxPolicy"]["oneOf"].as_array().unwrap();
        let kinds: Vec<_> = policies.iter().map(|p| &p["properties"]["type"]["const"]).collect();
        assert_eq!(kinds, ["dangerFullAccess", "readOnly", "externalSandbox", "workspaceWrite"]);
    }
}
