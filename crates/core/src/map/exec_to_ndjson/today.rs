//! Items of today's vocabulary → events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fold::{Fold, notice};
use super::tools::{Answer, Call};
use crate::item::Status;
use crate::json_text::JsonText;
use crate::ndjson::{Event, Parameters, State, Topic};
use crate::wire::exec::{Collab, Command, Item, ItemBody, McpCall, Phase};

/// Takes one item line.
pub(super) fn item(
    fold: &mut Fold,
    phase: Phase,
    item: Item<'_>,
    sink: &mut dyn FnMut(&Event<'_>),
) {
    let Item { id, body } = item;
    let done = phase == Phase::Completed;
    match body {
        ItemBody::AgentMessage { text } if done => fold.say(text, false, Some(id), sink),
        ItemBody::Reasoning { text } if done => {
            let id = Some(fold.tools.name(&id));
            sink(&Event::Reasoning { content: text, id });
        }
        ItemBody::Error { message } if done => notice(message, Topic::Warning, sink),
        ItemBody::AgentMessage { .. } | ItemBody::Reasoning { .. } | ItemBody::Error { .. } => {}
        ItemBody::TodoList { items } => fold.plan(Some(id), None, items, sink),
        ItemBody::WebSearch { query, .. } if query.is_empty() && !done => {
            fold.tools.announce(&id, &JsonText::from(WEB_SEARCH), false);
        }
        tool => {
            let Some(call) = call_of(id, &tool) else { return };
            match done {
                true => fold.tools.end(call, answer_of(&tool), sink),
                false => fold.tools.begin(call, sink),
            }
        }
    }
}

const WEB_SEARCH: &str = "codex_web_search";

/// The call an item is.
fn call_of<'a>(id: JsonText<'a>, item: &ItemBody<'a>) -> Option<Call<'a>> {
    let (name, parameters) = match item {
        ItemBody::Command(command) => {
            let parameters = Parameters::Command { command: command.command.clone(), cwd: None };
            ("codex_command_execution".into(), parameters)
        }
        ItemBody::FileChange { changes, .. } => {
            ("codex_file_change".into(), Parameters::Changes { changes })
        }
        ItemBody::Mcp(call) => (
            mcp_name(&call.server, &call.tool),
            call.arguments.map_or(Parameters::Empty {}, Parameters::Raw),
        ),
        ItemBody::WebSearch { query, action, .. } => {
            (WEB_SEARCH.into(), Parameters::Search { query: query.clone(), action: *action })
        }
        ItemBody::Collab(call) => ("codex_agent".into(), agent(call)),
        _ => return None,
    };
    let call_id = match item {
        ItemBody::WebSearch { call_id, .. } => call_id.clone(),
        _ => None,
    };
    Some(Call { id, name, parameters, call_id })
}

/// The answer of an item that is done.
fn answer_of<'a>(item: &ItemBody<'a>) -> Answer<'a> {
    match item {
        ItemBody::Command(command) => command_answer(command),
        ItemBody::FileChange { changes, status } => {
            plain(status.as_ref(), JsonText::from(list_changes(changes)))
        }
        ItemBody::Mcp(call) => mcp_answer(call),
        ItemBody::Collab(call) => collab_answer(call),
        // Codex does not tell what a search found.
        _ => plain(None, JsonText::from("")),
    }
}

/// The name of an MCP tool.
pub(super) fn mcp_name<'a>(server: &JsonText<'_>, tool: &JsonText<'_>) -> JsonText<'a> {
    JsonText::from(format!("mcp:{}/{}", server.decode(), tool.decode()))
}

fn agent<'a>(call: &Collab<'a>) -> Parameters<'a> {
    Parameters::Agent {
        action: call.tool.clone(),
        prompt: call.prompt.clone(),
        threads: call.threads,
    }
}

fn plain<'a>(status: Option<&JsonText<'_>>, output: JsonText<'a>) -> Answer<'a> {
    ended(status, None, output)
}

/// The state is that of the one table for all of Codex's words.
fn ended<'a>(
    status: Option<&JsonText<'_>>,
    exit_code: Option<i64>,
    output: JsonText<'a>,
) -> Answer<'a> {
    let status = Status::of_word(status.map(JsonText::decode).as_deref(), exit_code);
    Answer { state: State::from(status), output, exit_code, result: None }
}

fn command_answer<'a>(command: &Command<'a>) -> Answer<'a> {
    let output = command.output.clone().unwrap_or_else(|| JsonText::from(""));
    ended(command.status.as_ref(), command.exit_code, output)
}

fn mcp_answer<'a>(call: &McpCall<'a>) -> Answer<'a> {
    let output = match (&call.error, call.result) {
        (Some(error), _) => error.clone(),
        (None, Some(result)) => JsonText::from(content_text(result)),
        (None, None) => JsonText::from(""),
    };
    Answer { result: call.result, ..plain(call.status.as_ref(), output) }
}

fn collab_answer<'a>(call: &Collab<'a>) -> Answer<'a> {
    let output = call.states.map(list_agents).unwrap_or_default();
    Answer { result: call.states, ..plain(call.status.as_ref(), JsonText::from(output)) }
}

#[derive(Deserialize)]
struct Change<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// One line a change: what happened, and to which file.
fn list_changes(changes: &RawValue) -> String {
    let changes: Vec<Change<'_>> = serde_json::from_str(changes.get()).unwrap_or_default();
    let lines = changes.iter().map(|change| format!("{} {}", change.kind, change.path));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text pieces of an MCP answer; the whole answer where there are none.
pub(super) fn content_text(result: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Content {
        content: Vec<Piece>,
    }
    #[derive(Deserialize)]
    struct Piece {
        text: Option<String>,
    }
    let content = serde_json::from_str::<Content>(result.get());
    let pieces = content.map(|content| content.content).unwrap_or_default();
    let texts: Vec<String> = pieces.into_iter().filter_map(|piece| piece.text).collect();
    if texts.is_empty() { result.get().to_owned() } else { texts.join("\n") }
}

/// One line an agent: its thread, how it stands, what it says.
fn list_agents(states: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Agent {
        status: String,
        message: Option<String>,
    }
    let agents: std::collections::BTreeMap<String, Agent> =
        serde_json::from_str(states.get()).unwrap_or_default();
    let line = |(thread, agent): (&String, &Agent)| match &agent.message {
        Some(message) => format!("{thread} {}: {message}", agent.status),
        None => format!("{thread} {}", agent.status),
    };
    agents.iter().map(line).collect::<Vec<_>>().join("\n")
}
