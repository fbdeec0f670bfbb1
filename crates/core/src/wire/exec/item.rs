//! Items of today's vocabulary.

use serde_json::value::RawValue;

use super::fields::Fields;
use super::{list, message_in, need, number, some, text, words};
use crate::json_text::JsonText;
use crate::ndjson::PlanItem;

/// One item.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// `item_N`, counted from 0 in each process.
    pub id: JsonText<'a>,
    /// What it is.
    pub body: ItemBody<'a>,
}

/// What an item is.
#[derive(Clone, Debug)]
pub enum ItemBody<'a> {
    /// The model said something.
    AgentMessage {
        /// All of it.
        text: JsonText<'a>,
    },
    /// The model thought something.
    Reasoning {
        /// The summaries.
        text: JsonText<'a>,
    },
    /// A command.
    Command(Command<'a>),
    /// A patch.
    FileChange {
        /// `[{path, kind}]`, without the diff.
        changes: &'a RawValue,
        /// How it stands.
        status: Option<JsonText<'a>>,
    },
    /// A call of an MCP server's tool.
    Mcp(McpCall<'a>),
    /// A web search.
    WebSearch {
        /// The provider's name of the call: the second `id`.
        call_id: Option<JsonText<'a>>,
        /// Before 0.166 empty at the start.
        query: JsonText<'a>,
        /// What was done.
        action: Option<&'a RawValue>,
    },
    /// The plan.
    TodoList {
        /// Its steps.
        items: Vec<PlanItem>,
    },
    /// Work with sub-agents.
    Collab(Collab<'a>),
    /// A warning, not a failure.
    Error {
        /// In words.
        message: JsonText<'a>,
    },
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// The command line, wrapped for the shell.
    pub command: JsonText<'a>,
    /// All that it printed.
    pub output: Option<JsonText<'a>>,
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// How it stands.
    pub status: Option<JsonText<'a>>,
}

/// A call of an MCP server's tool.
#[derive(Clone, Debug)]
pub struct McpCall<'a> {
    /// The server.
    pub server: JsonText<'a>,
    /// The tool.
    pub tool: JsonText<'a>,
    /// Its input; 0.50 does not tell it.
    pub arguments: Option<&'a RawValue>,
    /// Its answer.
    pub result: Option<&'a RawValue>,
    /// Why there is none.
    pub error: Option<JsonText<'a>>,
    /// How it stands.
    pub status: Option<JsonText<'a>>,
}

/// Work with sub-agents.
#[derive(Clone, Debug)]
pub struct Collab<'a> {
    /// `spawn_agent`, `send_input`, `wait`, `close_agent`.
    pub tool: JsonText<'a>,
    /// What they are told.
    pub prompt: Option<JsonText<'a>>,
    /// Their threads.
    pub threads: Option<&'a RawValue>,
    /// How each of them stands.
    pub states: Option<&'a RawValue>,
    /// How the call stands.
    pub status: Option<JsonText<'a>>,
}

/// Reads an item of this line.
pub(super) fn decode<'a>(fields: &Fields<'a>, line: &'a str) -> Result<Item<'a>, String> {
    // The first versions with items said `item_type`.
    let kind = need(fields.r#type.or(fields.item_type), "item.type")?;
    let body = match &*kind.decode() {
        "agent_message" | "assistant_message" => {
            ItemBody::AgentMessage { text: need(fields.text, "text")? }
        }
        "reasoning" => ItemBody::Reasoning { text: need(fields.text, "text")? },
        "command_execution" => ItemBody::Command(command(fields)?),
        "file_change" => ItemBody::FileChange {
            changes: fields.changes.ok_or("`changes` is missing")?,
            status: text(fields.status),
        },
        "mcp_tool_call" => ItemBody::Mcp(mcp(fields)?),
        "web_search" => ItemBody::WebSearch {
            call_id: text(fields.other_id),
            query: need(fields.query, "query")?,
            action: some(fields.action),
        },
        "todo_list" => ItemBody::TodoList { items: list(fields.items, "items")? },
        "collab_tool_call" => ItemBody::Collab(collab(fields)?),
        "error" => ItemBody::Error { message: words(fields.message, line) },
        _ => return Err("a type of item that is new to us".to_owned()),
    };
    Ok(Item { id: need(fields.id, "id")?, body })
}

fn command<'a>(fields: &Fields<'a>) -> Result<Command<'a>, String> {
    Ok(Command {
        command: need(fields.command, "command")?,
        output: text(fields.aggregated_output),
        exit_code: number(fields.exit_code),
        status: text(fields.status),
    })
}

fn mcp<'a>(fields: &Fields<'a>) -> Result<McpCall<'a>, String> {
    Ok(McpCall {
        server: need(fields.server, "server")?,
        tool: need(fields.tool, "tool")?,
        arguments: some(fields.arguments),
        result: some(fields.result),
        error: some(fields.error).map(|error| message_in(Some(error), error.get())),
        status: text(fields.status),
    })
}

fn collab<'a>(fields: &Fields<'a>) -> Result<Collab<'a>, String> {
    Ok(Collab {
        tool: need(fields.tool, "tool")?,
        prompt: text(fields.prompt),
        threads: some(fields.receiver_thread_ids),
        states: some(fields.agents_states),
        status: text(fields.status),
    })
}
