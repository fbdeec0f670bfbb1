//! `codex exec --json` → the normalised stream: bytes in, cut anywhere, and events out.
//!
//! The three vocabularies are told apart line by line. Whatever comes, the stream ends with one
//! `result`, every `tool_use` has its `tool_result`, and nothing that is no JSON object gets out.

mod fold;

mod old;

mod outcome;

mod repair;

mod today;

mod tools;

mod usage;

use self::fold::Fold;
pub use self::outcome::{Cause, Exit};
pub use self::usage::Baseline;
use crate::lines::{LineRef, LineSplitter};
use crate::ndjson::{self, Dialect, Event};

/// The longest line that is read whole; a command's whole output is one line.
pub const LINE_LIMIT: usize = 16 * 1024 * 1024;

/// What is known of a run before its first line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The words to use.
    pub dialect: Dialect,
    /// The model, which Codex does not say since 0.44.
    pub model: Option<String>,
    /// Put before the names of items, which Codex counts from 0 in every process.
    pub run: Option<String>,
    /// The thread's tokens before this run.
    pub baseline: Baseline,
    /// The longest line read whole, in bytes.
    pub line_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dialect: Dialect::Full,
            model: None,
            run: None,
            baseline: Baseline::New,
            line_limit: LINE_LIMIT,
        }
    }
}

/// Takes what Codex prints and gives the normalised stream.
#[derive(Debug)]
pub struct ExecMapper {
    splitter: LineSplitter,
    fold: Fold,
    dialect: Dialect,
    line_limit: usize,
    ended: bool,
}

impl ExecMapper {
    /// A mapper for one stream.
    pub fn new(options: Options) -> Self {
        Self {
            splitter: LineSplitter::new(options.line_limit),
            dialect: options.dialect,
            line_limit: options.line_limit,
            fold: Fold::new(options),
            ended: false,
        }
    }

    /// Feeds bytes; gives the lines they complete, each with its line feed.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.push_into(bytes, &mut out);
        out
    }

    /// The same into a buffer that the caller uses again.
    pub fn push_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let dialect = self.dialect;
        self.feed(bytes, &mut |event| ndjson::write(event, dialect, out));
    }

    /// Ends the stream: the last line without a line feed, whatever is open, and the `result`.
    pub fn flush(&mut self, exit: &Exit) -> Vec<u8> {
        let mut out = Vec::new();
        self.flush_into(exit, &mut out);
        out
    }

    /// The same into a buffer that the caller uses again.
    pub fn flush_into(&mut self, exit: &Exit, out: &mut Vec<u8>) {
        let dialect = self.dialect;
        self.end(exit, &mut |event| ndjson::write(event, dialect, out));
    }

    /// Feeds bytes; the events go to `sink`.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&Event<'_>)) {
        if self.ended {
            return;
        }
        while let Some(line) = self.splitter.read(&mut bytes) {
            take(&mut self.fold, line, self.line_limit, sink);
        }
    }

    /// Ends the stream; the events go to `sink`. Later calls do nothing.
    pub fn end(&mut self, exit: &Exit, sink: &mut dyn FnMut(&Event<'_>)) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if let Some(line) = self.splitter.read_last() {
            take(&mut self.fold, line, self.line_limit, sink);
        }
        self.fold.end(exit, sink);
    }
}

fn take(fold: &mut Fold, line: LineRef<'_>, limit: usize, sink: &mut dyn FnMut(&Event<'_>)) {
    match line {
        LineRef::Whole(line) => fold.line(line, sink),
        LineRef::TooLong { head, bytes } => {
            let why = format!("the line is longer than {limit} bytes");
            fold.strange(String::new(), why, &String::from_utf8_lossy(head), bytes, sink);
        }
    }
}

#[cfg(test)]
mod tests;
