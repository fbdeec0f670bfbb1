//! The normalised stream of an agent's run: one JSON object a line, whatever the agent.
//!
//! The words are those of Gemini CLI's `stream-json` (`init`, `message`, `tool_use`,
//! `tool_result`, `error`, `result`) with those of sandbox runners (`stderr`, `artifact`) and ours
//! (`reasoning`, `plan`, `usage`, `unknown`). [`Dialect::Compat`] keeps to what readers of the
//! first two know.

mod compat;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::item;
use crate::json_text::JsonText;

/// One line of the stream.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A run begins.
    Init {
        /// The conversation, to be resumed by this name.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<JsonText<'a>>,
        /// The model, where the agent says it.
        #[serde(rename = "modelId", skip_serializing_if = "Option::is_none")]
        model_id: Option<JsonText<'a>>,
        /// The agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
        /// The folder it works in, where it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<JsonText<'a>>,
    },
    /// Somebody says something.
    Message {
        /// Who.
        role: Role,
        /// What.
        content: JsonText<'a>,
        /// It is a piece of a message, not a whole one.
        delta: bool,
        /// The message's name in this run.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<JsonText<'a>>,
    },
    /// The model thinks aloud.
    Reasoning {
        /// The thought.
        content: JsonText<'a>,
        /// Its name in this run.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<JsonText<'a>>,
    },
    /// A tool is called.
    ToolUse(ToolUse<'a>),
    /// It has answered, or the run ended without its answer.
    ToolResult(ToolResult<'a>),
    /// The plan as it now stands.
    Plan {
        /// The plan's name in this run.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<JsonText<'a>>,
        /// Why it was made or changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        explanation: Option<JsonText<'a>>,
        /// Its steps.
        items: Vec<PlanItem>,
    },
    /// Something to know that is no part of the answer.
    Stderr {
        /// In words.
        content: JsonText<'a>,
        /// How much it matters.
        #[serde(skip_serializing_if = "Option::is_none")]
        severity: Option<Severity>,
        /// What it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        topic: Option<Topic>,
    },
    /// A file that the run left for its caller.
    Artifact(Artifact),
    /// Tokens, at the end of each turn.
    Usage {
        /// Of this turn; absent where the conversation's earlier total is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<Tokens>,
        /// Of the conversation so far.
        total: Tokens,
    },
    /// Something failed.
    Error {
        /// In words.
        message: JsonText<'a>,
        /// The turn ended because of it.
        fatal: bool,
    },
    /// A line that we do not understand.
    Unknown {
        /// What it calls itself.
        tag: String,
        /// What the decoder stumbled over.
        why: String,
        /// The beginning of the line.
        raw: String,
        /// Its whole length.
        bytes: u64,
    },
    /// The run is over; exactly one of these ends every stream.
    Result(RunResult<'a>),
}

impl Event<'_> {
    /// Its `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Init { .. } => "init",
            Self::Message { .. } => "message",
            Self::Reasoning { .. } => "reasoning",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Plan { .. } => "plan",
            Self::Stderr { .. } => "stderr",
            Self::Artifact(_) => "artifact",
            Self::Usage { .. } => "usage",
            Self::Error { .. } => "error",
            Self::Unknown { .. } => "unknown",
            Self::Result(_) => "result",
        }
    }
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person or program that asked.
    User,
    /// The model.
    Assistant,
}

/// A tool is called.
#[derive(Clone, Debug, Serialize)]
pub struct ToolUse<'a> {
    /// The tool.
    pub tool_name: JsonText<'a>,
    /// The call; its result carries the same.
    pub tool_id: JsonText<'a>,
    /// The tool's input.
    pub parameters: Parameters<'a>,
    /// The provider's own name of the call, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<JsonText<'a>>,
}

