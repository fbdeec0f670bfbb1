//! A turn as a card in the terminal: prompt, what was done, answer, footer.

use std::io::{self, Write};

use bindery_core::item::{Body, Item, Status, Tool, ToolSort};
use bindery_core::transcript::TurnRecord;
use bindery_core::usage::Unified;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::diff::{self, Line};
use super::text::{clean, fit, fold_lines, padded};
use super::words::{activity, attached, bytes, describe_in, duration, quantity, unknown_status};
use super::{Density, Style, TextLayout};
use crate::messages::output_text;

/// Where and how a turn is drawn.
pub(super) struct Page<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) style: Style,
    pub(super) layout: &'a dyn TextLayout,
    /// The folder that paths are seen from.
    pub(super) cwd: &'a str,
}

const PLAIN: &str = "";
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// Below these columns statuses and times do not stand below each other.
const NARROW: usize = 60;

impl Page<'_> {
    pub(super) fn turn(&mut self, number: Option<u64>, turn: &TurnRecord) -> io::Result<()> {
        self.header(number, turn)?;
        if self.style.density == Density::Everything {
            self.setup(turn)?;
        }
        let mut run: Vec<&Item> = Vec::new();
        for item in &turn.items {
            let is_quiet = matches!(&item.body, Body::Tool(_) | Body::Reasoning { .. });
            if is_quiet && self.style.density == Density::Conversation {
                run.push(item);
                continue;
            }
            self.strip(&mut run)?;
            self.item(item)?;
            self.left_out(item)?;
        }
        self.strip(&mut run)?;
        self.footer(turn)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.style.colour && !code.is_empty() && !text.is_empty() {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// Text in rows below each other: `lead` before the first, as many blanks before the others.
    fn rows(&mut self, code: &str, lead: &str, text: &str) -> io::Result<()> {
        let blank = " ".repeat(lead.width());
        self.rows_behind(code, (lead, &blank), text)
    }

    fn rows_behind(&mut self, code: &str, leads: (&str, &str), text: &str) -> io::Result<()> {
        let room = self.style.width.saturating_sub(leads.0.width()).max(8);
        for (index, row) in self.layout.rows(text, room).iter().enumerate() {
            let lead = if index == 0 { leads.0 } else { leads.1 };
            let line = self.paint(code, format!("{lead}{row}").trim_end());
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn glyph(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.style.unicode { unicode } else { ascii }
    }

    fn header(&mut self, number: Option<u64>, turn: &TurnRecord) -> io::Result<()> {
        let mut words = vec![number.map_or("turn".to_owned(), |number| format!("turn {number}"))];
        words.extend(turn.span.started_at_ms.map(|time| self.layout.time(time)));
        words.extend(turn.model.clone());
        words.extend(turn.effort.clone());
        words.extend(super::words::begun_by(turn));
        if turn.rolled_back {
            words.push("taken back".to_owned());
        }
        let lead = format!("{} ", self.glyph("──", "--"));
        let text = clean(&words.join(" · "));
        let rest = self.style.width.saturating_sub(lead.width() + text.width() + 1);
        if rest == 0 {
            return self.rows(DIM, &lead, &text);
        }
        let line = format!("{lead}{text} {}", self.glyph("─", "-").repeat(rest));
        let painted = self.paint(DIM, &line);
        writeln!(self.out, "{painted}")
    }

    fn setup(&mut self, turn: &TurnRecord) -> io::Result<()> {
        if turn.setup.is_empty() {
            return Ok(());
        }
        let topics = turn
            .setup
            .iter()
            .map(|setup| format!("{} ({})", setup.topic, bytes(setup.text.len() as u64)));
        let line = format!("setup: {}", topics.collect::<Vec<_>>().join(", "));
        self.rows(DIM, "", &clean(&line))?;
        let names: Vec<_> = turn
            .setup
            .iter()
            .flat_map(|setup| &setup.origin.left_out)
            .map(String::as_str)
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        self.rows(DIM, "  ", &format!("not shown: {}", clean(&names.join(", "))))
    }

    /// What was done, in one line; failures break out.
    fn strip(&mut self, run: &mut Vec<&Item>) -> io::Result<()> {
        let items = std::mem::take(run);
        let sentence = activity(&items);
        if !sentence.is_empty() {
            let lead = format!("{} ", self.glyph("▸", ">"));
            self.rows(DIM, &lead, &sentence)?;
        }
        let bad = |item: &&&Item| !matches!(item.status, Status::Ok | Status::Pending);
        for item in items.iter().filter(bad) {
            self.item(item)?;
        }
        items.iter().try_for_each(|item| self.left_out(item))
    }

    /// What of an item's lines is not in it.
    fn left_out(&mut self, item: &Item) -> io::Result<()> {
        if item.origin.left_out.is_empty() {
            return Ok(());
        }
        let names = clean(&item.origin.left_out.join(", "));
        self.rows(DIM, "  ", &format!("not shown: {names}"))
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        match &item.body {
            Body::User { text, attachments } => self.user(item, text, attachments),
            Body::Message { text, phase } => {
                if phase.as_deref() == Some("plan") {
                    writeln!(self.out, "{}", self.paint(BOLD, "Plan"))?;
                }
                writeln!(self.out)?;
                for row in self.layout.markdown(&clean(text.trim_end())) {
                    writeln!(self.out, "{row}")?;
                }
                writeln!(self.out)
            }
            Body::Reasoning { summary, raw } => self.reasoning(item, summary, raw),
            Body::Tool(tool) => self.tool(item, tool),
            Body::Notice { topic, text, data } => self.notice(topic, text, data),
            Body::Unknown { tag, why, raw } => self.card(tag, why, raw),
            Body::File { media_type, .. } => writeln!(self.out, "file: {}", clean(media_type)),
            Body::Source { source } => {
                let text = serde_json::to_string(source).unwrap_or_default();
                writeln!(self.out, "source: {}", clean(&fit(&text, self.style.width)))
            }
        }
    }

    fn user(&mut self, item: &Item, text: &str, attachments: &[Value]) -> io::Result<()> {
        let mark = item.origin.mark.as_ref().map(|mark| format!(" ({mark})")).unwrap_or_default();
        let bar = format!("{} ", self.glyph("▌", "|"));
        let shown = clean(crate::normalise::plain_user_text(text).trim_end());
        let (first, rest) = shown.split_once('\n').map_or((&*shown, None), |(a, b)| (a, Some(b)));
        self.rows_behind(BOLD, (&bar, &bar), &format!("{first}{mark}"))?;
        if let Some(rest) = rest {
            self.rows_behind(BOLD, (&bar, &bar), rest)?;
        }
        for attachment in attachments {
            let text = format!("[{}]", clean(&attached(attachment)));
            self.rows_behind(PLAIN, (&bar, &bar), &text)?;
        }
        Ok(())
    }

    fn reasoning(&mut self, item: &Item, summary: &[String], raw: &[String]) -> io::Result<()> {
        let texts = if summary.is_empty() { raw } else { summary };
        let arrow = self.glyph("▸", ">");
        let Some(first) = texts.first() else {
            let mark = item.origin.mark.as_deref().unwrap_or("no text");
            let line = self.paint(DIM, &format!("{arrow} thought ({mark})"));
            return writeln!(self.out, "{line}");
        };
        if self.style.density == Density::Everything {
            let lead = format!("{arrow} ");
            return texts.iter().try_for_each(|text| self.rows(DIM, &lead, &clean(text.trim())));
        }
        let headline = clean(first.trim().trim_start_matches("**")).replace("**", "");
        let line = self.paint(DIM, &format!("{arrow} {}", fit(&headline, self.style.width - 2)));
        writeln!(self.out, "{line}")
    }

    fn tool(&mut self, item: &Item, tool: &Tool) -> io::Result<()> {
        let (glyph, word, code) = match item.status {
            Status::Ok => (self.glyph("✓", "+"), "", GREEN),
            Status::Pending => (self.glyph("…", "~"), "running", CYAN),
            Status::Failed => (self.glyph("✗", "x"), "failed", RED),
            Status::Declined => (self.glyph("⊘", "x"), "declined", RED),
            Status::Aborted => (self.glyph("■", "x"), "aborted", RED),
            Status::Incomplete => (self.glyph("?", "?"), "no end", RED),
            Status::Unknown => (self.glyph("?", "?"), "unknown", RED),
        };
        let exit = tool.exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}"));
        let word = exit.unwrap_or_else(|| word.to_owned());
        let time = tool.duration_ms.map(duration).unwrap_or_default();
        let right = match self.style.width < NARROW {
            true => format!("{word} {time}").trim().to_owned(),
            false => format!("{word:>10}  {time:>9}"),
        };
        let width = self.style.width.saturating_sub(right.width() + 3).max(15);
        let left = padded(&fit(&clean(&describe_in(tool, self.cwd)), width), width);
        let glyph = self.paint(code, glyph);
        writeln!(self.out, "{}", format!("{glyph} {left} {right}").trim_end())?;
        if item.status == Status::Unknown {
            self.rows(PLAIN, "  ", &clean(&unknown_status(tool)))?;
        }
        if tool.sort == ToolSort::Plan {
            self.plan(tool)?;
        }
        let shows_output = self.style.density == Density::Everything
            || (item.status == Status::Failed && self.style.density == Density::Activity);
        if tool.sort == ToolSort::Edit && self.style.density >= Density::Activity {
            self.diff(tool)?;
        }
        if shows_output && (tool.sort != ToolSort::Edit || item.status != Status::Ok) {
            self.output(&output_text(tool))?;
        }
        Ok(())
    }

    fn plan(&mut self, tool: &Tool) -> io::Result<()> {
        for step in tool.plan() {
            let sign = match step.status.as_str() {
                "completed" => self.glyph("☑", "[x]"),
                "inProgress" => self.glyph("▶", "[>]"),
                "pending" => self.glyph("☐", "[ ]"),
                _ => self.glyph("?", "[?]"),
            };
            let lead = format!("  {sign} ");
            self.rows(PLAIN, &lead, &clean(&step.step))?;
        }
        Ok(())
    }

    fn diff(&mut self, tool: &Tool) -> io::Result<()> {
        let limit = if self.style.density == Density::Everything { 200 } else { 12 };
        for change in tool.changes() {
            let all: Vec<Line<'_>> = diff::lines(&change).collect();
            for line in all.iter().take(limit) {
                let (sign, text, code) = match line {
                    Line::Added(text) => ("+", text, GREEN),
                    Line::Removed(text) => ("-", text, RED),
                    Line::Hunk(text) => ("", text, CYAN),
                    Line::Context(text) => (" ", text, DIM),
                };
                let lead = format!("  {sign}");
                self.rows(code, &lead, &clean(text))?;
            }
            if all.len() > limit {
                writeln!(self.out, "  … {} more lines", all.len() - limit)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, text: &str) -> io::Result<()> {
        let text = clean(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let (head, left_out, tail) = fold_lines(&text, 5, 10);
        let bar = format!("  {} ", self.glyph("│", "|"));
        let mut lines: Vec<String> = head.into_iter().map(str::to_owned).collect();
        if left_out > 0 {
            lines.push(format!("… {left_out} lines …"));
        }
        lines.extend(tail.into_iter().map(str::to_owned));
        self.rows_behind(PLAIN, (&bar, &bar), &lines.join("\n"))
    }

    fn notice(&mut self, topic: &str, text: &str, data: &Value) -> io::Result<()> {
        let rule = self.glyph("──", "--");
        let words = match topic {
            "compaction" => "context compacted".to_owned(),
            "review" => {
                let phase = data.get("phase").and_then(Value::as_str).unwrap_or_default();
                format!("review {phase}: {text}")
            }
            "subagent" => {
                let word = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
                format!("sub-agent {} {}", word("path"), word("activity"))
            }
            _ if text.is_empty() => topic.to_owned(),
            "fork" | "rollback" => text.to_owned(),
            _ => format!("{topic}: {text}"),
        };
        self.rows(CYAN, &format!("{rule} "), &clean(words.trim()))
    }

    fn card(&mut self, tag: &str, why: &str, raw: &Value) -> io::Result<()> {
        let sign = self.glyph("◇", "?");
        self.rows(RED, &format!("{sign} "), &format!("unknown: {}", clean(tag)))?;
        self.rows(PLAIN, "  ", &clean(why))?;
        let limit = if self.style.density == Density::Everything { 4_000 } else { 300 };
        let raw = raw.to_string();
        let end = raw.floor_char_boundary(limit);
        let more = if end < raw.len() { " …" } else { "" };
        self.rows(PLAIN, "  ", &format!("{}{more}", clean(&raw[..end])))
    }

    fn footer(&mut self, turn: &TurnRecord) -> io::Result<()> {
        for error in &turn.errors {
            let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
            let lead = format!("{} ", self.glyph("✗", "x"));
            self.rows(RED, &lead, &format!("error: {}", clean(text)))?;
        }
        let mut words = Vec::new();
        words.extend(turn.finish.as_ref().map(|finish| match finish.unified {
            Unified::Stop => "done".to_owned(),
            Unified::Interrupted => {
                format!("aborted ({})", finish.raw.as_deref().unwrap_or("interrupted"))
            }
            _ => format!("failed ({})", finish.raw.as_deref().unwrap_or("error")),
        }));
        if let (Some(start), Some(end)) = (turn.span.started_at_ms, turn.span.completed_at_ms) {
            words.push(duration(end.saturating_sub(start).max(0).unsigned_abs()));
        }
        if let Some(usage) = &turn.usage {
            let input = usage.input_tokens.total.unwrap_or_default();
            let cached = usage.input_tokens.cache_read.unwrap_or_default();
            let output = usage.output_tokens.total.unwrap_or_default();
            let cached =
                if cached > 0 { format!(" ({} cached)", quantity(cached)) } else { String::new() };
            words.push(format!("{} in{cached} · {} out", quantity(input), quantity(output)));
        }
        if words.is_empty() {
            return writeln!(self.out);
        }
        self.rows(DIM, "", &clean(&words.join(" · ")))?;
        writeln!(self.out)
    }
}
