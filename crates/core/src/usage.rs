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

impl Usage {
    /// Both together; what only one tells is taken from that.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (read, more_read) = (&self.input_tokens, &other.input_tokens);
        let (written, more_written) = (&self.output_tokens, &other.output_tokens);
        Self {
            input_tokens: InputTokens {
                total: sum(read.total, more_read.total),
                no_cache: sum(read.no_cache, more_read.no_cache),
                cache_read: sum(read.cache_read, more_read.cache_read),
                cache_write: sum(read.cache_write, more_read.cache_write),
            },
            output_tokens: OutputTokens {
                total: sum(written.total, more_written.total),
                text: sum(written.text, more_written.text),
                reasoning: sum(written.reasoning, more_written.reasoning),
            },
            raw: sum_raw(self.raw.as_ref(), other.raw.as_ref()),
        }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// The provider's numbers, name by name; of what is no number, the later.
fn sum_raw(one: Option<&Value>, other: Option<&Value>) -> Option<Value> {
    let (Some(Value::Object(one)), Some(Value::Object(other))) = (one, other) else {
        return other.or(one).cloned();
    };
    let mut all = one.clone();
    for (name, value) in other {
        let before = one.get(name).and_then(Value::as_u64);
        let value = match (before, value.as_u64()) {
            (Some(before), Some(after)) => Value::from(before.saturating_add(after)),
            _ => value.clone(),
        };
        all.insert(name.clone(), value);
    }
    Some(Value::Object(all))
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
