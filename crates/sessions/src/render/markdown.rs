//! A turn as Markdown: headings for turns, quotes for prompts, fences for what tools printed.

use std::io::{self, Write};

use bindery_core::item::{Body, Item, Status, Tool, ToolSort};
use bindery_core::transcript::TurnRecord;
use serde_json::Value;

use super::diff::{self, Line};
use super::text::{clean, fold_lines};
use super::words::{attached, begun_by, describe, duration, unknown_status};
use crate::messages::output_text;

pub(super) fn turn(out: &mut dyn Write, number: u64, turn: &TurnRecord) -> io::Result<()> {
    let time = turn.span.started_at_ms.map(crate::clock::rfc3339).unwrap_or_default();
    let taken_back = if turn.rolled_back { " (taken back)" } else { "" };
    writeln!(out, "## Turn {number}{taken_back}\n")?;
    let words =
        [Some(time), turn.model.clone(), turn.effort.clone(), turn.cwd.clone(), begun_by(turn)];
    let words: Vec<_> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        writeln!(out, "*{}*\n", clean(&words.join(" · ")))?;
    }
    if !turn.setup.is_empty() {
        let topics: Vec<_> = turn.setup.iter().map(|setup| setup.topic.as_str()).collect();
        writeln!(out, "*Session setup: {}*\n", clean(&topics.join(", ")))?;
    }
    for item in &turn.items {
        self::item(out, item)?;
        if !item.origin.left_out.is_empty() {
            writeln!(out, "*[not shown: {}]*\n", clean(&item.origin.left_out.join(", ")))?;
        }
    }
    for error in &turn.errors {
        let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
        writeln!(out, "> **error** {}\n", clean(text))?;
    }
    if let Some(reason) = turn.finish.as_ref().filter(|f| f.raw.as_deref() != Some("completed")) {
        writeln!(out, "*ended: {}*\n", clean(reason.raw.as_deref().unwrap_or("unknown")))?;
    }
    Ok(())
}

fn item(out: &mut dyn Write, item: &Item) -> io::Result<()> {
    match &item.body {
        Body::User { text, attachments } => {
            for line in clean(text.trim_end()).split('\n') {
                writeln!(out, "> {line}")?;
            }
            for attachment in attachments {
                writeln!(out, "> *[{}]*", clean(&attached(attachment)))?;
            }
            writeln!(out)
        }
        Body::Message { text, .. } => writeln!(out, "{}\n", clean(text.trim_end())),
        Body::Reasoning { summary, raw } => {
            let texts = if summary.is_empty() { raw } else { summary };
            texts.iter().try_for_each(|text| writeln!(out, "*{}*\n", clean(text.trim())))
        }
        Body::Tool(tool) => self::tool(out, item, tool),
        Body::Notice { topic, text, .. } => {
            writeln!(out, "---\n\n*{}*\n", clean(format!("{topic} {text}").trim()))
        }
        Body::Unknown { tag, why, raw } => {
            let text = serde_json::to_string_pretty(raw).unwrap_or_default();
            writeln!(out, "**unknown `{}`**: {}\n", clean(tag), clean(why))?;
            fence(out, "json", &text)
        }
        Body::File { media_type, .. } => writeln!(out, "*[file: {}]*\n", clean(media_type)),
        Body::Source { source } => {
            let text = serde_json::to_string(source).unwrap_or_default();
            writeln!(out, "*[source: {}]*\n", clean(&text))
        }
    }
}

fn tool(out: &mut dyn Write, item: &Item, tool: &Tool) -> io::Result<()> {
    let mut notes = Vec::new();
    match item.status {
        Status::Ok => {}
        Status::Unknown => notes.push(clean(&unknown_status(tool))),
        status => notes.push(format!("{status:?}").to_lowercase()),
    }
    notes.extend(tool.exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}")));
    notes.extend(tool.duration_ms.map(duration));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let line = clean(&describe(tool)).replace('\n', " ⏎ ").replace('`', "ˋ");
    writeln!(out, "- `{line}`{notes}\n")?;
    match tool.sort {
        ToolSort::Plan => {
            for step in tool.plan() {
                let sign = if step.status == "completed" { "x" } else { " " };
                writeln!(out, "- [{sign}] {}", clean(&step.step))?;
            }
            writeln!(out)
        }
        ToolSort::Edit => {
            let mut text = String::new();
            for change in tool.changes() {
                text.push_str(&format!("--- {}\n", change.path));
                for line in diff::lines(&change) {
                    let (sign, line) = match line {
                        Line::Added(line) => ("+", line),
                        Line::Removed(line) => ("-", line),
                        Line::Hunk(line) => ("", line),
                        Line::Context(line) => (" ", line),
                    };
                    text.push_str(&format!("{sign}{line}\n"));
                }
            }
            fence(out, "diff", &text)
        }
        _ => {
            let text = output_text(tool);
            let (head, left_out, tail) = fold_lines(&text, 50, 50);
            let mut lines: Vec<String> = head.iter().map(|line| (*line).to_owned()).collect();
            if left_out > 0 {
                lines.push(format!("… {left_out} lines …"));
            }
            lines.extend(tail.iter().map(|line| (*line).to_owned()));
            fence(out, "", &lines.join("\n"))
        }
    }
}

/// A fence longer than any in the text, so that nothing breaks out of it.
fn fence(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let text = clean(text);
    if text.trim().is_empty() {
        return Ok(());
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
