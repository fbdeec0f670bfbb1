//! Parameters of the requests we send.

use serde::Serialize;
use serde_json::{Map, Value};

use super::input::{ResponseItem, UserInput};
use crate::ids::{ThreadId, TurnId};

/// Settings that `thread/start`, `thread/resume` and `thread/fork` share.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettings {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// The folder to work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// `untrusted`, `on-request`, `never` or a granular object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<Value>,
    /// `user`, `auto_review`, `guardian_subagent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<String>,
    /// `read-only`, `workspace-write`, `danger-full-access`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Replaces Codex's base prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    /// Follows the base prompt; fixed at a thread's first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    /// Overrides of `config.toml`, by dotted key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// Whatever else a caller passes through to Codex.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `thread/start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStart {
    /// Settings.
    #[serde(flatten)]
    pub settings: ThreadSettings,
    /// No session file is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// The caller's tools (needs the experimental capability).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_tools: Option<Vec<Value>>,
    /// Tell where each response of the model ends; no other request can ask for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub experimental_raw_events: bool,
}

/// `thread/resume`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResume {
    /// The thread.
    pub thread_id: ThreadId,
    /// Settings.
    #[serde(flatten)]
    pub settings: ThreadSettings,
    /// Do not send the old turns along.
    pub exclude_turns: bool,
}

/// `thread/fork`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadFork {
    /// The thread to fork.
    pub thread_id: ThreadId,
    /// The last turn to take along; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn_id: Option<TurnId>,
    /// Settings.
    #[serde(flatten)]
    pub settings: ThreadSettings,
    /// No session file is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// Do not send the old turns along.
    pub exclude_turns: bool,
}

/// `thread/inject_items`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectItems {
    /// The thread.
    pub thread_id: ThreadId,
    /// Responses items, oldest first.
    pub items: Vec<ResponseItem>,
}

/// Settings of a turn. All but the schema stay in force for later turns of the thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnSettings {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort; Codex passes any word on to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `auto`, `concise`, `detailed`, `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The folder to work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// As for the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<Value>,
    /// As for the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_reviewer: Option<String>,
    /// The full policy object; threads take a mode name only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_policy: Option<Value>,
    /// JSON Schema of the answer; this turn only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whatever else a caller passes through to Codex.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    /// The thread.
    pub thread_id: ThreadId,
    /// The user's turn.
    pub input: Vec<UserInput>,
    /// Settings.
    #[serde(flatten)]
    pub settings: TurnSettings,
}

/// `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteer {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn that must still be running.
    pub expected_turn_id: TurnId,
    /// What to add.
    pub input: Vec<UserInput>,
}

/// `turn/interrupt`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnInterrupt {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: TurnId,
}

/// Any request whose only parameter is the thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfThread {
    /// The thread.
    pub thread_id: ThreadId,
}
