//! Thoughts: reasoning as it comes, lightly, and folded when it is done.

use bindery::core::ids::PartId;

use super::row::{Paint, Row};
use super::theme::Theme;
use super::wrap::wrap_text;

/// The run of reasoning that is open.
#[derive(Debug, Default)]
pub(crate) struct Thought {
    id: Option<PartId>,
    text: String,
}

/// Bytes of a thought that are kept.
const TEXT: usize = 64 * 1024;

/// Bytes of it that are enough for the rows that are drawn while it grows.
const LIVE: usize = 1024;

/// Rows of a thought that stay.
const ROWS: usize = 8;

impl Thought {
    /// More of a thought; a thought with another name ends the one before, whose rows are given.
    pub(crate) fn push(&mut self, theme: Theme, id: &PartId, delta: &str) -> Vec<Row> {
        let done = if self.id.as_ref() == Some(id) { Vec::new() } else { self.end(theme) };
        self.id = Some(id.clone());
        if self.text.len() < TEXT {
            self.text.push_str(delta);
        }
        done
    }

    /// The rows of the thought that is over.
    pub(crate) fn end(&mut self, theme: Theme) -> Vec<Row> {
        let mut rows = rows(theme, &self.text);
        *self = Self::default();
        if rows.len() > ROWS + 1 {
            let hidden = theme.left_out(rows.len() - ROWS);
            rows.truncate(ROWS);
            rows.push(Row::of(Paint::DIM, &format!("  {hidden}")));
        }
        rows
    }

    /// The last rows of the thought so far.
    pub(crate) fn live(&self, theme: Theme, count: usize) -> Vec<Row> {
        let from = self.text.len().saturating_sub(LIVE);
        let rows = rows(theme, &self.text[self.text.ceil_char_boundary(from)..]);
        let from = rows.len().saturating_sub(count);
        rows.into_iter().skip(from).collect()
    }
}

/// A thought's heading is bold in Markdown; here everything is as light as the rest.
fn rows(theme: Theme, text: &str) -> Vec<Row> {
    let lines = text.lines().map(|line| line.replace("**", ""));
    let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    let lead = Row::of(Paint::DIM, theme.glyphs.thought).text(Paint::DIM, " ");
    let hang = Row::of(Paint::DIM, "  ");
    wrap_text(&lines.join("\n"), Paint::DIM, &lead, &hang, theme.cols)
}
