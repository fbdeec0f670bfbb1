//! Tool calls as the model made them, and their outputs.

use bindery_core::ids::CallId;
use bindery_core::item::{Body, Status, Tool, ToolSort};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::names::{mcp_name, sort_of};
use super::output::{self, Outcome};
use super::slot::{CLIENT, MODEL, Place, Slot};
use super::{Normaliser, patch, shell};
use crate::wire::{Call, CallOutput, ImageCall, LocalShell, WebSearchCall};

/// What one line tells about a tool call.
#[derive(Debug)]
pub(super) struct Update<'a> {
    pub(super) id: &'a str,
    pub(super) turn_id: Option<&'a str>,
    pub(super) side: u8,
    pub(super) name: String,
    pub(super) sort: ToolSort,
    pub(super) input: Value,
    pub(super) status: Status,
    pub(super) output: Option<Value>,
    pub(super) exit_code: Option<i64>,
    pub(super) duration_ms: Option<u64>,
}

impl Normaliser<'_> {
    pub(super) fn call(&mut self, call: Call) {
        let text = call.arguments.or(call.input).unwrap_or_default();
        let arguments = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone()));
        let namespace = call.namespace.as_deref();
        let mut sort = sort_of(&call.name, namespace);
        let mut name = call.name;
        if self.clients.contains(&name) {
            sort = ToolSort::Client;
        }
        if sort == ToolSort::Mcp {
            name = mcp_name(&name, namespace).unwrap_or(name);
        }
        let (sort, input) = input_of(sort, &name, arguments);
        let turn_id = call.passthrough.and_then(|p| p.turn_id);
        self.upsert(Update {
            id: &call.call_id,
            turn_id: turn_id.as_deref(),
            side: MODEL,
            name,
            sort,
            input,
            status: Status::Pending,
            output: None,
            exit_code: None,
            duration_ms: None,
        });
    }

    pub(super) fn local_shell(&mut self, call: LocalShell) {
        let words = words(call.action.get("command"));
        let mut input = json!({ "command": shell::join(&words) });
        if let Some(cwd) = call.action.get("working_directory").filter(|cwd| !cwd.is_null()) {
            input["cwd"] = cwd.clone();
        }
        let id = call.call_id.or(call.id).unwrap_or_else(|| format!("line-{}", self.line));
        self.upsert(Update {
            id: &id,
            turn_id: None,
            side: MODEL,
            name: "local_shell".to_owned(),
            sort: ToolSort::Bash,
            input,
            status: Status::Pending,
            output: None,
            exit_code: None,
            duration_ms: None,
        });
    }

    /// The model's copy of a result: the client's, where there is one, is better.
    pub(super) fn output(&mut self, id: &str, output: &RawValue) {
        let known = self.calls.get(id).copied().filter(|place| self.at(*place).is_some());
        let Some(place) = known else { return self.stray_output(id, output) };
        self.add_line(place);
        let time = self.time;
        let Some(slot) = self.at(place) else { return };
        let answered = slot.sides & CLIENT != 0;
        // An abort is told by the model's copy only.
        if answered && output.get().len() > 256 {
            return;
        }
        let outcome = output::read(output);
        let is_aborted = outcome.status == Some(Status::Aborted);
        let Body::Tool(tool) = &mut slot.item.body else { return };
        if answered {
            if is_aborted {
                slot.item.status = Status::Aborted;
            }
            return;
        }
        let running = outcome.session.is_some() && tool.name != "write_stdin";
        let status = if running { Status::Pending } else { Status::Ok };
        slot.item.status = outcome.status.unwrap_or(status);
        if let (Some(begun), Some(now)) = (slot.item.span.started_at_ms, time) {
            slot.item.span.completed_at_ms = Some(now.max(begun));
        }
        let link = (outcome.session.clone().filter(|_| running), outcome.exit_code);
        let poll = tool.input.get("session_id").map(ToString::to_string);
        answer(tool, outcome, slot.item.status);
        match link {
            (Some(session), _) => {
                self.processes.insert(session, place);
            }
            (None, Some(code)) => self.ended_in_background(poll.as_deref(), code),
            _ => {}
        }
    }

    /// A poll of a running command told how that one ended.
    fn ended_in_background(&mut self, session: Option<&str>, code: i64) {
        let session = session.map(|session| session.trim_matches('"'));
        let place = session.and_then(|session| self.processes.remove(session));
        let Some(slot) = place.and_then(|place| self.at(place)) else { return };
        let Body::Tool(tool) = &mut slot.item.body else { return };
        tool.exit_code = tool.exit_code.or(Some(code));
        if slot.item.status == Status::Pending {
            slot.item.status = if code == 0 { Status::Ok } else { Status::Failed };
        }
    }

    /// A result whose call is not in the file.
    fn stray_output(&mut self, id: &str, output: &RawValue) {
        let outcome = output::read(output);
        let status = outcome.status.unwrap_or(Status::Ok);
        let mut tool = blank(id, "?", ToolSort::Other, json!({}));
        answer(&mut tool, outcome, status);
        let mut slot = self.slot(id, status, Body::Tool(tool));
        slot.item.origin.mark = Some("result without call".to_owned());
        slot.sides = MODEL;
        let number = self.turn_for(None);
        let place = self.push(number, slot);
        self.calls.insert(id.to_owned(), place);
    }

    /// What a model is told that answers no call: the objective of a goal (0.169).
    pub(super) fn told(&mut self, output: &CallOutput<'_>) {
        let text = output::read(output.output).text;
        match output.name.as_deref() {
            Some("goal_objective") => self.notice("goal", text, Value::Null, None),
            name => {
                let words = [output.namespace.as_deref(), name].into_iter().flatten();
                let name = words.collect::<Vec<_>>().join(".");
                let data = json!({ "name": name });
                self.notice("told to the model", format!("{name} {text}"), data, None);
            }
        }
    }

    /// A search ends with its own line; no output follows.
    pub(super) fn web_search_call(&mut self, call: WebSearchCall) {
        let action = call.action.unwrap_or_default();
        let turn_id = call.passthrough.and_then(|p| p.turn_id);
        let status = Status::of_word(call.status.as_deref(), None);
        self.web_search(call.id.as_deref(), turn_id.as_deref(), MODEL, None, action, status);
    }

    pub(super) fn web_search_end(&mut self, event: &Value) {
        let id = event.get("call_id").and_then(Value::as_str);
        let query = event.get("query").and_then(Value::as_str);
        let action = event.get("action").cloned().unwrap_or_default();
        self.web_search(id, None, CLIENT, query, action, Status::Ok);
    }

    pub(super) fn web_search(
        &mut self,
        id: Option<&str>,
        turn_id: Option<&str>,
        side: u8,
        query: Option<&str>,
        action: Value,
        status: Status,
    ) {
        let action = live_action(action);
        let asked = action.get("query").or_else(|| action.get("url")).and_then(Value::as_str);
        let query = query.or(asked).unwrap_or_default().to_owned();
        let known = id.and_then(|id| self.calls.get(id).copied()).or_else(|| {
            let same = |slot: &Slot| {
                matches!(&slot.item.body, Body::Tool(tool)
                    if tool.sort == ToolSort::WebSearch && tool.input["query"] == query)
            };
            self.find_half(side, same)
        });
        if let Some(place) = known {
            self.add_line(place);
            if let Some(slot) = self.at(place) {
                slot.sides |= side;
                // Either half may know that it went wrong.
                if slot.item.status == Status::Ok && status != Status::Pending {
                    slot.item.status = status;
                }
            }
            return;
        }
        let id = id.map_or_else(|| format!("line-{}", self.line), str::to_owned);
        let place = self.upsert(Update {
            id: &id,
            turn_id,
            side,
            name: "web_search".to_owned(),
            sort: ToolSort::WebSearch,
            input: json!({ "query": query, "action": action }),
            status,
            output: Some(json!({ "query": query, "action": action })),
            exit_code: None,
            duration_ms: None,
        });
        self.expect_half(place);
    }

    pub(super) fn image_call(&mut self, image: ImageCall, side: u8) {
        let id = image.id.unwrap_or_else(|| format!("line-{}", self.line));
        let status = Status::of_word(image.status.as_deref(), None);
        let output = json!({
            "status": image.status,
            "result": image.result.filter(|result| !result.is_empty()),
            "savedPath": image.saved_path,
        });
        self.upsert(Update {
            id: &id,
            turn_id: None,
            side,
            name: "image_generation".to_owned(),
            sort: ToolSort::Image,
            input: json!({ "prompt": image.revised_prompt }),
            status,
            output: Some(output),
            exit_code: None,
            duration_ms: None,
        });
    }

    /// Puts what a line tells into the call it is about, or begins that call.
    pub(super) fn upsert(&mut self, update: Update<'_>) -> Place {
        let known = self.calls.get(update.id).copied().filter(|place| self.at(*place).is_some());
        let Some(place) = known else { return self.begin_call(update) };
        self.add_line(place);
        let (time, id) = (self.time, update.id);
        let Some(slot) = self.at(place) else { return place };
        slot.sides |= update.side;
        let Body::Tool(tool) = &mut slot.item.body else { return place };
        if tool.name == "?" {
            tool.name.clone_from(&update.name);
        }
        if update.side == CLIENT {
            // The client's half knows best, but for the name the model used.
            if tool.sort == ToolSort::Other || update.sort == ToolSort::Edit {
                tool.sort = update.sort;
            }
            tool.input = update.input;
            tool.output = update.output.or(tool.output.take());
            tool.exit_code = update.exit_code.or(tool.exit_code);
            tool.duration_ms = update.duration_ms.or(tool.duration_ms);
            if slot.item.status != Status::Aborted {
                slot.item.status = update.status;
            }
            slot.item.span.completed_at_ms = time.or(slot.item.span.completed_at_ms);
        } else if tool.output.is_none() {
            tool.input = update.input;
        } else {
            // The item came first; the call gives its name.
            tool.name = update.name;
        }
        debug_assert_eq!(tool.call_id.as_str(), id);
        place
    }

    fn begin_call(&mut self, update: Update<'_>) -> Place {
        let mut tool = blank(update.id, &update.name, update.sort, update.input);
        tool.output = update.output;
        tool.exit_code = update.exit_code;
        tool.duration_ms = update.duration_ms;
        let mut slot = self.slot(update.id, update.status, Body::Tool(tool));
        slot.sides = update.side;
        if update.status == Status::Pending {
            slot.item.span.completed_at_ms = None;
        }
        let number = self.turn_for(update.turn_id);
        if let Some(outer) = self.script_of(number, update.id) {
            slot.item.origin.mark = Some(format!("in {outer}"));
        }
        let place = self.push(number, slot);
        self.calls.insert(update.id.to_owned(), place);
        place
    }

    /// The script that runs a call: in code mode nothing links them but that it is running.
    fn script_of(&mut self, number: u64, id: &str) -> Option<String> {
        let turn = self.turn_at(number).filter(|_| id.starts_with("exec-"))?;
        turn.slots.iter().rev().find_map(|slot| match &slot.item.body {
            Body::Tool(tool) if tool.name == "exec" && slot.item.status == Status::Pending => {
                Some(tool.call_id.to_string())
            }
            _ => None,
        })
    }
}

