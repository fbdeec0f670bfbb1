//! Call options: everything an AI SDK caller may ask for beside the prompt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::open::Open;
use crate::prompt::Prompt;
use crate::spec::Metadata;

/// One call of the language model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallOptions {
    /// The conversation.
    pub prompt: Prompt,
    /// Tools the caller declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Open<Tool>>>,
    /// Which of them may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Open<ToolChoice>>,
    /// Free text or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Open<ResponseFormat>>,
    /// Reasoning effort (V4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Options for providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<Metadata>,
    /// Pass the provider's own messages on as `raw` parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_raw_chunks: Option<bool>,
    /// Characters of the call that could not be read and were replaced, see [`crate::surrogates`].
    #[serde(skip)]
    pub replaced: usize,
    /// HTTP headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, Value>>,
    /// Sampling settings and whatever a newer SDK adds, by name.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A tool the caller declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Tool {
    /// A function with a JSON Schema.
    Function {
        /// Its name.
        name: String,
        /// For the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// JSON Schema of its input.
        input_schema: Value,
        /// Examples of input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_examples: Option<Value>,
        /// Strict schema adherence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
    /// A tool that a provider defines.
    #[serde(alias = "provider-defined")]
    Provider {
        /// `vendor.tool`.
        id: String,
        /// Its name in this call.
        name: String,
        /// Its settings.
        #[serde(default)]
        args: Value,
    },
}

/// Which tools may be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ToolChoice {
    /// The model chooses.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool {
        /// Its name.
        tool_name: String,
    },
}

/// Free text or JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ResponseFormat {
    /// Free text.
    Text,
    /// JSON, with or without a schema.
    Json {
        /// JSON Schema of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// The schema's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// For the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}
