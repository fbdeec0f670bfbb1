//! Drawing transcripts: for a terminal, as Markdown, and the words both share.

mod diff;

mod layout;

mod markdown;

mod terminal;

mod text;

mod words;

use std::io::{self, Write};

use bindery_core::transcript::TurnRecord;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Density {
    /// What was said; what was done in a line; failures.
    Conversation,
    /// What was done, a row each.
    #[default]
    Activity,
    /// Outputs, diffs, thoughts and setup, too.
    Everything,
}

/// How a terminal wants it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// How much.
    pub density: Density,
    /// Colours may be used; nothing is told by colour alone.
    pub colour: bool,
    /// Characters beyond ASCII may be used.
    pub unicode: bool,
    /// Columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { density: Density::default(), colour: false, unicode: true, width: 100 }
    }
}

/// Draws one turn, or a piece of one, for a terminal.
pub fn terminal(
    out: &mut dyn Write,
    number: Option<u64>,
    turn: &TurnRecord,
    style: Style,
) -> io::Result<()> {
    terminal::Page { out, style, layout: &PlainLayout, cwd: "" }.turn(number, turn)
}

/// The same, laid out by whoever knows the screen, and with paths as seen from the turn's folder.
pub fn terminal_with(
    out: &mut dyn Write,
    number: Option<u64>,
    turn: &TurnRecord,
    style: Style,
    layout: &dyn TextLayout,
) -> io::Result<()> {
    let cwd = turn.cwd.as_deref().unwrap_or_default();
    terminal::Page { out, style, layout, cwd }.turn(number, turn)
}

/// Draws one turn as Markdown.
pub fn markdown(out: &mut dyn Write, number: u64, turn: &TurnRecord) -> io::Result<()> {
    markdown::turn(out, number, turn)
}

pub use self::layout::{PlainLayout, TextLayout};
pub use self::text::{clean, fold_lines};
pub use self::words::{activity, bytes, describe, describe_in, duration, quantity, relative_path};