/// The input of a tool.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Parameters<'a> {
    /// A command.
    Command {
        /// The command line.
        command: JsonText<'a>,
        /// Where it runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<JsonText<'a>>,
    },
    /// A patch, as Codex lists it.
    Changes {
        /// The list.
        changes: &'a RawValue,
    },
    /// A patch of an older Codex, brought into the same form.
    Patch {
        /// The list.
        changes: Vec<PatchChange>,
    },
    /// A web search.
    Search {
        /// What for.
        query: JsonText<'a>,
        /// What exactly is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'a RawValue>,
    },
    /// Work with sub-agents.
    Agent {
        /// What is done.
        action: JsonText<'a>,
        /// What they are told.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<JsonText<'a>>,
        /// Their threads.
        #[serde(skip_serializing_if = "Option::is_none")]
        threads: Option<&'a RawValue>,
    },
    /// Any JSON.
    Raw(&'a RawValue),
    /// None.
    Empty {},
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PatchChange {
    /// The file.
    pub path: String,
    /// `add`, `delete` or `update`.
    pub kind: &'static str,
    /// Its new place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_path: Option<String>,
    /// For an update the hunks; for an added or deleted file its content.
    pub diff: String,
}

/// A tool has answered.
#[derive(Clone, Debug, Serialize)]
pub struct ToolResult<'a> {
    /// The call.
    pub tool_id: JsonText<'a>,
    /// The tool.
    pub tool_name: JsonText<'a>,
    /// Whether it did what it should.
    pub status: Status,
    /// What it printed or said.
    pub output: JsonText<'a>,
    /// How it stands, in Codex's words or ours.
    pub state: State,
    /// Exit code of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The answer as JSON, where there is more than text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a RawValue>,
}

/// Good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Good.
    Success,
    /// Bad.
    Error,
    /// Codex used a word that we do not know: neither.
    Unknown,
}

/// How a tool call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Done.
    Completed,
    /// Done, in vain.
    Failed,
    /// Not allowed.
    Declined,
    /// The turn ended before it did.
    Incomplete,
    /// Somebody stopped the run.
    Aborted,
    /// It ended in a way that we have no word for.
    Unknown,
}

impl State {
    /// Whether that is good.
    pub fn status(self) -> Status {
        match self {
            Self::Completed => Status::Success,
            Self::Unknown => Status::Unknown,
            _ => Status::Error,
        }
    }
}

impl From<item::Status> for State {
    fn from(status: item::Status) -> Self {
        match status {
            item::Status::Ok => Self::Completed,
            item::Status::Failed => Self::Failed,
            item::Status::Declined => Self::Declined,
            item::Status::Aborted => Self::Aborted,
            // An item that is told as done and yet runs is one that nobody will hear of again.
            item::Status::Pending | item::Status::Incomplete => Self::Incomplete,
            item::Status::Unknown => Self::Unknown,
        }
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlanItem {
    /// In words.
    pub text: String,
    /// It is done.
    pub completed: bool,
    /// It is being done; only older Codex versions say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_progress: bool,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something may be wrong.
    Warning,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// Codex tries again.
    Retry,
    /// Codex warns of a setting, a model, a coming change.
    Warning,
    /// The process wrote it to its stderr.
    Process,
}

/// A file that the run left for its caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Where, from the folder of artifacts, with `/` between names.
    pub path: String,
    /// How long.
    pub size_bytes: u64,
    /// IANA media type, by the file's ending.
    pub mime_type: &'static str,
    /// The file's name.
    pub label: String,
}

/// Token counts in Codex's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Tokens read.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    pub cached_input_tokens: u64,
    /// Those of them that went into a cache.
    pub cache_write_input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Those of them that were reasoning.
    pub reasoning_output_tokens: u64,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult<'a> {
    /// Good or bad.
    pub status: Status,
    /// Why it ended.
    pub reason: Reason,
    /// The process's exit code; absent if it has none or nobody knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<&'a str>,
    /// What went wrong, if something did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<JsonText<'a>>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The turn was completed.
    Completed,
    /// The agent says that it failed.
    Failed,
    /// The process ended by itself before the turn did.
    Exit,
    /// A signal ended the process before the turn did.
    Signal,
    /// The stream ended before the turn did, and nobody knows why.
    Cut,
    /// The caller stopped it.
    Aborted,
    /// It took longer than it may.
    Deadline,
    /// It wrote more than it may.
    Limit,
    /// It never began.
    NotStarted,
}

/// Which words a stream uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// All of them.
    #[default]
    Full,
    /// Only those that readers of the original vocabulary know, with only the fields they read.
    Compat,
}

/// Writes one event as a line; nothing, where the dialect has no word for it.
pub fn write(event: &Event<'_>, dialect: Dialect, out: &mut Vec<u8>) {
    let start = out.len();
    let written = match dialect {
        Dialect::Full => serde_json::to_writer(&mut *out, event),
        Dialect::Compat => match compat::of(event) {
            Some(event) => serde_json::to_writer(&mut *out, &event),
            None => return,
        },
    };
    match written {
        Ok(()) => out.push(b'\n'),
        // Our own types always serialise into memory; half a line must not stay all the same.
        Err(_) => out.truncate(start),
    }
}
