//! A command: what ran, what it printed (folded), how it ended.

use serde_json::Value;

use crate::view::clean::output_lines;
use crate::view::row::{Paint, Row};
use crate::view::shell::unwrapped;
use crate::view::theme::Theme;
use crate::view::wording::{duration, text_at};

/// The command of an input as a person would type it.
pub(crate) fn typed(input: &Value) -> String {
    unwrapped(text_at(input, &["command"]).unwrap_or("(no command)"))
}

/// A finished command.
pub(crate) fn rows(theme: Theme, input: &Value, result: &Value) -> Vec<Row> {
    let end = End::of(result);
    let mut lines = Vec::from_iter(typed(input).lines().map(str::to_owned));
    if lines.is_empty() {
        lines.push(String::new());
    }
    let title = Row::of(end.paint(), end.glyph(theme)).text(Paint::DIM, " $ ");
    let took = took(result, &end);
    let mut rows =
        vec![theme.headline(title.text(Paint::PLAIN, &lines[0]), &end.note(result), &took)];
    rows.extend(folded(theme, &lines[1..], (3, 1), "    "));
    rows.extend(printed(theme, result, &end));
    rows
}

/// How long a call took, if it was made at all.
pub(crate) fn took(result: &Value, end: &End) -> String {
    let took = result.get("durationMs").and_then(Value::as_u64);
    took.filter(|_| *end != End::Declined).map_or_else(String::new, duration)
}

/// The last lines of what a running command printed.
pub(crate) fn tail(theme: Theme, output: &str, lines: usize) -> Vec<Row> {
    let all = if output.is_empty() { Vec::new() } else { output_lines(output) };
    let from = all.len().saturating_sub(lines);
    all[from..].iter().map(|line| beside_bar(theme, line)).collect()
}

/// What a tool printed or said, folded, beside a bar.
pub(crate) fn body(theme: Theme, text: &str, ends: (usize, usize)) -> Vec<Row> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    folded(theme, &output_lines(text), ends, &format!("  {} ", theme.glyphs.bar))
}

#[derive(PartialEq)]
pub(crate) enum End {
    Ok,
    Failed,
    Declined,
    /// It was begun, and nothing tells how it ended.
    Open,
}

impl End {
    /// How a result says that it ended.
    pub(crate) fn of(result: &Value) -> Self {
        let exit = result.get("exitCode").and_then(Value::as_i64);
        match text_at(result, &["status"]) {
            Some("declined") => Self::Declined,
            Some("failed") => Self::Failed,
            Some("inProgress") => Self::Open,
            _ if exit.is_some_and(|code| code != 0) => Self::Failed,
            _ => Self::Ok,
        }
    }

    pub(crate) fn paint(&self) -> Paint {
        if *self == Self::Ok { Paint::GREEN } else { Paint::RED }
    }

    pub(crate) fn glyph(&self, theme: Theme) -> &'static str {
        if *self == Self::Ok { theme.glyphs.ok } else { theme.glyphs.bad }
    }

    pub(crate) fn note(&self, result: &Value) -> String {
        match (self, result.get("exitCode").and_then(Value::as_i64)) {
            (Self::Ok, _) => String::new(),
            (Self::Declined, _) => "declined".to_owned(),
            (Self::Open, _) => "cut off".to_owned(),
            (Self::Failed, Some(code)) => format!("exit {code}"),
            (Self::Failed, None) => "failed".to_owned(),
        }
    }
}

/// Of a success its first and last line are enough; of a failure the end tells most.
fn printed(theme: Theme, result: &Value, end: &End) -> Vec<Row> {
    let text = text_at(result, &["aggregatedOutput", "output"]).unwrap_or_default();
    body(theme, text, if *end == End::Ok { (1, 1) } else { (2, 6) })
}

fn beside_bar(theme: Theme, line: &str) -> Row {
    let bar = format!("  {} ", theme.glyphs.bar);
    theme.fit(Row::of(Paint::DIM, &bar).text(Paint::DIM, line))
}

/// Lines behind a lead; if there are many, only so many at either end.
fn folded(theme: Theme, lines: &[String], (head, tail): (usize, usize), lead: &str) -> Vec<Row> {
    let row = |text: &str| theme.fit(Row::of(Paint::DIM, lead).text(Paint::DIM, text));
    // A fold that hides a single line saves nothing.
    if lines.len() <= head + tail + 1 {
        return lines.iter().map(|line| row(line)).collect();
    }
    let hidden = row(&theme.left_out(lines.len() - head - tail));
    let (first, last) = (&lines[..head], &lines[lines.len() - tail..]);
    let first = first.iter().map(|line| row(line));
    first.chain([hidden]).chain(last.iter().map(|line| row(line))).collect()
}
