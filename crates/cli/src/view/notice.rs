//! Things worth telling that are neither said nor done: notices, retries, reviews, errors, sources.

use bindery::core::part::{Source, Warning};
use serde_json::{Map, Value};

use super::row::{Paint, Row};
use super::theme::Theme;
use super::wording::{one_line, text_at};
use super::wrap::wrap_text;

/// What a custom part is to the view.
pub(crate) enum Told {
    /// Rows to show.
    Rows(Vec<Row>),
    /// A text of the answer that came by another way.
    Review(String),
    /// A part of a sub-agent.
    Agent(Value),
    /// Nothing to show.
    Nothing,
}

/// Reads a custom part; a kind that is not known is shown, never dropped.
pub(crate) fn custom(theme: Theme, kind: &str, data: Option<&Map<String, Value>>) -> Told {
    let data = data.cloned().map_or(Value::Null, Value::Object);
    let text = text_at(&data, &["message", "text"]).unwrap_or_default();
    match kind {
        "codex.notice" => Told::Rows(notice(theme, &data, text)),
        "codex.retry" => {
            let text = if text.is_empty() { "trying again" } else { text };
            Told::Rows(marked(theme, theme.glyphs.again, Paint::YELLOW, Paint::DIM, text))
        }
        "codex.compaction" => {
            Told::Rows(dim(theme, "the conversation was compacted to free context"))
        }
        "codex.review" => review(theme, &data),
        "codex.subagent" => Told::Agent(data),
        "codex.user-message" if steering(&data) => {
            Told::Rows(marked(theme, theme.glyphs.prompt, Paint::CYAN, Paint::PLAIN, text))
        }
        "codex.user-message" | "codex.diff" | "codex.usage" => Told::Nothing,
        "codex.unknown" => {
            let at = |key| text_at(&data, &[key]).unwrap_or("?");
            let text = format!("not understood: {} ({})", at("tag"), at("why"));
            Told::Rows(vec![theme.fit(marked_row("?", Paint::DIM, &text))])
        }
        kind => {
            let text = format!("{kind} {}", one_line(&data));
            Told::Rows(vec![theme.fit(marked_row("?", Paint::DIM, &text))])
        }
    }
}

/// `error: …`, then what to do about it.
pub(crate) fn error(theme: Theme, error: &Value) -> Vec<Row> {
    let message = match text_at(error, &["message"]) {
        Some(message) => provider_message(message),
        None => one_line(error),
    };
    let bold = Paint { bold: true, ..Paint::RED };
    let (lead, hang) = (Row::of(bold, "error: "), Row::of(Paint::PLAIN, "       "));
    let mut rows = wrap_lines(&message, Paint::PLAIN, &lead, &hang, theme.prose);
    for key in ["kind", "cause", "hint"] {
        if let Some(text) = text_at(error, &[key]) {
            let lead = Row::of(Paint::DIM, &format!("  {key}: "));
            let hang = Row::of(Paint::PLAIN, &" ".repeat(lead.width()));
            rows.extend(wrap_lines(text, Paint::DIM, &lead, &hang, theme.prose));
        }
    }
    rows
}

/// Codex hands on what a provider answered, which for many is `{"error":{"message":"…"}}`.
fn provider_message(text: &str) -> String {
    let answer: Option<Value> = serde_json::from_str(text).ok();
    let said = answer.as_ref().and_then(|answer| text_at(answer.get("error")?, &["message"]));
    said.unwrap_or(text).to_owned()
}

/// What could not be carried to Codex.
pub(crate) fn warning(theme: Theme, warning: &Warning) -> Vec<Row> {
    let text = match warning {
        Warning::Unsupported { feature, details } => match details {
            Some(details) => format!("{feature} was left out: {details}"),
            None => format!("{feature} was left out"),
        },
        Warning::Compatibility { feature, details } => match details {
            Some(details) => format!("{feature}: {details}"),
            None => format!("{feature} was carried in another form"),
        },
        Warning::Deprecated { setting, message } => format!("{setting} is old: {message}"),
        Warning::Other { message } => message.clone(),
    };
    marked(theme, "!", Paint::YELLOW, Paint::PLAIN, &text)
}

/// What the answer rests on.
pub(crate) fn source(theme: Theme, source: &Source) -> Vec<Row> {
    let text = match source {
        Source::Url { url, title, .. } => match title {
            Some(title) => format!("source: {title} {url}"),
            None => format!("source: {url}"),
        },
        Source::Document { title, filename, .. } => match filename {
            Some(filename) => format!("source: {title} ({filename})"),
            None => format!("source: {title}"),
        },
    };
    dim(theme, &text)
}

/// One remark, lightly.
pub(crate) fn dim(theme: Theme, text: &str) -> Vec<Row> {
    marked(theme, theme.glyphs.dot, Paint::DIM, Paint::DIM, text)
}

fn notice(theme: Theme, data: &Value, text: &str) -> Vec<Row> {
    let text = match (text, text_at(data, &["topic"])) {
        ("", Some(topic)) => topic,
        (text, _) => text,
    };
    match text_at(data, &["level"]).unwrap_or_default() {
        "error" => marked(theme, theme.glyphs.bad, Paint::RED, Paint::PLAIN, text),
        "warning" | "warn" => marked(theme, "!", Paint::YELLOW, Paint::PLAIN, text),
        _ => dim(theme, text),
    }
}

fn review(theme: Theme, data: &Value) -> Told {
    let text = text_at(data, &["review"]).unwrap_or_default();
    match text_at(data, &["phase"]) {
        Some("exited") if !text.is_empty() => Told::Review(text.to_owned()),
        Some("exited") => Told::Rows(dim(theme, "the review is done")),
        _ if text.is_empty() => Told::Rows(dim(theme, "a review begins")),
        _ => Told::Rows(dim(theme, &format!("a review begins: {text}"))),
    }
}

fn steering(data: &Value) -> bool {
    ["steering", "steer", "steered"].iter().any(|key| data.get(key) == Some(&Value::Bool(true)))
}

fn marked_row(mark: &str, paint: Paint, text: &str) -> Row {
    Row::of(paint, mark).text(Paint::PLAIN, " ").text(paint, text)
}

fn marked(theme: Theme, mark: &str, paint: Paint, text_paint: Paint, text: &str) -> Vec<Row> {
    let lead = Row::of(paint, mark).text(Paint::PLAIN, " ");
    let hang = Row::of(Paint::PLAIN, &" ".repeat(lead.width()));
    wrap_lines(text, text_paint, &lead, &hang, theme.prose)
}

/// Wrapped text that shows at least its lead.
fn wrap_lines(text: &str, paint: Paint, lead: &Row, hang: &Row, cols: usize) -> Vec<Row> {
    let rows = wrap_text(text.trim_end(), paint, lead, hang, cols);
    if rows.is_empty() { vec![lead.clone()] } else { rows }
}
