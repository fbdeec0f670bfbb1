//! Part: one edit of a live answer, in exactly the AI SDK's stream-part JSON.
//!
//! The enum is the V4 vocabulary; [`Part::to_json`] gives either specification.

pub mod answer;

pub mod echo;

pub mod pace;

mod v3;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file::FileData;
use crate::ids::{ApprovalId, CallId, PartId};
use crate::spec::{Metadata, Spec};
use crate::usage::{FinishReason, Usage};

/// One stream part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// The first part of a stream.
    StreamStart {
        /// What could not be carried, one warning each.
        warnings: Vec<Warning>,
    },
    /// What the provider says about its response.
    ResponseMetadata {
        /// The turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// When it started, RFC 3339.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<String>,
        /// The model that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_id: Option<String>,
    },
    /// A run of answer text begins.
    TextStart(Run),
    /// More of it.
    TextDelta(Delta),
    /// It is complete.
    TextEnd {
        /// The run.
        id: PartId,
        /// Citations inside the text (V4).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
        /// Codex's details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// A run of reasoning begins.
    ReasoningStart(Run),
    /// More of it.
    ReasoningDelta(Delta),
    /// It is complete.
    ReasoningEnd(Run),
    /// A tool's input begins.
    ToolInputStart(ToolInputStart),
    /// More of the input's JSON text.
    ToolInputDelta(Delta),
    /// The input is complete.
    ToolInputEnd(Run),
    /// A tool is called.
    ToolCall(ToolCall),
    /// A tool has answered, or (preliminary) shows what it has so far.
    ToolResult(ToolResult),
    /// The turn waits for somebody's approval of a call.
    ToolApprovalRequest {
        /// The question's name, to be given back with the answer.
        approval_id: ApprovalId,
        /// The call it is about; its `tool-call` came before.
        tool_call_id: CallId,
        /// What exactly is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// A file made by the model.
    File {
        /// IANA media type.
        media_type: String,
        /// The content.
        data: FileData,
        /// Codex's details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// A file made while reasoning (V4).
    ReasoningFile {
        /// IANA media type.
        media_type: String,
        /// The content.
        data: FileData,
        /// Codex's details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// Something the answer rests on.
    Source(Source),
    /// Something of Codex's with no shape in the contract (V4; V3 carries it as `raw`).
    Custom {
        /// `codex.…`.
        kind: String,
        /// The content, under our provider key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// The end of the stream.
    Finish {
        /// Tokens of this call.
        usage: Usage,
        /// Why it ended.
        finish_reason: FinishReason,
        /// Thread, turn and totals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// What the provider said, as it said it.
    Raw {
        /// The message.
        raw_value: Value,
    },
    /// Something went wrong; `finish` still follows.
    Error {
        /// Message, kind and details.
        error: Value,
    },
    /// Still alive (V4).
    Ping,
}

/// Start or end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run.
    pub id: PartId,
    /// Codex's details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
}

/// More of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The run.
    pub id: PartId,
    /// The new text.
    pub delta: String,
    /// Codex's details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
}

/// A tool's input begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInputStart {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool_name: String,
    /// `json` (when absent) or `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_encoding: Option<String>,
    /// Codex runs it, not the caller.
    #[serde(default, skip_serializing_if = "is_false")]
    pub provider_executed: bool,
    /// The caller did not declare it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dynamic: bool,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Codex's details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
}

/// A tool is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// The input as JSON *text*.
    pub input: String,
    /// Codex runs it, not the caller.
    #[serde(default, skip_serializing_if = "is_false")]
    pub provider_executed: bool,
    /// The caller did not declare it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dynamic: bool,
    /// Codex's details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
}

/// A tool has answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// The answer; never JSON null.
    pub result: Value,
    /// The tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// More is to come; a later result of the same call replaces this one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preliminary: bool,
    /// The caller did not declare it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dynamic: bool,
    /// Codex's details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Metadata>,
}

/// Something the answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sourceType", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Source {
    /// A page.
    Url {
        /// The source's name in this stream.
        id: String,
        /// Its address.
        url: String,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Codex's details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
    /// A document.
    Document {
        /// The source's name in this stream.
        id: String,
        /// IANA media type.
        media_type: String,
        /// Its title.
        title: String,
        /// Its file name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// Codex's details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<Metadata>,
    },
}

/// One thing that could not be carried as asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Warning {
    /// Codex has no such thing; it was left out.
    Unsupported {
        /// Its name in the call.
        feature: String,
        /// Why, and what to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// It was carried in another form.
    Compatibility {
        /// Its name in the call.
        feature: String,
        /// In which form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// It still works, but has a successor (V4).
    Deprecated {
        /// The old name.
        setting: String,
        /// The new one.
        message: String,
    },
    /// Anything else.
    Other {
        /// In words.
        message: String,
    },
}

impl Warning {
    /// A setting or part that was left out.
    pub fn unsupported(feature: impl Into<String>, details: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into(), details: Some(details.into()) }
    }

    /// A setting or part that was carried in another form.
    pub fn compatibility(feature: impl Into<String>, details: impl Into<String>) -> Self {
        Self::Compatibility { feature: feature.into(), details: Some(details.into()) }
    }
}

impl Part {
    /// The part as `spec` writes it.
    ///
    /// None for what V3 has no word for and no need of (`ping`).
    pub fn to_json(&self, spec: Spec) -> Option<Value> {
        match spec {
            Spec::V3 => v3::to_json(self),
            Spec::V4 => Some(as_value(self)),
        }
    }
}

/// Our own types always serialise; the fallback keeps the function total.
fn as_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn is_false(flag: &bool) -> bool {
    !*flag
}
