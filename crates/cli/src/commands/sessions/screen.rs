//! A session on a screen: broken at words, Markdown drawn as in a live turn, times of this place.

use bindery::sessions::clock;
use bindery::sessions::render::{TextLayout, bytes, quantity};
use bindery::sessions::summary::Summary;

use crate::terminal::Style;
use crate::view::clean::visible;
use crate::view::markdown::Markdown;
use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;
use crate::view::{homely, wrap_text, wrap_verbatim};

/// How times are written.
pub(super) type WriteTime = fn(i64) -> String;

/// The layout of the terminal that this process writes to.
pub(super) struct ScreenLayout {
    theme: Theme,
    colour: bool,
    write_time: WriteTime,
}

impl ScreenLayout {
    pub(super) fn new(style: &Style, write_time: WriteTime) -> Self {
        Self { theme: Theme::of(style), colour: style.out.colour, write_time }
    }

    /// Columns that are written to.
    pub(super) fn columns(&self) -> usize {
        self.theme.cols
    }

    /// What a session is: its title, then where, with what, when and how much.
    pub(super) fn heading(&self, summary: &Summary) -> Vec<String> {
        let none = Row::new();
        let title = summary.title.as_deref().unwrap_or("(no words)");
        let mut rows =
            wrap_text(&visible(title.trim()), Paint::BOLD, &none, &none, self.theme.cols);
        for facts in [self.place(summary), self.span(summary)] {
            let text = self.theme.facts(&facts);
            rows.extend(wrap_text(&visible(&text), Paint::DIM, &none, &none, self.theme.cols));
        }
        rows.push(none);
        rows.iter().map(|row| row.painted(self.colour)).collect()
    }

    fn place(&self, summary: &Summary) -> Vec<String> {
        let branch = summary.branch.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let folder = summary.cwd.as_deref().map(|cwd| format!("{}{branch}", homely(cwd)));
        let version = summary.version.as_ref().map(|version| format!("codex {version}"));
        [folder, summary.model.clone(), version].into_iter().flatten().collect()
    }

    fn span(&self, summary: &Summary) -> Vec<String> {
        let time = |time: Option<i64>| time.map(self.write_time);
        let arrow = self.theme.glyphs.arrow;
        let times = match (time(summary.created_ms), time(summary.updated_ms)) {
            (Some(from), Some(to)) if from != to => Some(format!("{from} {arrow} {to}")),
            (from, to) => from.or(to),
        };
        let tokens = summary.tokens.map(|tokens| format!("{} tokens", quantity(tokens)));
        [times, tokens, Some(bytes(summary.size))].into_iter().flatten().collect()
    }
}

impl TextLayout for ScreenLayout {
    fn rows(&self, text: &str, columns: usize) -> Vec<String> {
        let text = text.replace('\t', "    ");
        text.split('\n').flat_map(|line| wrap_verbatim(line, columns)).collect()
    }

    fn markdown(&self, text: &str) -> Vec<String> {
        let mut markdown = Markdown::new(self.theme, self.colour);
        let mut rows = markdown.push(text);
        rows.extend(markdown.end());
        rows.iter().map(|row| row.painted(self.colour)).collect()
    }

    fn time(&self, millis: i64) -> String {
        (self.write_time)(millis)
    }
}

/// The time in the zone of this machine.
pub(super) fn write_local_time(millis: i64) -> String {
    clock::local_time(millis)
}
