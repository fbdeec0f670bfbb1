//! Transcript: items grouped in turns. Live parts fold into it; every renderer draws it.

mod fold;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ThreadId, TurnId};
use crate::item::{Item, Origin, Span};
use crate::part::Warning;
use crate::usage::{FinishReason, Usage};

/// A conversation as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    /// The thread, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// Its turns, oldest first.
    pub turns: Vec<TurnRecord>,
}

/// One turn as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// The turn, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TurnId>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What began it, in Codex's word: `exec`, `goal` …; none for a client's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// What was said and done, in the order it began.
    pub items: Vec<Item>,
    /// What could not be carried to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Value>,
    /// Why it ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Tokens, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When it began and ended, where a session file tells.
    #[serde(flatten)]
    pub span: Span,
    /// The reasoning effort in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The folder it worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What Codex told the model beside the user's words: not part of the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Setup>,
    /// The turn was taken back later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
}

/// Instructions and context that Codex or its client put before the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// What it is: `AGENTS.md`, `environment`, `permissions`, `skill`, `developer` …
    pub topic: String,
    /// The text.
    pub text: String,
    /// Where it was read.
    #[serde(flatten)]
    pub origin: Origin,
}
