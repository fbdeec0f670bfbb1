//! A question as it is shown: exactly what would happen, and the keys.

use bindery::core::interrupt::{Ask, Interrupt};
use bindery::core::item::FileChange;
use serde_json::Value;

use crate::terminal::Style;
use crate::view::clean::revealed;
use crate::view::row::{Paint, Row};
use crate::view::shell::unwrapped;
use crate::view::theme::Theme;
use crate::view::wording::{one_line, text_at};
use crate::view::{diff, homely, summary, wrap_text};

use super::keys::{Choice, choices};
use super::more::{facts, reached};
use super::questions::{Question, questions};

/// Who asks: what runs the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Codex.
    Codex,
    /// The engine that is built in.
    Engine,
}

impl Asker {
    fn name(self) -> &'static str {
        match self {
            Self::Codex => "Codex",
            Self::Engine => "The engine",
        }
    }
}

/// The question, the keys and the place to type; ends without a line end.
pub fn ask_text(interrupt: &Interrupt, asker: Asker, style: &Style) -> String {
    let questions = questions(&interrupt.ask);
    if questions.is_empty() {
        return what_text(interrupt, asker, style) + &keys_text(&choices(interrupt), style);
    }
    let paper = Paper { theme: Theme::of(style) };
    let rows: Vec<Row> = questions.iter().flat_map(|question| paper.question(question)).collect();
    what_text(interrupt, asker, style) + &drawn(&rows, style) + &cursor(style)
}

/// What is asked, without the keys.
pub(crate) fn what_text(interrupt: &Interrupt, asker: Asker, style: &Style) -> String {
    let paper = Paper { theme: Theme::of(style) };
    let mut rows = vec![paper.title(&interrupt.ask, asker.name())];
    rows.extend(paper.body(&interrupt.ask));
    drawn(&rows, style)
}

/// The keys and the place to type.
pub(crate) fn keys_text(choices: &[Choice], style: &Style) -> String {
    let paper = Paper { theme: Theme::of(style) };
    drawn(&paper.keys(choices), style) + &cursor(style)
}

/// Everything that is known of the question, and the keys again.
pub fn more_text(interrupt: &Interrupt, style: &Style) -> String {
    let paper = Paper { theme: Theme::of(style) };
    let fact = |(name, text): (&str, String)| {
        paper.whole(&text, Paint::PLAIN, &format!("{INDENT}{name:<9}"))
    };
    let rows: Vec<Row> = facts(interrupt).into_iter().flat_map(fact).collect();
    drawn(&rows, style) + &keys_text(&choices(interrupt), style)
}

/// One of the questions that are answered in words.
pub(crate) fn question_text(question: &Question, style: &Style) -> String {
    let paper = Paper { theme: Theme::of(style) };
    drawn(&paper.question(question), style) + &cursor(style)
}

/// Where an answer is typed.
pub(crate) fn cursor(style: &Style) -> String {
    format!("{} ", Theme::of(style).glyphs.prompt)
}

fn drawn(rows: &[Row], style: &Style) -> String {
    rows.iter().map(|row| row.painted(style.err.colour) + "\n").collect()
}

struct Paper {
    theme: Theme,
}

impl Paper {
    fn title(&self, ask: &Ask, asker: &str) -> Row {
        let text = match ask {
            Ask::Command { network: Some(network), .. } => {
                let host = text_at(network, &["host"]).unwrap_or("the network");
                format!("{asker} wants to reach {} over the network", revealed(host))
            }
            Ask::Command { into_running: true, .. } => {
                format!("{asker} wants to type into a running command")
            }
            Ask::Command { .. } => format!("{asker} wants to run a command"),
            Ask::FileChange { changes, .. } => match changes.len() {
                1 => format!("{asker} wants to change a file"),
                count => format!("{asker} wants to change {count} files"),
            },
            Ask::Permissions { .. } => format!("{asker} wants more permissions"),
            Ask::UserInput { questions } => match questions.len() {
                1 => format!("{asker} has a question"),
                count => format!("{asker} has {count} questions"),
            },
            Ask::Elicitation { server, tool_params: Some(_), .. } => {
                format!("{asker} wants to use a tool of the MCP server `{}`", revealed(server))
            }
            Ask::Elicitation { server, .. } => {
                format!("The MCP server `{}` asks", revealed(server))
            }
            Ask::ToolCall { tool, .. } => {
                format!("{asker} calls the tool `{}`, which is not here", revealed(tool))
            }
        };
        let bold = Paint { bold: true, ..Paint::YELLOW };
        Row::of(bold, "?").text(Paint::PLAIN, " ").text(Paint::BOLD, &text)
    }

    fn body(&self, ask: &Ask) -> Vec<Row> {
        match ask {
            Ask::Command { command, cwd, reason, network, .. } => {
                let mut rows = self.command(&unwrapped(command));
                let network = network.as_ref().map(|it| format!("network: {}", reached(it)));
                rows.extend(self.circumstances(Some(cwd), reason.as_deref(), network.as_deref()));
                rows
            }
            Ask::FileChange { changes, reason, grant_root } => {
                let mut rows: Vec<Row> = changes.iter().flat_map(|it| self.change(it)).collect();
                let root = grant_root.as_ref().map(|root| format!("makes {root} writable"));
                rows.extend(self.circumstances(None, reason.as_deref(), root.as_deref()));
                rows
            }
            Ask::Permissions { permissions, reason, cwd } => {
                let mut rows = self.permissions(permissions);
                rows.extend(self.circumstances(cwd.as_deref(), reason.as_deref(), None));
                rows
            }
            Ask::UserInput { .. } => Vec::new(),
            Ask::Elicitation { message, tool_params, schema, mode, .. } => {
                let mut rows = self.whole(message, Paint::PLAIN, INDENT);
                rows.extend(tool_params.iter().flat_map(|params| self.json(params)));
                if mode == "url" {
                    rows.extend(schema.iter().flat_map(|schema| self.json(schema)));
                }
                rows
            }
            Ask::ToolCall { arguments, .. } => self.json(arguments),
        }
    }

