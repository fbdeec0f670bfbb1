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

impl Usage {
    /// The SDK's split of Codex's counts: what is read from a cache is among what is read, and
    /// reasoning is among what is written.
    pub fn of(read: InputCounts, written: u64, reasoning: u64, raw: Option<Value>) -> Self {
        Self {
            input_tokens: InputTokens {
                total: Some(read.all),
                no_cache: Some(read.all.saturating_sub(read.cached)),
                cache_read: Some(read.cached),
                cache_write: Some(read.cache_written),
            },
            output_tokens: OutputTokens {
                total: Some(written),
                text: Some(written.saturating_sub(reasoning)),
                reasoning: Some(reasoning),
            },
            raw,
        }
    }
}

/// What was read, in Codex's way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputCounts {
    /// All of it.
    pub all: u64,
    /// Of that, from the cache.
    pub cached: u64,
    /// Of that, into the cache.
    pub cache_written: u64,
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
