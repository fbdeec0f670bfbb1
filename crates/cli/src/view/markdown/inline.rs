//! Emphasis, code and links inside a block of Markdown.

use crate::view::row::{Colour, Paint};
use crate::view::wrap::Ink;

/// A block's text, painted.
pub(crate) struct Inked {
    /// The characters.
    pub(crate) ink: Ink,
    /// How many of them stay as they are, whatever text follows.
    pub(crate) stable: usize,
}

/// How a block's text is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// The paint of ordinary text.
    pub(crate) base: Paint,
    /// Marks such as `**` are left out because paint says the same; without colour they stay.
    pub(crate) marks_hidden: bool,
    /// No more text follows.
    pub(crate) ended: bool,
}

/// A mark whose partner is not within so many characters is no mark.
///
/// Without a limit one lone `*` would keep a whole answer from being settled.
const REACH: usize = 2000;

/// Paints the text of a block.
///
/// The first possible partner closes a mark, also inside code: a rule that looks further would
/// give another result once more text has come.
pub(crate) fn inline(text: &str, reading: Reading) -> Inked {
    let chars: Vec<char> = text.chars().collect();
    let mut scan = Scan { chars: &chars, reading, ink: Ink::new(), stable: usize::MAX };
    scan.read(0, chars.len(), reading.base, !reading.ended);
    let stable = scan.stable.min(scan.ink.len());
    Inked { ink: scan.ink, stable }
}

struct Scan<'a> {
    chars: &'a [char],
    reading: Reading,
    ink: Ink,
    stable: usize,
}

/// What a mark turns out to be.
enum Found {
    /// Its partner stands at this place.
    At(usize),
    /// It has none.
    Nowhere,
    /// It has none yet.
    NotYet,
}

