//! The scripted model as a process of its own: this program, started again with another word.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use bindery_testkit::model::{Model, Reply, Script, Step};

use crate::arguments;

/// An answer of some forty deltas, sent at once.
const ANSWER: &str = "There is a house at the end of the road, and in it a room with one window. \
    The window looks over the fields to the river, where a boat lies on the bank, and nobody has \
    rowed it since the spring. In the evening the light falls through the poplars and the water \
    takes the colour of tea; then it is time to close the book and put the kettle on.";

/// Characters a delta.
const CHUNK: usize = 8;

/// A running model; dropping it ends it.
pub(super) struct ModelProcess {
    child: Child,
    base_url: String,
}

impl ModelProcess {
    /// Starts it and waits until it listens.
    pub(super) fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg(arguments::SERVE_MODEL).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the scripted model")?;
        let stdout = child.stdout.take().context("the scripted model has no stdout")?;
        let mut base_url = String::new();
        BufReader::new(stdout).read_line(&mut base_url)?;
        Ok(Self { child, base_url: base_url.trim().to_owned() })
    }

    /// What a provider's `base_url` must be.
    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }
}

impl Drop for ModelProcess {
    fn drop(&mut self) {
        // The end of its stdin is its sign to go.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Is that process: prints its address and serves until stdin ends.
pub fn serve() -> anyhow::Result<()> {
    let reply = Reply::new([Step::chunked(ANSWER, CHUNK)]).always();
    let model = Model::start(Script::new([reply]));
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", model.base_url())?;
    stdout.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
