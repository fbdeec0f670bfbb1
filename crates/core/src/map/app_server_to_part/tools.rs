//! Tool calls: announced, shown while they run, answered or closed.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::ids::{CallId, ItemId, PartId};
use crate::item::{FileChange, PlanStep};
use crate::part::{Delta, Part, Run, ToolCall, ToolInputStart, ToolResult};
use crate::spec::codex_metadata;

/// A preliminary result replaces the one before, so each carries the end of the output so far.
const TAIL_LIMIT: usize = 4 * 1024;

/// How a command stands that a turn left running: neither well nor ill, so far.
pub(super) const RUNNING: &str = "running";

/// The tool that runs commands.
pub(super) const COMMAND: &str = "codex_command_execution";

/// The open tool calls of a turn.
#[derive(Debug)]
pub(super) struct Tools {
    /// Written into the metadata of every call.
    origin: Map<String, Value>,
    declared: BTreeSet<String>,
    open: Vec<Call>,
    /// Answered calls: a repeated item must not call, or answer, a second time.
    done: BTreeSet<CallId>,
    /// Events may have been missed: a call that is open need not run any more.
    missed_events: bool,
}

/// A call that has begun.
#[derive(Debug)]
struct Call {
    id: CallId,
    name: String,
    /// `tool-call` was given; a web search has no input before it is done.
    called: bool,
    /// The end of what a command printed.
    tail: String,
    /// The changes of a patch, for the approval that does not carry them.
    changes: Vec<FileChange>,
}

impl Tools {
    /// No calls yet; the caller runs the `declared` tools itself.
    pub(super) fn new(declared: BTreeSet<String>, origin: Map<String, Value>) -> Self {
        Self { origin, declared, open: Vec::new(), done: BTreeSet::new(), missed_events: false }
    }

    /// A call begins, its input not yet known.
    pub(super) fn announce(&mut self, item: &ItemId, name: &str, parts: &mut Vec<Part>) {
        let id = CallId::new(item.as_str());
        if self.find(item).is_some() || self.done.contains(&id) {
            return;
        }
        let ours = !self.declared.contains(name);
        parts.push(Part::ToolInputStart(ToolInputStart {
            id: id.clone(),
            tool_name: name.to_owned(),
            input_encoding: None,
            provider_executed: ours,
            dynamic: ours,
            title: None,
            provider_metadata: None,
        }));
        let name = name.to_owned();
        self.open.push(Call { id, name, called: false, tail: String::new(), changes: Vec::new() });
    }

    /// The call with its whole input; Codex does not stream tool input.
    pub(super) fn call(&mut self, item: &ItemId, name: &str, input: &Value, parts: &mut Vec<Part>) {
        self.announce(item, name, parts);
        let Some(call) = self.find(item).filter(|call| !call.called) else { return };
        call.called = true;
        call.changes = changes_of(input);
        let (id, name, input) = (call.id.clone(), call.name.clone(), input.to_string());
        let run = PartId::new(id.as_str());
        let delta = Delta { id: run.clone(), delta: input.clone(), provider_metadata: None };
        parts.push(Part::ToolInputDelta(delta));
        parts.push(Part::ToolInputEnd(Run { id: run, provider_metadata: None }));
        let ours = !self.declared.contains(&name);
        parts.push(Part::ToolCall(ToolCall {
            tool_call_id: id,
            tool_name: name,
            input,
            provider_executed: ours,
            dynamic: ours,
            provider_metadata: codex_metadata(Value::Object(self.origin.clone())),
        }));
    }

    /// A plan update has no item, so it is a call of its own, answered at once.
    pub(super) fn plan(
        &mut self,
        count: u32,
        explanation: Option<&str>,
        plan: &[PlanStep],
        parts: &mut Vec<Part>,
    ) {
        let item = ItemId::new(format!("plan-{count}"));
        let input = json!({ "explanation": explanation, "plan": plan });
        self.call(&item, "codex_plan_update", &input, parts);
        self.result(&item, json!({ "plan": plan }), false, parts);
    }

    /// The call is answered. The caller knows the answers of its own tools already.
    pub(super) fn result(
        &mut self,
        item: &ItemId,
        result: Value,
        is_error: bool,
        parts: &mut Vec<Part>,
    ) {
        let Some(index) = self.open.iter().position(|call| call.id.as_str() == item.as_str())
        else {
            return;
        };
        let call = self.open.remove(index);
        self.done.insert(call.id.clone());
        if !self.declared.contains(&call.name) {
            parts.push(call.result(result, is_error, false));
        }
    }

    /// A command printed something.
    pub(super) fn output(&mut self, item: Option<&ItemId>, delta: &str, parts: &mut Vec<Part>) {
        let Some(call) = item.and_then(|item| self.find(item)) else { return };
        call.tail.push_str(delta);
        let surplus = call.tail.len().saturating_sub(TAIL_LIMIT);
        call.tail.drain(..call.tail.ceil_char_boundary(surplus));
        let so_far = json!({ "status": "inProgress", "delta": delta, "output": call.tail });
        parts.push(call.result(so_far, false, true));
    }

