//! Mentions and skills: from options, and from `@path` and `$skill` in a text.

mod token;

use serde_json::Value;

use super::PlanContext;
use crate::wire::app_server::input::{ByteRange, TextElement, UserInput};

/// A place in a text and what it stands for.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) element: TextElement,
    pub(super) what: UserInput,
}

/// Finds `@path`, `@"path with space"` and the `$skill`s that the context knows.
pub(super) fn parse(text: &str, context: &PlanContext) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find(['@', '$']).map(|offset| at + offset) {
        let hit = token::may_begin(&text[..next]).then(|| hit(text, next, context)).flatten();
        at = hit.as_ref().map_or(next + 1, |hit| hit.element.byte_range.end);
        found.extend(hit);
    }
    found
}

/// A mention that an option names: `{path, name?}` or a path.
pub(super) fn mention(value: &Value, context: &PlanContext) -> Result<UserInput, &'static str> {
    let path = field(value, "path").or(value.as_str()).filter(|path| !path.is_empty());
    let path = path.ok_or("a mention needs a `path`")?;
    let name = field(value, "name").unwrap_or_else(|| file_name(path));
    // Apps and the like have addresses of their own.
    let path = if path.contains("://") { path.to_owned() } else { resolved(path, context) };
    Ok(UserInput::Mention { name: name.to_owned(), path })
}

/// A skill that an option names: `{name, path?}` or a name.
pub(super) fn skill(value: &Value, context: &PlanContext) -> Result<UserInput, &'static str> {
    let name = field(value, "name").or(value.as_str()).ok_or("a skill needs a `name`")?;
    let known = || context.skills.get(name).map(String::as_str);
    let path =
        field(value, "path").or_else(known).ok_or("no such skill is known; give its path")?;
    Ok(UserInput::Skill { name: name.to_owned(), path: path.to_owned() })
}

/// A marked place that an option names, checked against its text.
pub(super) fn element(value: &Value, text: &str) -> Result<TextElement, &'static str> {
    let element: TextElement =
        serde_json::from_value(value.clone()).map_err(|_| "it is not {byteRange, placeholder}")?;
    let ByteRange { start, end } = element.byte_range;
    match text.get(start..end) {
        Some("") => Err("its range is empty"),
        Some(_) => Ok(element),
        None => Err("its range is not one of whole UTF-8 characters in the text"),
    }
}

fn hit(text: &str, start: usize, context: &PlanContext) -> Option<Found> {
    let rest = &text[start + 1..];
    if text[start..].starts_with('$') {
        let name = token::skill(rest, |name| context.skills.contains_key(name))?;
        let what = skill(&Value::from(name), context).ok()?;
        return Some(Found { element: marked(start, 1 + name.len(), name), what });
    }
    let (path, length) = token::path(rest)?;
    let what =
        UserInput::Mention { name: file_name(path).to_owned(), path: resolved(path, context) };
    Some(Found { element: marked(start, 1 + length, path), what })
}

fn marked(start: usize, length: usize, placeholder: &str) -> TextElement {
    let byte_range = ByteRange { start, end: start + length };
    TextElement { byte_range, placeholder: Some(placeholder.to_owned()) }
}

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn file_name(path: &str) -> &str {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() { path } else { name }
}

/// A path as Codex on the same machine finds it; the disk is not asked.
fn resolved(path: &str, context: &PlanContext) -> String {
    let is_absolute = path.starts_with(['/', '\\', '~']) || path.as_bytes().get(1) == Some(&b':');
    match &context.cwd {
        Some(cwd) if !is_absolute => {
            let separator = if cwd.contains('\\') && !cwd.contains('/') { '\\' } else { '/' };
            let path = path.strip_prefix("./").unwrap_or(path);
            format!("{}{separator}{path}", cwd.trim_end_matches(['/', '\\']))
        }
        _ => path.to_owned(),
    }
}
