//! The engine's history: items in the Responses shape, whichever wire carries them.
//!
//! What a model or a session file says that we do not know stays in the history as it came
//! ([`Open`]), and is sent back as it came.

use bindery_core::open::Open;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a history.
pub type HistoryItem = Open<Item>;

/// An entry we give meaning to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Somebody said something.
    Message(Message),
    /// What the model thought.
    Reasoning(Reasoning),
    /// The model calls a tool with JSON arguments.
    FunctionCall(FunctionCall),
    /// What the tool answered.
    FunctionCallOutput(CallOutput),
    /// The model calls a tool with free text.
    CustomToolCall(CustomCall),
    /// What that tool answered.
    CustomToolCallOutput(CallOutput),
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The server's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Open<Content>>,
    /// `commentary` or `final_answer`, where the model says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The system prompt, on wires that have one.
    System,
    /// The application.
    Developer,
    /// The person, and the context we tell in their place.
    User,
    /// The model.
    Assistant,
}

/// A piece of a message or of a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text to the model.
    InputText {
        /// The text.
        text: String,
    },
    /// A picture to the model.
    InputImage {
        /// A URL or data URL.
        image_url: String,
        /// `low`, `high`, `original` or `auto`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Text of the model.
    OutputText {
        /// The text.
        text: String,
    },
}

/// Thoughts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The server's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Summaries, each `{type: "summary_text", text}`.
    #[serde(default)]
    pub summary: Vec<Value>,
    /// Raw thoughts, each `{type: "reasoning_text", text}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Value>>,
    /// What the server wants back unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
}

/// A call with JSON arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The server's name for the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The group the tool is in; MCP servers have one each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON as text, as the model wrote it.
    pub arguments: String,
    /// Pairs the call with its output.
    pub call_id: String,
    /// What a Chat server wants back with the call, unread: Gemini's signatures of its thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_content: Option<Value>,
}

/// A call with free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomCall {
    /// The server's name for the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The text.
    pub input: String,
    /// Pairs the call with its output.
    pub call_id: String,
    /// `completed`, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What a Chat server wants back with the call, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_content: Option<Value>,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutput {
    /// Our name for the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call.
    pub call_id: String,
    /// The answer.
    pub output: Output,
}

/// A tool's answer as the model gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    /// Text.
    Text(String),
    /// Text and pictures.
    Content(Vec<Open<Content>>),
}

impl Message {
    /// A message to the model of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        let content = match role {
            Role::Assistant => Content::OutputText { text },
            _ => Content::InputText { text },
        };
        Self { id: None, role, content: vec![content.into()], phase: None }
    }
}

impl From<Message> for HistoryItem {
    fn from(message: Message) -> Self {
        Open::Known(Item::Message(message))
    }
}