fn blank(id: &str, name: &str, sort: ToolSort, input: Value) -> Tool {
    Tool {
        call_id: CallId::new(id),
        name: name.to_owned(),
        sort,
        input,
        output: None,
        exit_code: None,
        duration_ms: None,
    }
}

/// Puts an outcome into a tool, in the shape a live result has.
fn answer(tool: &mut Tool, outcome: Outcome, status: Status) {
    tool.exit_code = outcome.exit_code;
    tool.duration_ms = outcome.duration_ms;
    let word = if status == Status::Ok { "completed" } else { status_word(status) };
    let mut value = match tool.sort {
        ToolSort::Bash => json!({ "status": word, "aggregatedOutput": outcome.text }),
        ToolSort::Edit => {
            json!({ "status": word, "changes": tool.input["changes"], "stdout": outcome.text })
        }
        ToolSort::Plan => json!({ "plan": tool.input["plan"] }),
        _ => json!({ "status": word, "output": outcome.text }),
    };
    if let Some(code) = outcome.exit_code {
        value["exitCode"] = json!(code);
    }
    if let Some(duration) = outcome.duration_ms {
        value["durationMs"] = json!(duration);
    }
    if let Some(session) = outcome.session {
        value["processId"] = json!(session);
    }
    if !outcome.pieces.is_empty() {
        value["content"] = Value::Array(outcome.pieces);
    }
    tool.output = Some(value);
}

pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Pending => "inProgress",
        Status::Ok => "completed",
        Status::Failed => "failed",
        Status::Declined => "declined",
        Status::Aborted => "aborted",
        Status::Incomplete => "incomplete",
        Status::Unknown => "unknown",
    }
}

/// The input in the shape a live call of that sort has.
fn input_of(sort: ToolSort, name: &str, arguments: Value) -> (ToolSort, Value) {
    match sort {
        ToolSort::Bash if name != "write_stdin" => command_input(sort, arguments),
        ToolSort::Edit => {
            let text = arguments.as_str().or_else(|| arguments.get("input")?.as_str());
            let changes = patch::parse(text.unwrap_or_default());
            let input = if changes.is_empty() {
                json!({ "changes": [], "patch": text })
            } else {
                json!({ "changes": changes })
            };
            (sort, input)
        }
        ToolSort::Plan => (sort, plan_input(&arguments)),
        _ => (sort, arguments),
    }
}

/// A command, unless it is a patch given to the shell.
fn command_input(sort: ToolSort, arguments: Value) -> (ToolSort, Value) {
    let command = arguments.get("command").or_else(|| arguments.get("cmd"));
    let (line, script) = match command {
        Some(Value::String(text)) => (text.clone(), text.clone()),
        Some(Value::Array(_)) => {
            let words = words(command);
            let script = match words.first().map(String::as_str) {
                Some("apply_patch") => words.join(" "),
                _ => shell::script(&words).unwrap_or_default().to_owned(),
            };
            (shell::join(&words), script)
        }
        _ => return (sort, arguments),
    };
    if is_patch(&script) {
        let changes = patch::parse(&script);
        if !changes.is_empty() {
            return (ToolSort::Edit, json!({ "changes": changes }));
        }
    }
    let mut input = json!({ "command": line });
    let cwd = arguments.get("workdir").or_else(|| arguments.get("cwd"));
    if let Some(cwd) = cwd.filter(|cwd| cwd.is_string()) {
        input["cwd"] = cwd.clone();
    }
    (sort, input)
}

/// Codex itself runs a command that is nothing but a patch.
fn is_patch(script: &str) -> bool {
    let script = script.trim_start();
    ["apply_patch", "applypatch"].iter().any(|name| {
        script.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '\n', '<']))
    })
}

fn plan_input(arguments: &Value) -> Value {
    let steps = arguments.get("plan").and_then(Value::as_array);
    let steps = steps.into_iter().flatten().map(|step| {
        let word = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
        json!({ "step": word("step"), "status": super::names::camel(word("status")) })
    });
    let steps: Vec<_> = steps.collect();
    json!({ "explanation": arguments.get("explanation"), "plan": steps })
}

pub(super) fn words(value: Option<&Value>) -> Vec<String> {
    let words = value.and_then(Value::as_array).into_iter().flatten();
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}

/// The live protocol writes the type of an action in camel case.
fn live_action(mut action: Value) -> Value {
    if let Some(kind) = action.get("type").and_then(Value::as_str).map(super::names::camel) {
        action["type"] = json!(kind);
    }
    action
}
