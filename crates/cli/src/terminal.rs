//! What the terminal can show: its width, its glyphs, colour and movement.

pub mod quiet;

use std::io::IsTerminal;

/// How text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the screen.
    pub width: usize,
    /// Glyphs outside ASCII are shown.
    pub unicode: bool,
    /// Where the answer goes.
    pub out: Sink,
    /// Where everything else goes.
    pub err: Sink,
}

/// What one of the two output streams can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sink {
    /// A person reads it on a screen.
    pub terminal: bool,
    /// Colour and weight are shown.
    pub colour: bool,
    /// The cursor may move, so lines can be drawn and taken away again.
    pub moving: bool,
}

impl Sink {
    /// A pipe or a file: nothing but text.
    pub const PIPE: Self = Self { terminal: false, colour: false, moving: false };
}

impl Style {
    /// The style of this process: its environment and its standard streams.
    pub fn here() -> Self {
        let terminals = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        // Without a screen the window does not matter: a log is the same wherever it is written.
        let width = (terminals.0 || terminals.1).then(columns).flatten();
        Self::detect(|name| std::env::var(name).ok(), terminals, width)
    }

    /// The same after the window may have changed.
    #[must_use]
    pub fn refreshed(self) -> Self {
        let width = columns().filter(|width| *width > 0).unwrap_or(self.width);
        Self { width: width.max(MIN_WIDTH), ..self }
    }

    /// The style that follows from an environment.
    ///
    /// `terminals` says whether stdout and stderr are terminals. `NO_COLOR` beats
    /// `CLICOLOR_FORCE`, and that beats `TERM=dumb` and `CLICOLOR=0`.
    pub fn detect(
        env: impl Fn(&str) -> Option<String>,
        (out, err): (bool, bool),
        width: Option<usize>,
    ) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").map_or(!cfg!(windows), |term| term == "dumb");
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let refused = set("NO_COLOR").is_some();
        let unwanted = dumb || set("CLICOLOR").is_some_and(|value| value == "0");
        let sink = |terminal: bool| Sink {
            terminal,
            colour: !refused && (forced || (terminal && !unwanted)),
            moving: terminal && !dumb,
        };
        let columns = || set("COLUMNS").and_then(|columns| columns.parse().ok());
        let width = width.filter(|width| *width > 0).or_else(columns).unwrap_or(80);
        Self { width: width.max(MIN_WIDTH), unicode: unicode(&set), out: sink(out), err: sink(err) }
    }

    /// The same for text that is read on the same screen as it is shown, for tests and examples.
    pub fn screen(width: usize, unicode: bool, colour: bool) -> Self {
        let sink = Sink { terminal: true, colour, moving: true };
        Self { width, unicode, out: sink, err: sink }
    }
}

fn columns() -> Option<usize> {
    crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns))
}

/// Below this nothing can be laid out; a narrower terminal wraps by itself.
const MIN_WIDTH: usize = 40;

/// The first locale variable that is set decides, as in the C library.
fn unicode(set: &impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name)).map_or(
        cfg!(windows),
        |locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(env: Env<'_>, terminals: (bool, bool)) -> Style {
        let env = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Style::detect(env, terminals, Some(100))
    }

    type Env<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn colour_and_movement_follow_the_environment() {
        let xterm = ("TERM", "xterm");
        #[rustfmt::skip]
        let table: &[(Env<'_>, bool, bool, bool)] = &[
            // environment                               terminal  colour  moving
            (&[xterm],                                      true,  true,  true),
            (&[xterm],                                      false, false, false),
            (&[xterm, ("NO_COLOR", "1")],                   true,  false, true),
            (&[xterm, ("NO_COLOR", "")],                    true,  true,  true),
            (&[xterm, ("CLICOLOR", "0")],                   true,  false, true),
            (&[("TERM", "dumb")],                           true,  false, false),
            (&[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")],  true,  true,  false),
            (&[("CLICOLOR_FORCE", "1")],                    false, true,  false),
            (&[("CLICOLOR_FORCE", "0")],                    false, false, false),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true,  false, false),
        ];
        for (env, terminal, colour, moving) in table {
            let want = Sink { terminal: *terminal, colour: *colour, moving: *moving };
            assert_eq!(detect(env, (false, *terminal)).err, want, "{env:?}");
        }
    }

    #[test]
    fn the_first_locale_variable_decides_on_glyphs() {
        assert!(detect(&[("LANG", "de_DE.UTF-8")], (true, true)).unicode);
        assert!(detect(&[("LC_ALL", "C.utf8")], (true, true)).unicode);
        assert!(!detect(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], (true, true)).unicode);
        assert!(!detect(&[], (true, true)).unicode);
    }

    #[test]
    fn width_comes_from_the_terminal_then_from_columns() {
        let env = |name: &str| (name == "COLUMNS").then(|| "72".to_owned());
        assert_eq!(Style::detect(env, (true, true), Some(120)).width, 120);
        assert_eq!(Style::detect(env, (true, true), None).width, 72);
        assert_eq!(Style::detect(|_| None, (true, true), Some(0)).width, 80);
        assert_eq!(Style::detect(|_| None, (true, true), Some(3)).width, 40);
    }
}
