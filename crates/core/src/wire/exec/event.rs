//! Lines of `codex exec --json` as 0.166 writes them, for whoever stands in for it.

use serde::Serialize;
use serde_json::Value;

use crate::ids::ThreadId;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum Event {
    /// The first line.
    #[serde(rename = "thread.started")]
    ThreadStarted {
        /// The thread.
        thread_id: ThreadId,
    },
    /// The turn begins; warnings may come before it.
    #[serde(rename = "turn.started")]
    TurnStarted {},
    /// The turn went well.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// The whole thread's tokens so far.
        usage: Usage,
    },
    /// The turn did not.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// Why.
        error: Message,
    },
    /// An item begins.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The item.
        item: Item,
    },
    /// An item is different.
    #[serde(rename = "item.updated")]
    ItemUpdated {
        /// The item.
        item: Item,
    },
    /// An item is done.
    #[serde(rename = "item.completed")]
    ItemCompleted {
        /// The item.
        item: Item,
    },
    /// Something went wrong; the turn may go on all the same.
    #[serde(rename = "error")]
    Error {
        /// In words.
        message: String,
    },
}

/// Something in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The words.
    pub message: String,
}

/// Tokens of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read, cached ones included.
    pub input_tokens: u64,
    /// Of these, from the cache.
    pub cached_input_tokens: u64,
    /// Of these, written to the cache.
    pub cache_write_input_tokens: u64,
    /// Written, reasoning included.
    pub output_tokens: u64,
    /// Of these, reasoning.
    pub reasoning_output_tokens: u64,
}

/// An item with the name it has in this run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// `item_0`, `item_1` …
    pub id: String,
    /// What it is.
    #[serde(flatten)]
    pub body: Body,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// What the model said.
    AgentMessage {
        /// All of it.
        text: String,
    },
    /// What the model thought, summed up.
    Reasoning {
        /// All of it.
        text: String,
    },
    /// A command.
    CommandExecution {
        /// Wrapped for the shell.
        command: String,
        /// What it printed.
        aggregated_output: String,
        /// How it ended, if it did.
        exit_code: Option<i64>,
        /// `in_progress`, `completed`, `failed`, `declined`.
        status: String,
    },
    /// A patch.
    FileChange {
        /// The files.
        changes: Vec<Change>,
        /// `in_progress`, `completed`, `failed`.
        status: String,
    },
    /// A call of an MCP server's tool.
    McpToolCall {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Its input.
        arguments: Value,
        /// What it gave.
        result: Option<McpResult>,
        /// Why it gave nothing.
        error: Option<Message>,
        /// `in_progress`, `completed`, `failed`.
        status: String,
    },
    /// Work with sub-agents.
    CollabToolCall {
        /// `spawn_agent`, `send_input`, `wait`, `close_agent`.
        tool: String,
        /// Who asks.
        sender_thread_id: String,
        /// Who is asked.
        receiver_thread_ids: Vec<String>,
        /// What they are told.
        prompt: Option<String>,
        /// How they stand, by thread.
        agents_states: Value,
        /// `in_progress`, `completed`, `failed`.
        status: String,
    },
    /// A web search.
    WebSearch {
        /// What was searched for.
        query: String,
        /// What was done.
        action: Value,
    },
    /// The plan.
    TodoList {
        /// Its steps.
        items: Vec<Todo>,
    },
    /// A warning; not the end of anything.
    Error {
        /// In words.
        message: String,
    },
}

/// A file that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file.
    pub path: String,
    /// `add`, `delete`, `update`.
    pub kind: &'static str,
}

/// What a tool of an MCP server gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct McpResult {
    /// Its pieces.
    pub content: Value,
    /// The same as data.
    pub structured_content: Value,
    /// What else the server said.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Todo {
    /// In words.
    pub text: String,
    /// Whether it is done.
    pub completed: bool,
}
