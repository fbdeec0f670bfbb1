//! Sub-agents: a short line for each thing they do, under their names.

use bindery::core::part::Part;
use serde::Deserialize;
use serde_json::Value;

use super::notice;
use super::row::{Paint, Row};
use super::theme::Theme;
use super::tool::{self, Calls};
use super::wording::text_at;

/// The sub-agents of a turn.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    agents: Vec<Agent>,
    /// Whose lines were shown last.
    last: Option<String>,
}

#[derive(Debug)]
struct Agent {
    thread: String,
    name: Option<String>,
    calls: Calls,
    text: String,
}

/// Bytes kept of what a sub-agent says; one line of it is shown.
const TEXT: usize = 4 * 1024;

impl Agents {
    /// A sub-agent's part as rows, its name before them if another spoke last.
    pub(crate) fn push(&mut self, theme: Theme, data: &Value) -> Vec<Row> {
        let thread = text_at(data, &["agentThreadId"]).unwrap_or("?").to_owned();
        let index = self.find(&thread);
        let agent = &mut self.agents[index];
        if let Some(name) = text_at(data, &["name"]) {
            agent.name = Some(name.to_owned());
        }
        let inner = theme.narrower(2);
        let rows = match data.get("part").map(Part::deserialize) {
            Some(Ok(part)) => agent.push(inner, &part),
            _ => notice::dim(inner, "a part that is not understood"),
        };
        if rows.is_empty() {
            return rows;
        }
        let mut shown = Vec::new();
        if self.last.replace(thread.clone()) != Some(thread) {
            shown.push(theme.fit(agent.title(theme)));
        }
        shown.extend(rows.iter().map(|row| row.behind(Paint::PLAIN, "  ")));
        shown
    }

    /// Something else was shown; the next line of a sub-agent needs its name again.
    pub(crate) fn interrupted(&mut self) {
        self.last = None;
    }

    fn find(&mut self, thread: &str) -> usize {
        let known = self.agents.iter().position(|agent| agent.thread == thread);
        known.unwrap_or_else(|| {
            let (thread, calls) = (thread.to_owned(), Calls::default());
            self.agents.push(Agent { thread, name: None, calls, text: String::new() });
            self.agents.len() - 1
        })
    }
}

impl Agent {
    fn title(&self, theme: Theme) -> Row {
        let name = self.name.as_deref().unwrap_or(&self.thread);
        let row = Row::of(Paint::CYAN, theme.glyphs.agent).text(Paint::PLAIN, " ");
        row.text(Paint::BOLD, name)
    }

    fn push(&mut self, theme: Theme, part: &Part) -> Vec<Row> {
        match part {
            Part::TextStart(_) => self.text.clear(),
            Part::TextDelta(delta) if self.text.len() < TEXT => self.text.push_str(&delta.delta),
            Part::TextEnd { .. } => return self.said(theme),
            Part::ToolCall(call) => drop(self.calls.call(theme, call, 0)),
            Part::ToolResult(result) if !result.preliminary => {
                return tool::compact(&mut self.calls, theme, result);
            }
            Part::Error { error } => return notice::error(theme, error),
            _ => {}
        }
        Vec::new()
    }

    fn said(&mut self, theme: Theme) -> Vec<Row> {
        let text = std::mem::take(&mut self.text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let row = || theme.fit(Row::of(Paint::PLAIN, &words.join(" ")));
        Vec::from_iter((!words.is_empty()).then(row))
    }
}
