//! Events of 0.42 and older: `{"id":"0","msg":{"type":…}}`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::{list, need, number, some, text, words};
use crate::json_text::JsonText;
use crate::ndjson::{PlanItem, Tokens};

/// One event.
#[derive(Clone, Debug)]
pub enum Msg<'a> {
    /// The turn begins.
    TaskStarted,
    /// The model said something.
    AgentMessage(JsonText<'a>),
    /// The model thought something.
    AgentReasoning(JsonText<'a>),
    /// A command begins.
    CommandBegin {
        /// The call.
        call_id: JsonText<'a>,
        /// Program and arguments.
        command: &'a RawValue,
        /// Where it runs.
        cwd: Option<JsonText<'a>>,
    },
    /// It prints something, as base64 or (0.25 and older) as a list of numbers.
    CommandOutput {
        /// The call.
        call_id: JsonText<'a>,
        /// What.
        chunk: &'a RawValue,
    },
    /// It is done.
    CommandEnd(CommandEnd<'a>),
    /// A patch begins.
    PatchBegin {
        /// The call.
        call_id: JsonText<'a>,
        /// Path → change.
        changes: &'a RawValue,
    },
    /// It is done.
    PatchEnd {
        /// The call.
        call_id: JsonText<'a>,
        /// What `apply_patch` printed.
        output: [Option<JsonText<'a>>; 2],
        /// It worked.
        success: bool,
    },
    /// A call of an MCP server's tool begins.
    McpBegin {
        /// The call.
        call_id: JsonText<'a>,
        /// `{server, tool, arguments}`.
        invocation: &'a RawValue,
    },
    /// It is done.
    McpEnd {
        /// The call.
        call_id: JsonText<'a>,
        /// `{server, tool, arguments}`.
        invocation: &'a RawValue,
        /// `{"Ok": …}` or `{"Err": …}`.
        result: &'a RawValue,
    },
    /// A web search begins.
    SearchBegin {
        /// The call.
        call_id: JsonText<'a>,
    },
    /// It is done.
    SearchEnd {
        /// The call.
        call_id: JsonText<'a>,
        /// What was searched for.
        query: JsonText<'a>,
    },
    /// The plan changes.
    PlanUpdate {
        /// Why.
        explanation: Option<JsonText<'a>>,
        /// Its steps.
        plan: Vec<PlanItem>,
    },
    /// Tokens of one response (0.25 and older).
    TokensOfResponse(Tokens),
    /// Tokens of the process so far; none before the first response.
    TokensSoFar(Option<Tokens>),
    /// Codex tries again, or says what it is about.
    Notice(JsonText<'a>),
    /// The turn failed.
    Error(JsonText<'a>),
    /// Said again by others, or of no use in this stream.
    NotShown,
}

/// A command is done.
#[derive(Clone, Debug)]
pub struct CommandEnd<'a> {
    /// The call.
    pub call_id: JsonText<'a>,
    /// All that it printed; 0.20 does not tell it.
    pub output: Option<JsonText<'a>>,
    /// What it printed to stdout.
    pub stdout: Option<JsonText<'a>>,
    /// What it printed to stderr.
    pub stderr: Option<JsonText<'a>>,
    /// Its exit code.
    pub exit_code: Option<i64>,
}

/// Events we know and do not show: the whole diff is the sum of the patches, the others come with
/// their end as well or only divide.
const NOT_SHOWN: &[&str] = &[
    "turn_diff",
    "agent_reasoning_section_break",
    "agent_message_delta",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content",
    "agent_reasoning_raw_content_delta",
    "session_configured",
    "task_complete",
    "shutdown_complete",
    "user_message",
];

/// Reads an event of this line.
pub(super) fn decode<'a>(fields: &Fields<'a>, line: &'a str) -> Result<Msg<'a>, String> {
    let kind = need(fields.r#type, "msg.type")?;
    let call_id = || need(fields.call_id, "call_id");
    Ok(match &*kind.decode() {
        "task_started" => Msg::TaskStarted,
        "agent_message" => Msg::AgentMessage(need(fields.message, "message")?),
        "agent_reasoning" => Msg::AgentReasoning(need(fields.text, "text")?),
        "exec_command_begin" => Msg::CommandBegin {
            call_id: call_id()?,
            command: there(fields.command, "command")?,
            cwd: text(fields.cwd),
        },
        "exec_command_output_delta" => {
            Msg::CommandOutput { call_id: call_id()?, chunk: there(fields.chunk, "chunk")? }
        }
        "exec_command_end" => Msg::CommandEnd(command_end(fields)?),
        "patch_apply_begin" => {
            Msg::PatchBegin { call_id: call_id()?, changes: there(fields.changes, "changes")? }
        }
        "patch_apply_end" => Msg::PatchEnd {
            call_id: call_id()?,
            output: [text(fields.stdout), text(fields.stderr)],
            success: fields.success.is_some_and(|raw| raw.get() == "true"),
        },
        "mcp_tool_call_begin" => Msg::McpBegin {
            call_id: call_id()?,
            invocation: there(fields.invocation, "invocation")?,
        },
        "mcp_tool_call_end" => Msg::McpEnd {
            call_id: call_id()?,
            invocation: there(fields.invocation, "invocation")?,
            result: there(fields.result, "result")?,
        },
        "web_search_begin" => Msg::SearchBegin { call_id: call_id()? },
        "web_search_end" => {
            Msg::SearchEnd { call_id: call_id()?, query: need(fields.query, "query")? }
        }
        "plan_update" => Msg::PlanUpdate {
            explanation: text(fields.explanation),
            plan: plan_items(list(fields.plan, "plan")?),
        },
        "token_count" if fields.input_tokens.is_some() => Msg::TokensOfResponse(tokens_in(fields)),
        "token_count" => Msg::TokensSoFar(some(fields.info).and_then(total)),
        "stream_error" | "background_event" => Msg::Notice(words(fields.message, line)),
        "error" => Msg::Error(words(fields.message, line)),
        known if NOT_SHOWN.contains(&known) => Msg::NotShown,
        _ => return Err("a type of event that is new to us".to_owned()),
    })
}

fn command_end<'a>(fields: &Fields<'a>) -> Result<CommandEnd<'a>, String> {
    Ok(CommandEnd {
        call_id: need(fields.call_id, "call_id")?,
        output: text(fields.aggregated_output),
        stdout: text(fields.stdout),
        stderr: text(fields.stderr),
        exit_code: number(fields.exit_code),
    })
}

fn tokens_in(fields: &Fields<'_>) -> Tokens {
    let count = |raw| number(raw).and_then(|count| u64::try_from(count).ok()).unwrap_or_default();
    Tokens {
        input_tokens: count(fields.input_tokens),
        cached_input_tokens: count(fields.cached_input_tokens),
        cache_write_input_tokens: 0,
        output_tokens: count(fields.output_tokens),
        reasoning_output_tokens: count(fields.reasoning_output_tokens),
    }
}

fn total(info: &RawValue) -> Option<Tokens> {
    let info: Fields<'_> = serde_json::from_str(info.get()).ok()?;
    serde_json::from_str(info.total_token_usage?.get()).ok()
}

#[derive(Deserialize)]
struct Step {
    step: String,
    status: String,
}

fn plan_items(steps: Vec<Step>) -> Vec<PlanItem> {
    let item = |step: Step| PlanItem {
        completed: step.status == "completed",
        in_progress: step.status == "in_progress",
        text: step.step,
    };
    steps.into_iter().map(item).collect()
}

fn there<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, String> {
    raw.ok_or_else(|| format!("`{name}` is missing"))
}