    /// The model typed into a running command.
    pub(super) fn typed(&mut self, item: Option<&ItemId>, text: &str, parts: &mut Vec<Part>) {
        let Some(call) = item.and_then(|item| self.find(item)) else { return };
        let so_far = json!({ "status": "inProgress", "stdin": text, "output": call.tail });
        parts.push(call.result(so_far, false, true));
    }

    /// A patch was rewritten while it is written.
    pub(super) fn patch(
        &mut self,
        item: Option<&ItemId>,
        changes: &[FileChange],
        parts: &mut Vec<Part>,
    ) {
        let Some(call) = item.and_then(|item| self.find(item)) else { return };
        call.changes = changes.to_vec();
        let so_far = json!({ "status": "inProgress", "changes": changes });
        parts.push(call.result(so_far, false, true));
    }

    /// An MCP tool tells how far it is.
    pub(super) fn progress(&mut self, item: Option<&ItemId>, message: &str, parts: &mut Vec<Part>) {
        let Some(call) = item.and_then(|item| self.find(item)) else { return };
        parts.push(call.result(
            json!({ "status": "inProgress", "progress": message }),
            false,
            true,
        ));
    }

    /// The changes of an open patch.
    pub(super) fn changes(&self, item: &ItemId) -> Vec<FileChange> {
        let call = self.open.iter().find(|call| call.id.as_str() == item.as_str());
        call.map(|call| call.changes.clone()).unwrap_or_default()
    }

    /// Whether the call is open.
    pub(super) fn is_open(&self, item: &ItemId) -> bool {
        self.open.iter().any(|call| call.id.as_str() == item.as_str())
    }

    /// The newest open call of this tool; an elicitation does not say which call it is about.
    pub(super) fn newest_with_prefix(&self, prefix: &str) -> Option<CallId> {
        let call = self.open.iter().rev().find(|call| call.name.starts_with(prefix));
        call.map(|call| call.id.clone())
    }

    /// The turn is over: every call gets a result, so that none looks as if it still ran.
    pub(super) fn close(&mut self, parts: &mut Vec<Part>, status: &str) {
        for item in self.open.iter().map(|call| ItemId::new(call.id.as_str())).collect::<Vec<_>>() {
            let name = self.find(&item).map(|call| call.name.clone()).unwrap_or_default();
            self.call(&item, &name, &json!({}), parts);
            let output = self.find(&item).map(|call| call.tail.clone()).unwrap_or_default();
            // A turn may leave a command running on purpose; how that ends, nobody knows yet.
            let runs_on = status == RUNNING && name == COMMAND && !self.missed_events;
            let status = if status == RUNNING && !runs_on { "incomplete" } else { status };
            let mut result = json!({
                "status": status,
                "message": "the turn ended before the tool did",
            });
            if !output.is_empty() {
                result["output"] = json!(output);
            }
            self.result(&item, result, !runs_on, parts);
        }
    }

    /// The connection was lost in between.
    pub(super) fn note_missed_events(&mut self) {
        self.missed_events = true;
    }

    /// A call that was announced.
    pub(super) fn remember_start(&mut self, id: &CallId, name: &str) {
        let (id, name) = (id.clone(), name.to_owned());
        self.open.push(Call { id, name, called: false, tail: String::new(), changes: Vec::new() });
    }

    /// A call that was told with its input.
    pub(super) fn remember_call(&mut self, told: &ToolCall) {
        let call = self.open.iter_mut().find(|call| call.id == told.tool_call_id);
        if let Some(call) = call {
            call.called = true;
            call.changes = changes_of(&serde_json::from_str(&told.input).unwrap_or_default());
        }
    }

    /// A result that was told, preliminary or not.
    pub(super) fn remember_result(&mut self, told: &ToolResult) {
        if !told.preliminary {
            self.done.insert(told.tool_call_id.clone());
            self.open.retain(|call| call.id != told.tool_call_id);
            return;
        }
        let call = self.open.iter_mut().find(|call| call.id == told.tool_call_id);
        if let (Some(call), Some(tail)) = (call, told.result["output"].as_str()) {
            call.tail = tail.to_owned();
        }
    }

    fn find(&mut self, item: &ItemId) -> Option<&mut Call> {
        self.open.iter_mut().find(|call| call.id.as_str() == item.as_str())
    }
}

impl Call {
    fn result(&self, result: Value, is_error: bool, preliminary: bool) -> Part {
        Part::ToolResult(ToolResult {
            tool_call_id: self.id.clone(),
            tool_name: self.name.clone(),
            result,
            is_error,
            preliminary,
            dynamic: true,
            provider_metadata: None,
        })
    }
}

fn changes_of(input: &Value) -> Vec<FileChange> {
    let changes = input.get("changes").cloned().unwrap_or_default();
    serde_json::from_value(changes).unwrap_or_default()
}
