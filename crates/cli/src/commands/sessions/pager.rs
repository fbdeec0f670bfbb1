//! The user's pager.

use std::io::{BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A pager that is running.
pub(super) struct Pager {
    child: Child,
    input: BufWriter<ChildStdin>,
}

impl Pager {
    /// Starts `$PAGER`, else `less`; none if neither is there or wanted.
    pub(super) fn start() -> Option<Self> {
        let command = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let mut words = command.split_whitespace();
        let program = words.next().filter(|program| *program != "cat")?;
        let mut command = Command::new(program);
        // Colours as they are, no pager for what fits on a page, and the text stays afterwards.
        command.args(words).env("LESS", "FRX").stdin(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let input = BufWriter::new(child.stdin.take()?);
        Some(Self { child, input })
    }

    /// Where to write.
    pub(super) fn input(&mut self) -> &mut dyn Write {
        &mut self.input
    }

    /// Ends the text and waits until it was read.
    pub(super) fn wait(mut self) {
        // A pager that was left has nothing to tell us.
        let _ = self.input.flush();
        drop(self.input);
        let _ = self.child.wait();
    }
}
