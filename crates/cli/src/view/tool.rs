//! Tool calls: those that are open, and the rows of those that are done.

mod command;

mod explore;

mod change;

mod plan;

mod other;

use bindery::core::ids::CallId;
use bindery::core::part::{ToolCall, ToolResult};
use serde_json::Value;

use super::row::{Paint, Row};
use super::theme::Theme;
use super::wording::text_at;
use super::wrap::wrap_text;

pub(crate) use change::{diff, summary};

/// What Codex names its own tools.
const COMMAND: &str = "codex_command_execution";
const CHANGE: &str = "codex_file_change";
const PLAN: &str = "codex_plan_update";

/// Bytes of a running command's output that are kept to show its last lines.
const TAIL: usize = 8 * 1024;

/// Calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Call>,
    looks: explore::Looks,
    plan: Option<Value>,
    cwd: String,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    name: String,
    input: Value,
    since_ms: u64,
    tail: String,
}

impl Calls {
    /// Calls that show paths as seen from a folder.
    pub(crate) fn in_folder(cwd: &str) -> Self {
        Self { cwd: cwd.to_owned(), ..Self::default() }
    }

    /// A call begins; its input may still be unknown.
    pub(crate) fn begin(&mut self, id: &CallId, name: &str, now_ms: u64) {
        if self.open.iter().all(|call| call.id != *id) {
            let (id, name) = (id.clone(), name.to_owned());
            let call = Call { id, name, input: Value::Null, since_ms: now_ms, tail: String::new() };
            self.open.push(call);
        }
    }

    /// A call is made: rows to show at once.
    pub(crate) fn call(&mut self, theme: Theme, call: &ToolCall, now_ms: u64) -> Vec<Row> {
        let input =
            serde_json::from_str(&call.input).unwrap_or_else(|_| Value::String(call.input.clone()));
        self.begin(&call.tool_call_id, &call.tool_name, now_ms);
        if call.tool_name == PLAN {
            return self.planned(theme, &input);
        }
        if let Some(open) = self.open.iter_mut().find(|open| open.id == call.tool_call_id) {
            open.input = input;
        }
        Vec::new()
    }

    /// More of what a running call prints.
    pub(crate) fn progress(&mut self, result: &ToolResult) {
        let open = self.open.iter_mut().find(|call| call.id == result.tool_call_id);
        let Some(call) = open else { return };
        match (text_at(&result.result, &["output"]), text_at(&result.result, &["delta"])) {
            (Some(output), _) => call.tail = output.to_owned(),
            (None, Some(delta)) => call.tail.push_str(delta),
            _ => {}
        }
        if let Some(cut) = call.tail.len().checked_sub(TAIL) {
            call.tail.drain(..call.tail.ceil_char_boundary(cut));
        }
    }

    /// A call is done: its rows. What only looked around is kept to be shown together.
    pub(crate) fn done(&mut self, theme: Theme, result: &ToolResult) -> Vec<Row> {
        let call = self.close(&result.tool_call_id);
        let input = call.map_or(Value::Null, |call| call.input);
        match result.tool_name.as_str() {
            COMMAND if self.looks.add(&input, &result.result) => Vec::new(),
            PLAN if !result.is_error => self.planned(theme, &input),
            name => {
                let mut rows = self.looked(theme);
                rows.extend(self.finished(theme, name, &input, result));
                rows
            }
        }
    }

    /// What was looked at and is not shown yet.
    pub(crate) fn looked(&mut self, theme: Theme) -> Vec<Row> {
        self.looks.take().rows(theme)
    }

    /// The same, without taking it.
    pub(crate) fn looking(&self, theme: Theme) -> Vec<Row> {
        self.looks.rows(theme)
    }

    /// Calls that never got a result, when the turn is over.
    pub(crate) fn abandoned(&mut self, theme: Theme) -> Vec<Row> {
        let row = |call: Call| {
            let left = Row::of(Paint::RED, theme.glyphs.bad);
            let left = left.text(Paint::PLAIN, &format!(" {}", call.title(true)));
            theme.headline(left, "cut off", "")
        };
        let open = std::mem::take(&mut self.open);
        open.into_iter().filter(|call| call.name != PLAN).map(row).collect()
    }

    /// What runs now, since when, and how many calls run beside it.
    pub(crate) fn running(&self) -> Option<(String, u64, usize)> {
        let calls: Vec<&Call> = self.open.iter().filter(|call| call.name != PLAN).collect();
        let call = calls.last()?;
        Some((call.title(false), call.since_ms, calls.len() - 1))
    }

    /// The last lines that the running call printed.
    pub(crate) fn tail(&self, theme: Theme, lines: usize) -> Vec<Row> {
        self.open.last().map_or_else(Vec::new, |call| command::tail(theme, &call.tail, lines))
    }

    fn close(&mut self, id: &CallId) -> Option<Call> {
        let index = self.open.iter().position(|call| call.id == *id)?;
        Some(self.open.remove(index))
    }

    /// A plan that says the same as the last is not shown again.
    fn planned(&mut self, theme: Theme, input: &Value) -> Vec<Row> {
        if input.is_null() || self.plan.as_ref() == Some(input) {
            return Vec::new();
        }
        self.plan = Some(input.clone());
        let mut rows = self.looked(theme);
        rows.extend(plan::rows(theme, input));
        rows
    }

    fn finished(&self, theme: Theme, name: &str, input: &Value, result: &ToolResult) -> Vec<Row> {
        let value = &result.result;
        match name {
            COMMAND => command::rows(theme, input, value),
            CHANGE => match change::changes(value).or_else(|| change::changes(input)) {
                Some(changes) => change::rows(theme, &changes, value, &self.cwd),
                None => other::rows(theme, name, input, value, result.is_error),
            },
            name => other::rows(theme, name, input, value, result.is_error),
        }
    }
}

impl Call {
    /// In a few words; `whole` with the sign of a command before it.
    fn title(&self, whole: bool) -> String {
        let dollar = if whole { "$ " } else { "" };
        match self.name.as_str() {
            COMMAND if self.input.is_null() => "a command".to_owned(),
            CHANGE if self.input.is_null() => "edit files".to_owned(),
            COMMAND => {
                let typed = command::typed(&self.input);
                format!("{dollar}{}", typed.lines().next().unwrap_or_default())
            }
            CHANGE => {
                let changes = change::changes(&self.input).unwrap_or_default();
                let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
                format!("edit {}", paths.join(", "))
            }
            name => other::label(name, &self.input, &Value::Null),
        }
    }
}

/// One short row for a finished call, for sub-agents.
pub(crate) fn compact(calls: &mut Calls, theme: Theme, result: &ToolResult) -> Vec<Row> {
    let input = calls.close(&result.tool_call_id).map_or(Value::Null, |call| call.input);
    let name = result.tool_name.as_str();
    if let (CHANGE, Some(changes)) = (name, change::changes(&result.result)) {
        let end = command::End::of(&result.result);
        let row = |change| theme.fit(change::title(theme, change, &end, &calls.cwd));
        return changes.iter().map(row).collect();
    }
    let rows = match name {
        COMMAND => command::rows(theme, &input, &result.result),
        PLAN => Vec::new(),
        name => other::rows(theme, name, &input, &result.result, result.is_error),
    };
    rows.into_iter().take(1).collect()
}
