//! The run for people: everything on stderr but the answer.

use std::io::{IsTerminal as _, Write};

use bindery::core::map::app_server_to_exec::ExecMapper;
use bindery::core::wire::exec::event::{Body, Event, Item};
use serde_json::Value;

use super::flags::Colour;
use crate::terminal::Style;
use crate::view::clean::{output_lines, visible};

/// Lines of a command's output that are shown.
const OUTPUT_LINES: usize = 20;

/// Shows a run.
pub(super) struct Human {
    colour: bool,
    /// What the model said last; told on stdout if nothing follows.
    answer: Option<String>,
}

impl Human {
    /// Says what runs where, and what was asked.
    pub(super) fn begin(
        reply: &Value,
        prompt: &str,
        colour: Option<Colour>,
    ) -> anyhow::Result<Self> {
        let colour = match colour {
            Some(Colour::Always) => true,
            Some(Colour::Never) => false,
            _ => Style::here().err.colour,
        };
        let human = Self { colour, answer: None };
        let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        let facts = [
            ("workdir", word(&reply["cwd"])),
            ("model", word(&reply["model"])),
            ("provider", word(&reply["modelProvider"])),
            ("approval", word(&reply["approvalPolicy"])),
            ("sandbox", kebab(&word(&reply["sandbox"]["type"]))),
            ("reasoning effort", word(&reply["reasoningEffort"])),
            ("session id", word(&reply["thread"]["id"])),
        ];
        let mut text = format!("bindery exec {}\n--------\n", env!("CARGO_PKG_VERSION"));
        for (name, value) in facts {
            text.push_str(&format!("{}: {value}\n", human.bold(name)));
        }
        text.push_str("--------\n");
        if !prompt.is_empty() {
            text.push_str(&format!("{}\n{}\n", human.heading("user"), visible(prompt)));
        }
        human.say(&text)?;
        Ok(human)
    }

    /// Shows one event.
    pub(super) fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        match event {
            Event::ItemStarted { item } => self.started(item),
            Event::ItemUpdated { item } => self.say(&self.plan(item)),
            Event::ItemCompleted { item } => self.completed(item),
            Event::Error { message } => {
                self.say(&format!("{} {}\n", self.bad("ERROR:"), visible(message)))
            }
            _ => Ok(()),
        }
    }

    /// The answer on stdout, the tokens on stderr.
    pub(super) fn finish(self, mapper: &ExecMapper) -> anyhow::Result<()> {
        let usage = mapper.usage();
        let fresh = usage.input_tokens.saturating_sub(usage.cached_input_tokens);
        let used = fresh + usage.output_tokens;
        self.say(&format!("{}\n{used}\n", self.heading("tokens used")))?;
        let Some(answer) = &self.answer else { return Ok(()) };
        let mut out = std::io::stdout().lock();
        // A program gets the answer as it is; a terminal would obey what is hidden in it.
        match out.is_terminal() {
            true => writeln!(out, "{}", visible(answer))?,
            false => writeln!(out, "{answer}")?,
        }
        Ok(out.flush()?)
    }

    fn started(&mut self, item: &Item) -> anyhow::Result<()> {
        self.flush()?;
        let text = match &item.body {
            Body::CommandExecution { command, .. } => {
                format!("{}\n{}\n", self.heading("exec"), visible(command))
            }
            Body::FileChange { changes, .. } => {
                let lines: String =
                    changes.iter().map(|c| format!("{} {}\n", c.kind, visible(&c.path))).collect();
                format!("{}\n{lines}", self.heading("patch"))
            }
            Body::McpToolCall { server, tool, arguments, .. } => {
                let call = format!("{server}.{tool}({arguments})");
                format!("{} {}\n", self.heading("tool"), visible(&call))
            }
            Body::TodoList { .. } => self.plan(item),
            _ => String::new(),
        };
        self.say(&text)
    }

    fn completed(&mut self, item: &Item) -> anyhow::Result<()> {
        let text = match &item.body {
            Body::AgentMessage { text } => {
                self.flush()?;
                self.answer = Some(text.clone());
                return Ok(());
            }
            Body::Reasoning { text } => {
                format!("{}\n{}\n", self.heading("thinking"), visible(text))
            }
            Body::CommandExecution { aggregated_output, exit_code, status, .. } => {
                let ended = exit_code.map_or(status.clone(), |code| format!("exited {code}"));
                format!("{ended}\n{}", head(aggregated_output))
            }
            Body::FileChange { status, .. } => format!("{status}\n"),
            Body::McpToolCall { status, error, .. } => {
                let why = error.as_ref().map(|error| format!(": {}", error.message));
                format!("{status}{}\n", visible(&why.unwrap_or_default()))
            }
            Body::WebSearch { query, .. } => {
                format!("{} {}\n", self.heading("web search"), visible(query))
            }
            Body::CollabToolCall { tool, status, .. } => format!("{tool}: {status}\n"),
            Body::Error { message } => format!("{} {}\n", self.bad("warning:"), visible(message)),
            // Its last state was shown when it changed.
            Body::TodoList { .. } => String::new(),
        };
        self.say(&text)
    }

    /// A message that was not the last is no answer.
    fn flush(&mut self) -> anyhow::Result<()> {
        match self.answer.take() {
            Some(text) => self.say(&format!("{}\n{}\n", self.heading("assistant"), visible(&text))),
            None => Ok(()),
        }
    }

    fn plan(&self, item: &Item) -> String {
        let Body::TodoList { items } = &item.body else { return String::new() };
        let line = |done: bool| if done { "[x]" } else { "[ ]" };
        let lines =
            items.iter().map(|todo| format!("{} {}\n", line(todo.completed), visible(&todo.text)));
        format!("{}\n{}", self.heading("plan"), lines.collect::<String>())
    }

    fn heading(&self, text: &str) -> String {
        self.painted(text, "1;36")
    }

    fn bold(&self, text: &str) -> String {
        self.painted(text, "1")
    }

    fn bad(&self, text: &str) -> String {
        self.painted(text, "1;31")
    }

    fn painted(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        Ok(std::io::stderr().write_all(text.as_bytes())?)
    }
}

/// `dangerFullAccess` → `danger-full-access`, as the flags have it.
fn kebab(word: &str) -> String {
    let mut kebab = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

/// The first lines of a command's output, without what would draw on the user's terminal.
fn head(output: &str) -> String {
    if output.is_empty() {
        return String::new();
    }
    let lines = output_lines(output);
    let mut text: String =
        lines.iter().take(OUTPUT_LINES).map(|line| format!("{line}\n")).collect();
    if lines.len() > OUTPUT_LINES {
        text.push_str(&format!("… {} more lines\n", lines.len() - OUTPUT_LINES));
    }
    text
}
