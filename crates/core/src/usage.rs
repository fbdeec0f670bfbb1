//! Token counts and the reason a turn finished, in the AI SDK's shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::Spec;

/// Tokens of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What the model read.
    pub input_tokens: InputTokens,
    /// What the model wrote.
    pub output_tokens: OutputTokens,
    /// The provider's own numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// Tokens read, split by cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputTokens {
    /// All of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Not from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_cache: Option<u64>,
    /// Read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

/// Tokens written, split by purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputTokens {
    /// All of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// In the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<u64>,
    /// In reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// Why a turn finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishReason {
    /// One of the reasons every provider shares.
    pub unified: Unified,
    /// Codex's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// The reasons every provider shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unified {
    /// The model was done.
    Stop,
    /// A limit on length was reached.
    Length,
    /// A filter stopped it.
    ContentFilter,
    /// It waits for tool results or approvals.
    ToolCalls,
    /// It failed.
    Error,
    /// Somebody stopped it (V4; V3 says `other`).
    Interrupted,
    /// Anything else.
    Other,
}

impl FinishReason {
    /// A reason with Codex's word for it.
    pub fn new(unified: Unified, raw: impl Into<String>) -> Self {
        Self { unified, raw: Some(raw.into()) }
    }

    /// The nearest reason that `spec` knows.
    pub fn for_spec(&self, spec: Spec) -> Self {
        let unified = match (spec, self.unified) {
            (Spec::V3, Unified::Interrupted) => Unified::Other,
            (_, unified) => unified,
        };
        Self { unified, raw: self.raw.clone() }
    }
}
