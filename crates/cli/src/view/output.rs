//! Output: what is to be written where, and the page that decides it.

use std::io::{self, Write};

use crate::terminal::{Sink, Style};

use super::row::Row;

/// The two streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The answer.
    Out,
    /// Everything else.
    Err,
}

/// Texts in the order in which they are to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "output does nothing until it is written"]
pub struct Output {
    /// Where to write what.
    pub pieces: Vec<(Stream, String)>,
}

impl Output {
    /// Writes and flushes everything.
    pub fn write_to(&self, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        for (stream, text) in &self.pieces {
            let sink: &mut dyn Write = if *stream == Stream::Out { out } else { err };
            sink.write_all(text.as_bytes())?;
            // Both may be the same screen: each piece must be out before the next.
            sink.flush()?;
        }
        Ok(())
    }

    /// Writes everything to the streams of this process.
    pub fn print(&self) -> io::Result<()> {
        self.write_to(&mut io::stdout().lock(), &mut io::stderr().lock())
    }

    /// What goes to one stream.
    pub fn text(&self, stream: Stream) -> String {
        let pieces = self.pieces.iter().filter(|(to, _)| *to == stream);
        pieces.map(|(_, text)| text.as_str()).collect()
    }

    fn add(&mut self, stream: Stream, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some((last, end)) if *last == stream => end.push_str(text),
            _ => self.pieces.push((stream, text.to_owned())),
        }
    }
}

/// What rows belong to; a blank row stands between the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What runs where.
    Header,
    /// What the agent does.
    Activity,
    /// What it says.
    Answer,
    /// How it ended.
    Closing,
}

/// What has been printed, and the rows below it that may be taken away again.
#[derive(Debug)]
pub(crate) struct Page {
    style: Style,
    last: [Option<Kind>; 2],
    live: Vec<String>,
    /// The last answer has ended; another is set apart from it.
    broken: bool,
    output: Output,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, last: [None; 2], live: Vec::new(), broken: false, output: Output::default() }
    }

    /// Prints rows for good.
    pub(crate) fn print(&mut self, kind: Kind, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        let stream = stream_of(kind);
        let colour = self.sink(stream).colour;
        self.erase();
        let mut text = String::from(if self.apart(kind) { "\n" } else { "" });
        for row in rows {
            text.push_str(&row.painted(colour));
            text.push('\n');
        }
        self.output.add(stream, &text);
        self.printed(kind);
    }

    /// Begins rows of this kind that somebody else will write.
    pub(crate) fn space(&mut self, kind: Kind) {
        self.erase();
        if self.apart(kind) {
            self.output.add(stream_of(kind), "\n");
        }
        self.printed(kind);
    }

    /// Passes a whole answer through as it is.
    pub(crate) fn pass(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.erase();
        let before = if self.apart(Kind::Answer) { "\n" } else { "" };
        let after = if text.ends_with('\n') { "" } else { "\n" };
        self.output.add(Stream::Out, &format!("{before}{text}{after}"));
        self.printed(Kind::Answer);
    }

    /// The next rows of the answer are another message.
    pub(crate) fn break_answer(&mut self) {
        self.broken = true;
    }

    /// A blank row belongs before rows of this kind.
    pub(crate) fn apart(&self, kind: Kind) -> bool {
        let last = self.last[self.screen(stream_of(kind))];
        last.is_some_and(|last| last != kind || (kind == Kind::Answer && self.broken))
    }

    /// Rows can be drawn and taken away again.
    pub(crate) fn moving(&self) -> bool {
        self.style.out.moving || self.style.err.moving
    }

    /// Replaces the rows at the bottom.
    pub(crate) fn draw(&mut self, rows: &[Row]) {
        let stream = self.live_stream();
        let colour = self.sink(stream).colour;
        let rows: Vec<String> = rows.iter().map(|row| row.painted(colour)).collect();
        if !self.moving() || rows == self.live {
            return;
        }
        self.erase();
        if !rows.is_empty() {
            // Without wrapping every row is one line of the screen, whatever the terminal thinks
            // of the width of its characters; so the rows can be counted when they are taken away.
            self.output.add(stream, &format!("\x1b[?7l{}\x1b[?7h", rows.join("\n")));
        }
        self.live = rows;
    }

    /// Takes the rows at the bottom away.
    pub(crate) fn erase(&mut self) {
        let text = match self.live.len() {
            0 => return,
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        };
        self.live.clear();
        self.output.add(self.live_stream(), &text);
    }

    /// What is to be written since the last time.
    pub(crate) fn take(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// The stream of the answer if it is a screen: what moves is mostly the answer.
    fn live_stream(&self) -> Stream {
        if self.style.out.moving { Stream::Out } else { Stream::Err }
    }

    fn sink(&self, stream: Stream) -> Sink {
        if stream == Stream::Out { self.style.out } else { self.style.err }
    }

    /// Two terminals are one screen; otherwise each stream has its own spacing.
    fn screen(&self, stream: Stream) -> usize {
        let one = self.style.out.terminal && self.style.err.terminal;
        usize::from(!one && stream == Stream::Err)
    }

    fn printed(&mut self, kind: Kind) {
        self.last[self.screen(stream_of(kind))] = Some(kind);
        self.broken &= kind != Kind::Answer;
    }
}

fn stream_of(kind: Kind) -> Stream {
    if kind == Kind::Answer { Stream::Out } else { Stream::Err }
}
