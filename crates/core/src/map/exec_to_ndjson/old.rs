//! Events of 0.42 and older → events.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fold::{Fold, notice};
use super::today::{content_text, mcp_name};
use super::tools::{Answer, Call};
use crate::item::Status;
use crate::json_text::JsonText;
use crate::ndjson::{Event, Parameters, PatchChange, State, Topic};
use crate::wire::exec::{CommandEnd, Msg};

/// Takes one event. Nothing tells the end of a turn: it is done when the model has spoken and no
/// tool runs.
pub(super) fn msg(fold: &mut Fold, msg: Msg<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
    match msg {
        Msg::TaskStarted => fold.may_be_done(false),
        Msg::AgentMessage(text) => {
            fold.may_be_done(true);
            fold.say(text, false, None, sink);
        }
        Msg::AgentReasoning(text) => sink(&Event::Reasoning { content: text, id: None }),
        Msg::PlanUpdate { explanation, plan } => {
            fold.plan(None, explanation, plan, sink);
        }
        Msg::TokensOfResponse(tokens) => fold.count(tokens),
        Msg::TokensSoFar(Some(total)) => fold.running = Some(total),
        Msg::Notice(text) => {
            let is_retry = text.decode().contains("; retrying ");
            notice(text, if is_retry { Topic::Retry } else { Topic::Warning }, sink);
        }
        Msg::Error(text) => fold.fail(&text, sink),
        Msg::TokensSoFar(None) | Msg::NotShown => {}
        tool => self::tool(fold, tool, sink),
    }
}

fn tool(fold: &mut Fold, msg: Msg<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
    match msg {
        Msg::CommandBegin { call_id, command, cwd } => {
            let parameters = Parameters::Command { command: command_line(command), cwd };
            begin(fold, call_id, "codex_command_execution", parameters, sink);
        }
        Msg::CommandOutput { call_id, chunk } => fold.tools.output(&call_id, chunk.get()),
        Msg::CommandEnd(end) => {
            let answer = command_answer(&end);
            fold.tools.answer(&end.call_id, answer, sink);
        }
        Msg::PatchBegin { call_id, changes } => {
            let parameters = Parameters::Patch { changes: patch(changes) };
            begin(fold, call_id, "codex_file_change", parameters, sink);
        }
        Msg::PatchEnd { call_id, output: [stdout, stderr], success } => {
            let answer = plain(success, both(stdout, stderr));
            fold.tools.answer(&call_id, answer, sink);
        }
        Msg::McpBegin { call_id, invocation } => {
            fold.tools.begin(mcp_call(call_id, invocation), sink);
        }
        Msg::McpEnd { call_id, invocation, result } => {
            fold.tools.end(mcp_call(call_id, invocation), mcp_answer(result), sink);
        }
        Msg::SearchBegin { call_id } => {
            fold.tools.announce(&call_id, &JsonText::from(WEB_SEARCH), false);
        }
        Msg::SearchEnd { call_id, query } => {
            let parameters = Parameters::Search { query, action: None };
            let call = Call { id: call_id, name: WEB_SEARCH.into(), parameters, call_id: None };
            fold.tools.end(call, plain(true, JsonText::from("")), sink);
        }
        _ => {}
    }
}

const WEB_SEARCH: &str = "codex_web_search";

fn begin<'a>(
    fold: &mut Fold,
    id: JsonText<'a>,
    name: &'a str,
    parameters: Parameters<'a>,
    sink: &mut dyn FnMut(&Event<'_>),
) {
    fold.tools.begin(Call { id, name: name.into(), parameters, call_id: None }, sink);
}

fn plain(good: bool, output: JsonText<'_>) -> Answer<'_> {
    let state = if good { State::Completed } else { State::Failed };
    Answer { state, output, exit_code: None, result: None }
}

fn command_answer<'a>(end: &CommandEnd<'a>) -> Answer<'a> {
    let output = match &end.output {
        Some(output) => output.clone(),
        None => both(end.stdout.clone(), end.stderr.clone()),
    };
    let state = State::from(Status::of_word(None, end.exit_code));
    Answer { state, output, exit_code: end.exit_code, result: None }
}

fn both<'a>(stdout: Option<JsonText<'a>>, stderr: Option<JsonText<'a>>) -> JsonText<'a> {
    let filled = |text: &JsonText<'_>| !text.is_empty();
    match (stdout.filter(filled), stderr.filter(filled)) {
        (Some(out), Some(err)) => JsonText::from(format!("{}{}", out.decode(), err.decode())),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => JsonText::from(""),
    }
}

/// Program and arguments as one line, quoted as a shell needs it; later versions print it so.
fn command_line(command: &RawValue) -> JsonText<'_> {
    match serde_json::from_str::<Vec<String>>(command.get()) {
        Ok(words) => {
            let words = words.iter().map(|word| quoted(word));
            JsonText::from(words.collect::<Vec<_>>().join(" "))
        }
        Err(_) => JsonText::of(command).unwrap_or_else(|| JsonText::from(command.get())),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Path → `{"add":{"content"}}`, `{"update":{"unified_diff","move_path"}}`,
/// `{"delete":{"content"}}` or (0.25 and older) `"delete"`.
fn patch(changes: &RawValue) -> Vec<PatchChange> {
    let changes: Map<String, Value> = serde_json::from_str(changes.get()).unwrap_or_default();
    let change = |(path, change): (String, Value)| {
        let of = |kind: &str, key: &str| change[kind][key].as_str().map(str::to_owned);
        let (kind, diff) = if change.get("add").is_some() {
            ("add", of("add", "content"))
        } else if change.get("update").is_some() {
            ("update", of("update", "unified_diff"))
        } else {
            ("delete", of("delete", "content"))
        };
        let move_path = of("update", "move_path");
        PatchChange { path, kind, move_path, diff: diff.unwrap_or_default() }
    };
    changes.into_iter().map(change).collect()
}

#[derive(Deserialize)]
struct Invocation<'a> {
    server: String,
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn mcp_call<'a>(id: JsonText<'a>, invocation: &'a RawValue) -> Call<'a> {
    let Ok(invocation) = serde_json::from_str::<Invocation<'a>>(invocation.get()) else {
        let parameters = Parameters::Raw(invocation);
        return Call { id, name: "mcp:unknown".into(), parameters, call_id: None };
    };
    let name = mcp_name(&invocation.server.into(), &invocation.tool.into());
    let parameters = invocation.arguments.map_or(Parameters::Empty {}, Parameters::Raw);
    Call { id, name, parameters, call_id: None }
}

#[derive(Deserialize)]
enum McpResult<'a> {
    Ok(#[serde(borrow)] &'a RawValue),
    Err(#[serde(borrow)] &'a RawValue),
}

fn mcp_answer(result: &RawValue) -> Answer<'_> {
    match serde_json::from_str(result.get()) {
        Ok(McpResult::Ok(result)) => {
            let output = JsonText::from(content_text(result));
            Answer { result: Some(result), ..plain(!is_error(result), output) }
        }
        Ok(McpResult::Err(error)) => {
            let output = JsonText::of(error).unwrap_or_else(|| JsonText::from(error.get()));
            Answer { result: Some(error), ..plain(false, output) }
        }
        Err(_) => Answer { result: Some(result), ..plain(false, JsonText::from(result.get())) },
    }
}

fn is_error(result: &RawValue) -> bool {
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    [&value["isError"], &value["is_error"]].contains(&&Value::Bool(true))
}
