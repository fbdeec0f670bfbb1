//! Theme: the glyphs and the column count that every row is laid out with.

use crate::terminal::Style;

use super::row::{Paint, Row};

/// What rows are laid out with.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Columns of text.
    pub cols: usize,
    /// Columns after which running text goes on below: in a log there are none.
    pub prose: usize,
    /// Glyphs, or what stands for them in ASCII.
    pub glyphs: &'static Glyphs,
}

/// Glyphs, or what stands for them in ASCII.
#[derive(Debug)]
pub struct Glyphs {
    /// It went well.
    pub ok: &'static str,
    /// It did not.
    pub bad: &'static str,
    /// A file changed.
    pub edit: &'static str,
    /// A thought.
    pub thought: &'static str,
    /// Beside what a tool printed, beside quotes, between columns.
    pub bar: &'static str,
    /// Something is left out.
    pub more: &'static str,
    /// Between facts.
    pub dot: &'static str,
    /// Before the number of lines removed.
    pub minus: &'static str,
    /// A step that is done.
    pub done: &'static str,
    /// A step that is being done.
    pub doing: &'static str,
    /// A step to do.
    pub todo: &'static str,
    /// Before an entry of a list.
    pub bullet: &'static str,
    /// Of which rules are made.
    pub rule: &'static str,
    /// Where rules meet columns.
    pub cross: &'static str,
    /// It is tried again.
    pub again: &'static str,
    /// A sub-agent.
    pub agent: &'static str,
    /// From, to.
    pub arrow: &'static str,
    /// Something to be typed, or that was typed.
    pub prompt: &'static str,
    /// A turning wheel.
    pub wheel: &'static [&'static str],
}

static UNICODE: Glyphs = Glyphs {
    ok: "✓",
    bad: "✗",
    edit: "✎",
    thought: "▸",
    bar: "│",
    more: "…",
    dot: "·",
    minus: "−",
    done: "☑",
    doing: "▶",
    todo: "☐",
    bullet: "•",
    rule: "─",
    cross: "┼",
    again: "↻",
    agent: "↳",
    arrow: "→",
    prompt: "›",
    wheel: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
};

static ASCII: Glyphs = Glyphs {
    ok: "*",
    bad: "x",
    edit: "~",
    thought: ">",
    bar: "|",
    more: "...",
    dot: "-",
    minus: "-",
    done: "[x]",
    doing: "[>]",
    todo: "[ ]",
    bullet: "-",
    rule: "-",
    cross: "+",
    again: "@",
    agent: "\\_",
    arrow: "->",
    prompt: ">",
    wheel: &["|", "/", "-", "\\"],
};

/// Longer lines are hard to read, however wide the window.
const MAX_COLS: usize = 100;

impl Theme {
    /// The theme of a style.
    pub fn of(style: &Style) -> Self {
        let glyphs = if style.unicode { &UNICODE } else { &ASCII };
        let cols = style.width.min(MAX_COLS);
        Self { cols, prose: if style.err.terminal { cols } else { usize::MAX }, glyphs }
    }

    /// The same with fewer columns.
    #[must_use]
    pub fn narrower(self, columns: usize) -> Self {
        let less = |from: usize| from.saturating_sub(columns).max(20);
        Self { cols: less(self.cols), prose: less(self.prose), ..self }
    }

    /// Facts in one line, with dots between.
    pub fn facts<S: AsRef<str>>(&self, facts: &[S]) -> String {
        let facts: Vec<&str> = facts.iter().map(AsRef::as_ref).collect();
        facts.join(&format!(" {} ", self.glyphs.dot))
    }

    /// A row cut to the columns there are.
    pub fn fit(&self, row: Row) -> Row {
        row.cut(self.cols, self.glyphs.more)
    }

    /// A row with a note and a duration at its right edge.
    pub fn headline(&self, left: Row, note: &str, duration: &str) -> Row {
        let right = match (note, duration) {
            ("", "") => return self.fit(left),
            ("", duration) => format!("{duration:>8}"),
            (note, duration) => format!("{note:<10}{duration:>8}"),
        };
        let room = self.cols.saturating_sub(right.chars().count() + 2);
        let left = left.cut(room, self.glyphs.more);
        let gap = " ".repeat(room + 2 - left.width().min(room));
        left.text(Paint::PLAIN, &gap).text(Paint::DIM, right.trim_end())
    }

    /// `… 15 lines …`
    pub fn left_out(&self, lines: usize) -> String {
        let more = self.glyphs.more;
        format!("{more} {lines} {} {more}", if lines == 1 { "line" } else { "lines" })
    }
}
