//! The two language-model specifications of the AI SDK that we speak.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A version of the AI SDK's language-model contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spec {
    /// `LanguageModelV3`: ai@6, and ai@7 through its adapter.
    V3,
    /// `LanguageModelV4`: ai@7.
    #[default]
    V4,
}

/// Provider options or provider metadata: provider name → JSON object.
pub type Metadata = Map<String, Value>;

/// The key under which Bindery reads options and writes metadata.
pub const PROVIDER_KEY: &str = "codex";

/// Metadata with our key alone.
pub fn codex_metadata(value: Value) -> Option<Metadata> {
    match json!({ PROVIDER_KEY: value }) {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// Our own object in a metadata map, if there is one.
pub fn codex_of(metadata: Option<&Metadata>) -> Option<&Map<String, Value>> {
    metadata?.get(PROVIDER_KEY)?.as_object()
}
