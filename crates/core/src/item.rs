//! Item: one finished (or still open) thing of a conversation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file::FileData;
use crate::ids::{CallId, ItemId, ThreadId};
use crate::part::Source;

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its name inside the turn.
    pub id: ItemId,
    /// The sub-agent it belongs to; none for the thread itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<ThreadId>,
    /// How it stands.
    pub status: Status,
    /// When it began and ended.
    #[serde(flatten)]
    pub span: Span,
    /// What it is.
    #[serde(flatten)]
    pub body: Body,
    /// Where it was read; empty for a live item.
    #[serde(flatten)]
    pub origin: Origin,
}

/// Where an item of a session file comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The lines it was folded from, counted from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u64>,
    /// What is special about it: `injected` by a client, `inherited` from another thread …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// What those lines hold that is not in the item: payloads too long to keep, fields that we do
    /// not know.
    #[serde(default, rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// How an item stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Begun, not ended.
    #[default]
    Pending,
    /// Done.
    Ok,
    /// Done, and it went wrong.
    Failed,
    /// Somebody said no.
    Declined,
    /// Somebody stopped it.
    Aborted,
    /// It began, and nothing tells how it ended.
    Incomplete,
    /// It ended in a way that we have no word for: neither done nor failed.
    Unknown,
}

impl Status {
    /// How an item stands that ended with this word and this exit code. One table for what is
    /// live and what was kept: a word that we do not know is neither good nor bad.
    pub fn of_word(word: Option<&str>, exit_code: Option<i64>) -> Self {
        match (word, exit_code) {
            (Some("failed" | "error" | "errored"), _) => Self::Failed,
            (Some("declined"), _) => Self::Declined,
            (Some("in_progress" | "inProgress" | "running"), _) => Self::Pending,
            (Some("interrupted" | "aborted"), _) => Self::Aborted,
            (_, Some(code)) if code != 0 => Self::Failed,
            (None | Some("" | "completed" | "complete" | "ok" | "success"), _) => Self::Ok,
            (Some(_), _) => Self::Unknown,
        }
    }
}

/// When something began and ended, in milliseconds since 1970, where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    /// End.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Body {
    /// The user's words.
    User {
        /// The text of all its parts.
        text: String,
        /// The other parts as they came (images, mentions, skills).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Value>,
    },
    /// The model's words.
    Message {
        /// The text.
        text: String,
        /// Codex's word for its place: `commentary`, `final_answer`, `plan` …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// The model's thoughts.
    Reasoning {
        /// Summaries.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        summary: Vec<String>,
        /// Raw thoughts, where the model shows them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        raw: Vec<String>,
    },
    /// A tool call with its result.
    Tool(Tool),
    /// A file the model made.
    File {
        /// IANA media type.
        media_type: String,
        /// The content.
        data: FileData,
    },
    /// Something the answer rests on.
    Source {
        /// What it is.
        source: Source,
    },
    /// Something worth telling that is neither said nor done: a warning, a compaction, a review.
    Notice {
        /// `retry`, `warning`, `compaction` …
        topic: String,
        /// In words.
        text: String,
        /// Everything else that came with it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },
    /// Something we do not understand, kept whole.
    Unknown {
        /// Its tag.
        tag: String,
        /// What the decoder stumbled over.
        why: String,
        /// As it came.
        raw: Value,
    },
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Pairs the call with its result.
    pub call_id: CallId,
    /// The tool as it was called.
    pub name: String,
    /// What sort of tool it is, whatever its name.
    pub sort: ToolSort,
    /// The input.
    pub input: Value,
    /// The output, when there is one; what came so far while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// How long it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// The sorts of tools, across all names that Codex versions gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolSort {
    /// Runs a command.
    Bash,
    /// Changes files.
    Edit,
    /// Searches the web.
    WebSearch,
    /// Keeps a plan.
    Plan,
    /// Makes or shows an image.
    Image,
    /// Works with sub-agents.
    Agent,
    /// A tool of an MCP server.
    Mcp,
    /// A tool of the caller's.
    Client,
    /// A question to a person.
    Question,
    /// Anything else.
    Other,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// For an update the hunks; for an added or deleted file its content.
    #[serde(default)]
    pub diff: String,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// It is different, and perhaps elsewhere.
    Update {
        /// Its new place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        move_path: Option<String>,
    },
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// In words.
    pub step: String,
    /// `pending`, `inProgress`, `completed`.
    pub status: String,
}

impl Tool {
    /// The file changes of an edit; empty for other tools.
    pub fn changes(&self) -> Vec<FileChange> {
        list(self.output.as_ref(), "changes")
            .or_else(|| list(Some(&self.input), "changes"))
            .unwrap_or_default()
    }

    /// The steps of a plan; empty for other tools.
    pub fn plan(&self) -> Vec<PlanStep> {
        list(Some(&self.input), "plan").unwrap_or_default()
    }
}

fn list<T: serde::de::DeserializeOwned>(value: Option<&Value>, key: &str) -> Option<Vec<T>> {
    Vec::<T>::deserialize(value?.get(key)?).ok()
}
