//! Replies to the requests we send: the fields we use, the rest ignored.

use serde::Deserialize;
use serde_json::Value;

use super::notification::Turn;
use crate::ids::{ThreadId, TurnId};

/// `initialize`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// Holds the version: `<client>/0.166.0 (…)`.
    pub user_agent: String,
    /// The server's home folder.
    #[serde(default)]
    pub codex_home: Option<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Its name.
    pub id: ThreadId,
    /// The thread that spawned it, for a sub-agent.
    #[serde(default)]
    pub parent_thread_id: Option<ThreadId>,
    /// The thread it was forked from.
    #[serde(default)]
    pub forked_from_id: Option<ThreadId>,
    /// The first words of it.
    #[serde(default)]
    pub preview: String,
    /// The name a person gave it.
    #[serde(default)]
    pub name: Option<String>,
    /// A sub-agent's nickname.
    #[serde(default)]
    pub agent_nickname: Option<String>,
    /// Its folder.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Its session file.
    #[serde(default)]
    pub path: Option<String>,
    /// The version that wrote it.
    #[serde(default)]
    pub cli_version: Option<String>,
    /// Seconds since 1970.
    #[serde(default)]
    pub created_at: Option<i64>,
    /// Seconds since 1970.
    #[serde(default)]
    pub updated_at: Option<i64>,
    /// `idle`, `active`, `notLoaded`, `systemError`.
    #[serde(default)]
    pub status: Value,
    /// Old turns, where they were asked for.
    #[serde(default)]
    pub turns: Vec<Value>,
}

/// `thread/start`, `thread/resume`, `thread/fork`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadOpened {
    /// The thread.
    pub thread: Thread,
    /// The model in force.
    #[serde(default)]
    pub model: String,
    /// Its provider.
    #[serde(default)]
    pub model_provider: String,
    /// The folder in force.
    #[serde(default)]
    pub cwd: String,
    /// The sandbox in force.
    #[serde(default)]
    pub sandbox: Value,
    /// The approval policy in force.
    #[serde(default)]
    pub approval_policy: Value,
    /// The effort in force.
    #[serde(default)]
    pub reasoning_effort: Option<String>,
}

/// `turn/start`, `review/start`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TurnOpened {
    /// The turn.
    pub turn: Turn,
}

/// `turn/steer`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Steered {
    /// The turn that took the words in.
    pub turn_id: TurnId,
}

/// `thread/read`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ThreadRead {
    /// The thread.
    pub thread: Thread,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Where the next page begins.
    #[serde(default = "Option::default")]
    pub next_cursor: Option<String>,
}

/// A model of `model/list`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its name in calls.
    pub id: String,
    /// Its name for people.
    #[serde(default)]
    pub display_name: String,
    /// What it is good at.
    #[serde(default)]
    pub description: String,
    /// Used when none is named.
    #[serde(default)]
    pub is_default: bool,
    /// Efforts it takes: `{reasoningEffort, description}`.
    #[serde(default)]
    pub supported_reasoning_efforts: Vec<Value>,
    /// The effort it takes when none is named.
    #[serde(default)]
    pub default_reasoning_effort: Option<String>,
    /// What it can be shown: `text`, `image`; empty where Codex does not say.
    #[serde(default)]
    pub input_modalities: Vec<String>,
}
