//! Commands that only look around: reads, listings and searches, in one line.

use bindery::sessions::render::relative_path;
use serde_json::Value;

use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;
use crate::view::wording::{duration, text_at};

use super::command::End;

/// What was looked at since something else was shown.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    looks: Vec<Look>,
    took_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    verb: &'static str,
    what: String,
}

impl Looks {
    /// Adds a finished command if it only looked around and succeeded.
    pub(crate) fn add(&mut self, input: &Value, result: &Value) -> bool {
        let Some(looks) = looks(input).filter(|_| End::of(result) == End::Ok) else {
            return false;
        };
        for look in looks {
            if !self.looks.contains(&look) {
                self.looks.push(look);
            }
        }
        self.took_ms += result.get("durationMs").and_then(Value::as_u64).unwrap_or(0);
        true
    }

    /// The looks as rows; several rows if they do not fit into one.
    pub(crate) fn rows(&self, theme: Theme) -> Vec<Row> {
        if self.looks.is_empty() {
            return Vec::new();
        }
        let lead = Row::of(Paint::GREEN, theme.glyphs.ok).text(Paint::PLAIN, " ");
        let rest = Row::of(Paint::PLAIN, "  ");
        let cols = theme.cols.saturating_sub(10);
        let mut rows = super::wrap_text(&self.text(), Paint::PLAIN, &lead, &rest, cols);
        let first = std::mem::take(&mut rows[0]);
        rows[0] = theme.headline(first, "", &duration(self.took_ms));
        rows
    }

    /// Takes all looks away.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// `read a, b; search "x" in src`
    fn text(&self) -> String {
        let mut text = String::new();
        let mut verb = "";
        for look in &self.looks {
            if look.verb == verb {
                text.push_str(", ");
            } else {
                let gap = if verb.is_empty() { "" } else { "; " };
                text.push_str(&format!("{gap}{} ", look.verb));
                verb = look.verb;
            }
            text.push_str(&look.what);
        }
        text
    }
}

/// None if one of the command's actions is more than looking.
fn looks(input: &Value) -> Option<Vec<Look>> {
    let actions = input.get("actions")?.as_array().filter(|actions| !actions.is_empty())?;
    let cwd = text_at(input, &["cwd"]).unwrap_or_default();
    actions.iter().map(|action| look(action, cwd)).collect()
}

fn look(action: &Value, cwd: &str) -> Option<Look> {
    let path = text_at(action, &["path", "name"]).map(|path| below(path, cwd));
    let (verb, what) = match action.get("type")?.as_str()? {
        "read" => ("read", path?),
        "listFiles" => ("list", path.unwrap_or_else(|| ".".to_owned())),
        "search" => {
            let query = text_at(action, &["query"])?;
            let place = path.map_or_else(String::new, |path| format!(" in {path}"));
            ("search", format!("\"{query}\"{place}"))
        }
        _ => return None,
    };
    Some(Look { verb, what })
}

/// A path as seen from the folder the command ran in.
pub(crate) fn below(path: &str, folder: &str) -> String {
    relative_path(path, folder).to_owned()
}
