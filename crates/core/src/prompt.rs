//! Prompt: the AI SDK's message list, specifications V3 and V4, decoded without loss.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::file::FileData;
use crate::ids::{ApprovalId, CallId};
use crate::open::Open;
use crate::spec::Metadata;

/// The messages of a conversation, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prompt(pub Vec<Open<Message>>);

impl Prompt {
    /// A prompt of one user message of plain text.
    pub fn user(text: impl Into<String>) -> Self {
        let text = TextPart { text: text.into(), provider_options: None };
        let content = vec![UserPart::Text(text).into()];
        Self(vec![Message::User { content, provider_options: None }.into()])
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Message {
    /// Instructions.
    System {
        /// The text.
        content: String,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
    /// What the user said.
    User {
        /// Its parts; plain text is read as one text part.
        #[serde(deserialize_with = "text_or_parts")]
        content: Vec<Open<UserPart>>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
    /// What the model said and did.
    Assistant {
        /// Its parts; plain text is read as one text part.
        #[serde(deserialize_with = "text_or_parts")]
        content: Vec<Open<AssistantPart>>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
    /// What the caller's tools and people answered.
    Tool {
        /// Its parts.
        content: Vec<Open<ToolPart>>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
}

/// A part of a user message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum UserPart {
    /// Text.
    Text(TextPart),
    /// A file of any kind.
    File(FilePart),
    /// An image in the form of older SDKs; [`UserPart::File`] with an image type today.
    Image {
        /// The content.
        image: FileData,
        /// IANA media type.
        #[serde(default, alias = "mimeType", skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
}

/// A part of an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum AssistantPart {
    /// Text.
    Text(TextPart),
    /// A file the model made.
    File(FilePart),
    /// Reasoning.
    Reasoning(TextPart),
    /// A file made while reasoning (V4).
    ReasoningFile(FilePart),
    /// A tool was called.
    ToolCall {
        /// The call.
        tool_call_id: CallId,
        /// The tool.
        tool_name: String,
        /// The input, parsed.
        #[serde(default)]
        input: Value,
        /// The provider ran it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_executed: Option<bool>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
    /// A tool that the provider ran has answered.
    ToolResult(ToolResultPart),
    /// Something of a provider's own (V4).
    Custom {
        /// `provider.kind`.
        kind: String,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
}

/// A part of a tool message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ToolPart {
    /// A tool has answered.
    ToolResult(ToolResultPart),
    /// Somebody has answered an approval.
    ToolApprovalResponse {
        /// The question.
        approval_id: ApprovalId,
        /// Yes or no.
        approved: bool,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
}

/// Text or reasoning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Options for providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<Metadata>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePart {
    /// The content.
    pub data: FileData,
    /// IANA media type, `image/*` allowed.
    #[serde(alias = "mimeType")]
    pub media_type: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Options for providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<Metadata>,
}

/// A tool's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultPart {
    /// The call.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// The answer.
    pub output: Open<ToolOutput>,
    /// Options for providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<Metadata>,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToolOutput {
    /// Text.
    Text {
        /// The text.
        value: String,
    },
    /// JSON.
    Json {
        /// The value.
        value: Value,
    },
    /// An error as text.
    ErrorText {
        /// The text.
        value: String,
    },
    /// An error as JSON.
    ErrorJson {
        /// The value.
        value: Value,
    },
    /// Somebody said no.
    ExecutionDenied {
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Text and files.
    Content {
        /// The pieces.
        value: Vec<Open<OutputContent>>,
    },
}

/// A piece of a tool's answer. V4 has `text`, `file` and `custom`; the others are V3's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum OutputContent {
    /// Text.
    Text(TextPart),
    /// A file (V4).
    File(FilePart),
    /// A file's bytes (V3).
    #[serde(alias = "image-data")]
    FileData {
        /// Base64.
        data: String,
        /// IANA media type.
        media_type: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// A file's address (V3).
    #[serde(alias = "image-url")]
    FileUrl {
        /// The address.
        url: String,
    },
    /// A provider's handle (V3).
    #[serde(alias = "image-file-id")]
    FileId {
        /// The handle.
        file_id: Value,
    },
    /// Something of a provider's own.
    Custom {
        /// Options for providers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Metadata>,
    },
}

/// Reads `"hi"` as one text part, as the SDK's own front does.
fn text_or_parts<'de, D, T>(deserializer: D) -> Result<Vec<Open<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(vec![Open::from_value(json!({ "type": "text", "text": text }))]),
        Value::Array(parts) => Ok(parts.into_iter().map(Open::from_value).collect()),
        _ => Err(serde::de::Error::custom("message content is neither text nor a list of parts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_specifications_survive_a_round_trip() {
        let table = [
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "hi", "providerOptions": {"codex": {"a": 1}}},
                {"type": "file", "data": {"type": "url", "url": "https://x/y.png"},
                 "mediaType": "image/png", "filename": "y.png"}]}),
            json!({"role": "assistant", "content": [
                {"type": "reasoning", "text": "hm"},
                {"type": "tool-call", "toolCallId": "c1", "toolName": "add",
                 "input": {"a": 1}, "providerExecuted": true},
                {"type": "custom", "kind": "codex.notice"}]}),
            json!({"role": "tool", "content": [
                {"type": "tool-result", "toolCallId": "c1", "toolName": "add",
                 "output": {"type": "content", "value": [{"type": "text", "text": "2"}]}},
                {"type": "tool-approval-response", "approvalId": "a1", "approved": false}]}),
        ];
        for raw in table {
            let message: Open<Message> = serde_json::from_value(raw.clone()).unwrap();
            assert!(message.known().is_some(), "{message:?}");
            assert_eq!(serde_json::to_value(&message).unwrap(), raw);
        }
    }

    #[test]
    fn an_unknown_part_is_kept_beside_the_known_ones() {
        let raw = json!({"role": "user", "content": [
            {"type": "hologram", "hue": 7}, {"type": "text", "text": "hi"}]});
        let message: Open<Message> = serde_json::from_value(raw.clone()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), raw);
        let Some(Message::User { content, .. }) = message.known() else { panic!("{message:?}") };
        assert!(matches!(&content[0], Open::Unknown { why, .. } if why.contains("hologram")));
    }

    #[test]
    fn plain_text_content_is_one_text_part() {
        let prompt: Prompt =
            serde_json::from_value(json!([{"role": "user", "content": "hi"}])).unwrap();
        assert_eq!(prompt, Prompt::user("hi"));
    }
}