    fn question(&self, question: &Question) -> Vec<Row> {
        let mut rows = Vec::new();
        let header = match question.text.is_empty() {
            true => question.header.clone(),
            false => format!("{}: {}", question.header, question.text),
        };
        rows.extend(self.whole(&header, Paint::BOLD, "  "));
        for (index, (_, label, about)) in question.options.iter().enumerate() {
            let about = if about.is_empty() { String::new() } else { format!(" - {about}") };
            rows.extend(self.whole(
                &format!("{}. {label}{about}", index + 1),
                Paint::PLAIN,
                "    ",
            ));
        }
        let way = match (question.options.is_empty(), question.free, question.optional) {
            (false, true, _) => "a number, or your own words",
            (false, false, _) => "a number",
            (true, _, true) => "your answer; empty to leave it out",
            (true, _, false) => "your answer",
        };
        let way = format!("{way}, then enter; ctrl-c: no, stop");
        rows.extend(self.whole(&way, Paint::DIM, "  "));
        rows
    }

    /// `$ ` before the first line; the lines of a script stand below each other.
    fn command(&self, command: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, line) in command.split('\n').enumerate() {
            let lead = if index == 0 { "    $ " } else { "      " };
            rows.extend(self.whole(line, Paint::BOLD, lead));
        }
        rows
    }

    fn change(&self, change: &FileChange) -> Vec<Row> {
        let shown = FileChange {
            path: revealed(&change.path).into_owned(),
            kind: change.kind.clone(),
            diff: revealed(&change.diff).into_owned(),
        };
        let title = Row::of(Paint::CYAN, &format!("    {} ", self.theme.glyphs.edit));
        let lines = diff(self.theme, &shown, None);
        let lines = lines.iter().map(|row| row.behind(Paint::PLAIN, "    "));
        [title.join(&summary(self.theme, &shown, ""))].into_iter().chain(lines).collect()
    }

    fn permissions(&self, wanted: &Value) -> Vec<Row> {
        let lines: Vec<String> = wanted
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{name}: {}", one_line(value)))
            .collect();
        lines.iter().flat_map(|line| self.whole(line, Paint::BOLD, INDENT)).collect()
    }

    fn json(&self, value: &Value) -> Vec<Row> {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.lines().flat_map(|line| self.whole(line, Paint::BOLD, INDENT)).collect()
    }

    /// `in ~/src/almanac · reason: publish the branch`
    fn circumstances(&self, cwd: Option<&str>, why: Option<&str>, more: Option<&str>) -> Vec<Row> {
        let facts = [
            cwd.filter(|cwd| !cwd.is_empty()).map(|cwd| format!("in {}", homely(cwd))),
            why.filter(|why| !why.is_empty())
                .map(|why| format!("reason: {}", one_line(&why.into()))),
            more.map(str::to_owned),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match facts.is_empty() {
            true => Vec::new(),
            false => {
                let (text, lead) = (self.theme.facts(&facts), Row::of(Paint::DIM, INDENT));
                wrap_text(&revealed(&text), Paint::DIM, &lead, &lead, self.theme.cols)
            }
        }
    }

    /// Text that is never cut and shows all of its characters: too long a line goes on below.
    ///
    /// Broken at columns and not at words: a row of blanks would otherwise push the rest of a
    /// command out of sight, or a break would swallow a blank that matters.
    fn whole(&self, text: &str, paint: Paint, lead: &str) -> Vec<Row> {
        let text = revealed(text).replace('\t', "\\t").replace('\n', "\\n");
        let room = self.theme.cols.saturating_sub(lead.len()).max(20);
        let mut rows = Vec::new();
        let mut rest = text.as_str();
        loop {
            let row = crate::view::row::fitting(rest, room);
            let row = if row.is_empty() { rest } else { row };
            let lead = if rows.is_empty() { lead.to_owned() } else { " ".repeat(lead.len()) };
            rows.push(Row::of(Paint::DIM, &lead).text(paint, row));
            rest = &rest[row.len()..];
            if rest.is_empty() {
                return rows;
            }
        }
    }

    /// The keys in as few rows as hold them.
    fn keys(&self, choices: &[Choice]) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for choice in choices {
            let words = revealed(&choice.words).replace('…', self.theme.glyphs.more);
            let key = Row::of(Paint::BOLD, &format!("[{}]", choice.key));
            let key = key.text(Paint::PLAIN, &format!(" {words}"));
            match rows.pop() {
                Some(row) if row.width() + 3 + key.width() <= self.theme.cols => {
                    rows.push(row.text(Paint::PLAIN, "   ").join(&key));
                }
                row => {
                    rows.extend(row);
                    rows.push(key.behind(Paint::PLAIN, "  "));
                }
            }
        }
        rows
    }
}

/// How far in the details stand.
const INDENT: &str = "    ";
