//! Row: one line of the view, made of painted pieces of safe text.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::clean;

/// Colour and weight of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// Heavier.
    pub bold: bool,
    /// Lighter.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// With a line below.
    pub underline: bool,
    /// With a line through.
    pub strike: bool,
    /// The colour, if not the terminal's own.
    pub colour: Option<Colour>,
}

/// The terminal's colours that we use; the user's theme says how they look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Wrong, removed.
    Red,
    /// Right, added.
    Green,
    /// Worth a look.
    Yellow,
    /// Code, places.
    Cyan,
}

impl Paint {
    /// The terminal's own.
    pub const PLAIN: Self = Self {
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
        colour: None,
    };
    /// Lighter.
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };
    /// Heavier.
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    /// Right, added.
    pub const GREEN: Self = Self { colour: Some(Colour::Green), ..Self::PLAIN };
    /// Wrong, removed.
    pub const RED: Self = Self { colour: Some(Colour::Red), ..Self::PLAIN };
    /// Worth a look.
    pub const YELLOW: Self = Self { colour: Some(Colour::Yellow), ..Self::PLAIN };
    /// Code, places.
    pub const CYAN: Self = Self { colour: Some(Colour::Cyan), ..Self::PLAIN };

    fn codes(self) -> String {
        let flags = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.strike, "9"),
        ];
        let colour = self.colour.map(|colour| match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Cyan => "36",
        });
        let set = flags.into_iter().filter(|(on, _)| *on).map(|(_, code)| code);
        set.chain(colour).collect::<Vec<_>>().join(";")
    }
}

/// One line of the view.
///
/// Text enters only through [`Row::text`], which makes it safe; escape sequences are added only by
/// [`Row::painted`]. So nothing that a model or a tool wrote can reach the terminal as a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pieces: Vec<(Paint, String)>,
}

impl Row {
    /// A row with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row of one piece.
    pub fn of(paint: Paint, text: &str) -> Self {
        Self::new().text(paint, text)
    }

    /// The row with more text at its end; tabs become four spaces, line ends one.
    #[must_use]
    pub fn text(mut self, paint: Paint, text: &str) -> Self {
        self.add(paint, text);
        self
    }

    /// The row with another at its end.
    #[must_use]
    pub fn join(mut self, row: &Row) -> Self {
        for (paint, text) in &row.pieces {
            self.add(*paint, text);
        }
        self
    }

    /// The row behind `text`.
    #[must_use]
    pub fn behind(&self, paint: Paint, text: &str) -> Self {
        Self::of(paint, text).join(self)
    }

    /// The row in another paint altogether.
    #[must_use]
    pub fn repainted(&self, paint: Paint) -> Self {
        Self::of(paint, &self.plain())
    }

    /// Columns it takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// Nothing can be seen in it.
    pub fn is_blank(&self) -> bool {
        self.pieces.iter().all(|(_, text)| text.trim().is_empty())
    }

    /// The row cut to `columns`, with `mark` in place of what is left out.
    #[must_use]
    pub fn cut(self, columns: usize, mark: &str) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut room = columns.saturating_sub(mark.width());
        let mut cut = Self::new();
        for (paint, text) in &self.pieces {
            let kept = fitting(text, room);
            cut.add(*paint, kept);
            if kept.len() < text.len() {
                break;
            }
            room -= kept.width().min(room);
        }
        cut.text(Paint::DIM, mark)
    }

    /// Its text alone.
    pub fn plain(&self) -> String {
        let text: String = self.pieces.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// Its text, with the sequences for colour and weight if `colour`.
    pub fn painted(&self, colour: bool) -> String {
        if !colour {
            return self.plain();
        }
        let mut line = String::new();
        for (paint, text) in &self.pieces {
            match paint.codes() {
                codes if codes.is_empty() => line.push_str(text),
                codes => line.push_str(&format!("\x1b[{codes}m{text}\x1b[0m")),
            }
        }
        line.trim_end().to_owned()
    }

    fn add(&mut self, paint: Paint, text: &str) {
        let text = clean::visible(text).replace('\t', "    ").replace('\n', " ");
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some((last, end)) if *last == paint => end.push_str(&text),
            _ => self.pieces.push((paint, text)),
        }
    }
}

/// The longest beginning of `text` that fits; marks of no width stay with their letter.
pub(crate) fn fitting(text: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, ch)| {
        width += ch.width().unwrap_or(0);
        width > columns
    });
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_at_columns_not_at_bytes() {
        let row = Row::of(Paint::PLAIN, "日本語").text(Paint::RED, "abc");
        assert_eq!(row.width(), 9);
        assert_eq!(row.clone().cut(9, "…").plain(), "日本語abc");
        assert_eq!(row.clone().cut(8, "…").plain(), "日本語a…");
        assert_eq!(row.cut(6, "…").plain(), "日本…");
    }

    #[test]
    fn sequences_come_only_from_paint() {
        let row = Row::of(Paint::RED, "\x1b[2Jx").text(Paint::PLAIN, "\ty");
        assert_eq!(row.painted(true), "\x1b[31m\\x1b[2Jx\x1b[0m    y");
        assert_eq!(row.painted(false), "\\x1b[2Jx    y");
    }
}
