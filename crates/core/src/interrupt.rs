//! Interrupt: a question that stops a turn, and the answers it can be given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{ApprovalId, CallId, ThreadId, TurnId};
use crate::item::FileChange;

/// A question that stops a turn until it is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// The question's name; an answer is given under it, once.
    pub id: ApprovalId,
    /// The thread that waits.
    pub thread_id: ThreadId,
    /// The turn that waits.
    pub turn_id: TurnId,
    /// The tool call it is about.
    pub call_id: CallId,
    /// What is asked.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Ask {
    /// May this command run?
    Command {
        /// Exactly what would run.
        command: String,
        /// Where.
        cwd: String,
        /// Why the model wants it.
        reason: Option<String>,
        /// It is typed into a running command instead of being started.
        into_running: bool,
        /// A person must decide, for this once: no session, no rule, no automatic yes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        person_required: bool,
        /// The rule that "always" would save.
        rule: Option<Vec<String>>,
        /// The network access it is about.
        network: Option<Value>,
        /// The network rules that could be saved.
        network_rules: Vec<Value>,
    },
    /// May these files change?
    FileChange {
        /// The changes, joined in from the item.
        changes: Vec<FileChange>,
        /// Why the model wants it.
        reason: Option<String>,
        /// The folder that would become writable.
        grant_root: Option<String>,
    },
    /// May the model have these permissions?
    Permissions {
        /// What is wanted.
        permissions: Value,
        /// Why.
        reason: Option<String>,
        /// Where.
        cwd: Option<String>,
    },
    /// The model asks the user.
    UserInput {
        /// The questions: id, header, text, options.
        questions: Vec<Value>,
    },
    /// An MCP server asks the user.
    Elicitation {
        /// The server.
        server: String,
        /// In words.
        message: String,
        /// `form`, `url` …
        mode: String,
        /// Schema of the form.
        schema: Option<Value>,
        /// It is no question but the approval of an MCP tool call, with these arguments.
        tool_params: Option<Value>,
        /// How long an approval may be remembered: `session`, `always`.
        persist: Vec<String>,
    },
    /// A tool of the caller's is called.
    ToolCall {
        /// The tool.
        tool: String,
        /// Its namespace.
        namespace: Option<String>,
        /// Its input.
        arguments: Value,
    },
}

/// Yes or no, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// Yes, once.
    Accept,
    /// Yes, and do not ask again for the same in this session.
    AcceptForSession,
    /// Yes, and save a rule: the command words that are always allowed.
    AcceptWithRule(Vec<String>),
    /// Save this network rule (`{action, host}`), which may allow or deny.
    ApplyNetworkRule(Value),
    /// No; the turn goes on.
    Decline,
    /// No, and the turn stops.
    Cancel,
}

/// An answer to an interrupt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Answer {
    /// To a command, a file change, or an MCP tool's approval.
    Decision {
        /// Yes or no.
        decision: Decision,
    },
    /// To a request for permissions: what is granted, perhaps nothing.
    Permissions {
        /// A subset of what was wanted.
        granted: Value,
        /// For the session instead of the turn.
        for_session: bool,
    },
    /// To the model's questions: question id → answers.
    UserInput {
        /// The answers.
        answers: Map<String, Value>,
    },
    /// To an MCP server's question.
    Elicitation {
        /// `accept`, `decline`, `cancel`.
        action: ElicitationAction,
        /// The filled form.
        content: Option<Value>,
    },
    /// What the caller's tool returned.
    ToolResult {
        /// Pieces: `{type: inputText, text}`, `{type: inputImage, imageUrl}`.
        content: Vec<Value>,
        /// The tool did what it should.
        success: bool,
    },
}

/// How an MCP server's question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    /// With the filled form.
    Accept,
    /// With no.
    Decline,
    /// With no answer.
    Cancel,
}

impl Answer {
    /// A decision.
    pub fn decision(decision: Decision) -> Self {
        Self::Decision { decision }
    }

    /// The "no" that fits a question; what an unanswered question gets.
    pub fn refusal(ask: &Ask, why: &str) -> Self {
        match ask {
            Ask::Command { .. } | Ask::FileChange { .. } => Self::decision(Decision::Decline),
            Ask::Permissions { .. } => {
                Self::Permissions { granted: Value::Object(Map::new()), for_session: false }
            }
            Ask::UserInput { .. } => Self::UserInput { answers: Map::new() },
            Ask::Elicitation { .. } => {
                Self::Elicitation { action: ElicitationAction::Decline, content: None }
            }
            Ask::ToolCall { .. } => Self::ToolResult {
                content: vec![serde_json::json!({ "type": "inputText", "text": why })],
                success: false,
            },
        }
    }
}