impl Scan<'_> {
    /// Reads a stretch; `open` says that more text may follow its end.
    fn read(&mut self, from: usize, to: usize, paint: Paint, open: bool) {
        let mut at = from;
        while at < to {
            let next = match self.chars[at] {
                '`' => self.code(at, to, paint, open),
                '*' | '_' => self.emphasis(at, to, paint, open),
                '~' => self.strike(at, to, paint, open),
                '[' => self.link(at, at, to, paint, open),
                '!' if self.chars.get(at + 1) == Some(&'[') && at + 1 < to => {
                    self.link(at, at + 1, to, paint, open)
                }
                '<' => self.address(at, to, paint, open),
                '\\' => self.escape(at, to, paint, open),
                _ => None,
            };
            at = next.unwrap_or_else(|| self.literal(at, at + 1, paint));
        }
    }

    fn literal(&mut self, from: usize, to: usize, paint: Paint) -> usize {
        self.ink.extend(self.chars[from..to].iter().map(|ch| (*ch, paint)));
        to
    }

    fn mark(&mut self, from: usize, to: usize, paint: Paint) {
        if !self.reading.marks_hidden {
            self.literal(from, to, paint);
        }
    }

    fn unsettled(&mut self) {
        self.stable = self.stable.min(self.ink.len());
    }

    fn run(&self, at: usize, to: usize) -> usize {
        self.chars[at..to].iter().take_while(|ch| **ch == self.chars[at]).count()
    }

    /// The first place at which `fits`, within reach of `from`.
    fn find(&self, from: usize, to: usize, open: bool, fits: impl Fn(usize) -> bool) -> Found {
        let end = to.min(from + REACH);
        match (from..end).find(|at| fits(*at)) {
            Some(at) => Found::At(at),
            None if open && end == to => Found::NotYet,
            None => Found::Nowhere,
        }
    }

    /// Marks of one length around a stretch: where the stretch and the closing marks end.
    fn partner(&mut self, found: &Found, length: usize, to: usize, open: bool) -> Option<usize> {
        match found {
            // At the very end the run of marks may still grow and so become another mark.
            Found::At(at) => {
                if open && at + length == to {
                    self.unsettled();
                }
                Some(*at)
            }
            Found::NotYet => {
                self.unsettled();
                None
            }
            Found::Nowhere => None,
        }
    }

    fn code(&mut self, at: usize, to: usize, paint: Paint, open: bool) -> Option<usize> {
        let length = self.run(at, to);
        let starts = |place: usize| self.chars[place] == '`' && self.chars[place - 1] != '`';
        let fits = |place: usize| starts(place) && self.run(place, to) == length;
        let found = self.find(at + length, to, open, fits);
        let Some(end) = self.partner(&found, length, to, open) else {
            return Some(self.literal(at, at + length, paint));
        };
        let code = Paint { colour: Some(Colour::Cyan), ..paint };
        self.mark(at, at + length, code);
        self.literal(at + length, end, code);
        self.mark(end, end + length, code);
        Some(end + length)
    }

    fn emphasis(&mut self, at: usize, to: usize, paint: Paint, open: bool) -> Option<usize> {
        let (mark, length) = (self.chars[at], self.run(at, to));
        let inner = at + length;
        let letter = |place: usize| self.chars.get(place).is_some_and(|ch| ch.is_alphanumeric());
        let inside_word = mark == '_' && at > 0 && letter(at - 1);
        if inner == to && open {
            self.unsettled();
        }
        if length > 3 || inside_word || inner == to || self.chars[inner].is_whitespace() {
            return Some(self.literal(at, inner, paint));
        }
        let fits = |place: usize| {
            let starts = self.chars[place] == mark && self.chars[place - 1] != mark;
            let run = if starts { self.run(place, to) } else { 0 };
            let closes = run == length || (run == 3 && length < 3);
            let word_goes_on = mark == '_' && place + run < to && letter(place + run);
            closes && place > inner && !self.chars[place - 1].is_whitespace() && !word_goes_on
        };
        let found = match self.find(inner, to, open, fits) {
            Found::At(place) => Found::At(place + self.run(place, to) - length),
            other => other,
        };
        let Some(end) = self.partner(&found, length, to, open) else {
            return Some(self.literal(at, inner, paint));
        };
        let painted =
            Paint { italic: paint.italic || length != 2, bold: paint.bold || length != 1, ..paint };
        self.around(at, inner, end, painted)
    }

    fn strike(&mut self, at: usize, to: usize, paint: Paint, open: bool) -> Option<usize> {
        let length = self.run(at, to);
        if length != 2 {
            if open && at + length == to {
                self.unsettled();
            }
            return Some(self.literal(at, at + length, paint));
        }
        let fits = |place: usize| {
            self.chars[place] == '~' && self.chars[place - 1] != '~' && self.run(place, to) == 2
        };
        let found = self.find(at + 2, to, open, fits);
        let Some(end) = self.partner(&found, 2, to, open) else {
            return Some(self.literal(at, at + 2, paint));
        };
        self.around(at, at + 2, end, Paint { strike: true, ..paint })
    }

    fn around(&mut self, at: usize, inner: usize, end: usize, paint: Paint) -> Option<usize> {
        let length = inner - at;
        self.mark(at, inner, paint);
        self.read(inner, end, paint, false);
        self.mark(end, end + length, paint);
        Some(end + length)
    }

    /// `[text](address)`, perhaps with a `!` at `at`; `bracket` is where the text begins.
    fn link(
        &mut self,
        at: usize,
        bracket: usize,
        to: usize,
        paint: Paint,
        open: bool,
    ) -> Option<usize> {
        let found = self.balanced(bracket, to, ('[', ']'), open);
        let close = self.partner(&found, 1, to, open)?;
        if close + 1 >= to || self.chars[close + 1] != '(' {
            return None;
        }
        let found = self.balanced(close + 1, to, ('(', ')'), open);
        let end = match found {
            Found::At(end) => end,
            Found::NotYet => {
                self.unsettled();
                return None;
            }
            Found::Nowhere => return None,
        };
        debug_assert!(at <= bracket);
        let before = self.ink.len();
        self.read(bracket + 1, close, Paint { underline: true, ..paint }, false);
        let shown = self.ink[before..].iter().map(|(ch, _)| *ch);
        if !shown.eq(self.chars[close + 2..end].iter().copied()) {
            let gap = if self.ink.len() > before { " " } else { "" };
            self.ink.extend(gap.chars().map(|ch| (ch, paint)));
            self.literal(close + 1, end + 1, Paint { dim: true, ..paint });
        }
        Some(end + 1)
    }

    fn balanced(&self, at: usize, to: usize, (left, right): (char, char), open: bool) -> Found {
        let mut depth = 0usize;
        for (place, ch) in self.chars.iter().enumerate().take(to.min(at + REACH)).skip(at) {
            depth = match *ch {
                ch if ch == left => depth + 1,
                ch if ch == right => depth - 1,
                _ => depth,
            };
            if depth == 0 {
                return Found::At(place);
            }
        }
        if open && to < at + REACH { Found::NotYet } else { Found::Nowhere }
    }

    /// `<https://…>`
    fn address(&mut self, at: usize, to: usize, paint: Paint, open: bool) -> Option<usize> {
        let text = &self.chars[at + 1..to.min(at + REACH)];
        let schemes = ["http://", "https://", "mailto:"];
        let begins = schemes.iter().any(|s| s.chars().zip(text).all(|(a, b)| a == *b));
        if !begins {
            return None;
        }
        match text.iter().position(|ch| *ch == '>' || ch.is_whitespace()) {
            Some(end) if text[end] == '>' && text[..end].contains(&':') => {
                self.literal(at + 1, at + 1 + end, Paint { underline: true, ..paint });
                Some(at + end + 2)
            }
            None if open => {
                self.unsettled();
                None
            }
            _ => None,
        }
    }

    fn escape(&mut self, at: usize, to: usize, paint: Paint, open: bool) -> Option<usize> {
        if at + 1 == to && open {
            self.unsettled();
        }
        let next = self.chars[at + 1..to].first()?;
        next.is_ascii_punctuation().then(|| self.literal(at + 1, at + 2, paint))
    }
}
