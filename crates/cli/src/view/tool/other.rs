//! All other tools: searches, images, sub-agents, MCP and the caller's own.

use serde_json::Value;

use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;
use crate::view::wording::{one_line, text_at};

use super::command::{End, body, took};

/// A finished call of any tool.
pub(crate) fn rows(theme: Theme, name: &str, input: &Value, result: &Value, bad: bool) -> Vec<Row> {
    let end = match End::of(result) {
        End::Ok if bad || refused(result) => End::Failed,
        end => end,
    };
    let label = label(name, input, result);
    let left = Row::of(end.paint(), end.glyph(theme)).text(Paint::PLAIN, &format!(" {label}"));
    let took = took(result, &end);
    let mut rows = vec![theme.headline(left, &end.note(result), &took)];
    let ends = if end == End::Ok { (1, 1) } else { (2, 6) };
    rows.extend(body(theme, &said(name, result), ends));
    rows
}

/// What a call is, in a few words.
pub(crate) fn label(name: &str, input: &Value, result: &Value) -> String {
    let at = |keys: &[&str]| text_at(input, keys).or_else(|| text_at(result, keys));
    match name {
        "codex_web_search" => web(input, result),
        "codex_image_view" => format!("look at {}", at(&["path"]).unwrap_or("an image")),
        "codex_image_generation" => {
            let prompt = at(&["revisedPrompt", "prompt"]).unwrap_or_default();
            ["draw", prompt, at(&["savedPath"]).unwrap_or_default()].join(" ").trim_end().to_owned()
        }
        "codex_agent" => agent(input, result),
        name => {
            let name = name.strip_prefix("mcp:").unwrap_or(name);
            format!("{name} {}", one_line(input)).trim_end().to_owned()
        }
    }
}

fn web(input: &Value, result: &Value) -> String {
    let action = [result, input].iter().find_map(|value| value.get("action")?.as_object());
    let at = |key: &str| action?.get(key)?.as_str().filter(|text| !text.is_empty());
    match (at("url"), at("pattern")) {
        (Some(url), Some(pattern)) => format!("web: find \"{pattern}\" in {url}"),
        (Some(url), None) => format!("web: open {url}"),
        _ => {
            let query = text_at(result, &["query"]).or(text_at(input, &["query"])).or(at("query"));
            format!("web: search \"{}\"", query.unwrap_or_default())
        }
    }
}

fn agent(input: &Value, result: &Value) -> String {
    let at = |keys: &[&str]| text_at(input, keys).or_else(|| text_at(result, keys));
    let what = at(&["tool", "action", "kind"]).unwrap_or("call");
    let who = at(&["name", "agentPath", "nickname"]).unwrap_or_default();
    let prompt = at(&["prompt", "message", "task"]).unwrap_or_default();
    let prompt = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    let who = if who.is_empty() { String::new() } else { format!(" {who}") };
    let prompt = if prompt.is_empty() { prompt } else { format!(": {prompt}") };
    format!("agent {what}{who}{prompt}")
}

fn refused(result: &Value) -> bool {
    result.get("success") == Some(&Value::Bool(false))
        || result.get("error").is_some_and(|error| !error.is_null())
        || result.get("isError") == Some(&Value::Bool(true))
}

/// The text in a result: of an error, of content pieces, or the value itself.
fn said(name: &str, result: &Value) -> String {
    if let Some(error) = result.get("error").filter(|error| !error.is_null()) {
        return text_at(error, &["message"]).map_or_else(|| one_line(error), str::to_owned);
    }
    if name.starts_with("codex_") {
        return String::new();
    }
    let content = result.get("result").filter(|inner| inner.is_object()).unwrap_or(result);
    let pieces = ["content", "contentItems"].iter().find_map(|key| content.get(key)?.as_array());
    match (pieces, result) {
        (Some(pieces), _) => {
            let text =
                |piece| text_at(piece, &["text"]).map_or_else(|| one_line(piece), str::to_owned);
            pieces.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        (None, Value::String(text)) => text.clone(),
        (None, result) => one_line(result),
    }
}
