//! The scripted model as a process of its own: this program, started again with another word.

use std::io::{BufRead, BufReader, Write};
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

/// What to say for an answer that stops after its first words, until the gate is opened.
pub(in crate::bench) const WAIT: &str = "Wait in the middle.";

const GATE: &str = "middle";

/// What to say for an answer in [`PIECES`] deltas, each of which begins with [`PIECE`].
pub(in crate::bench) const LENGTH: &str = "Answer at length.";

/// Deltas of the long answer.
pub(in crate::bench) const PIECES: usize = 100_000;

/// What each of them begins with.
pub(in crate::bench) const PIECE: &str = "piece#";

/// A running model; dropping it ends it.
pub(in crate::bench) struct ModelProcess {
    child: Child,
    base_url: String,
}

impl ModelProcess {
    /// Starts it and waits until it listens.
    pub(in crate::bench) fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg(arguments::SERVE_MODEL).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the scripted model")?;
        let stdout = child.stdout.take().context("the scripted model has no stdout")?;
        let mut base_url = String::new();
        BufReader::new(stdout).read_line(&mut base_url)?;
        Ok(Self { child, base_url: base_url.trim().to_owned() })
    }

    /// Lets so many answers to [`WAIT`] go on.
    pub(in crate::bench) fn open(&mut self, count: usize) -> anyhow::Result<()> {
        let stdin = self.child.stdin.as_mut().context("the scripted model has no stdin")?;
        Ok(writeln!(stdin, "{count}")?)
    }

    /// What a provider's `base_url` must be.
    pub(in crate::bench) fn base_url(&self) -> &str {
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

/// Is that process: prints its address and serves until stdin ends; a number there opens the gate
/// for as many answers.
pub fn serve() -> anyhow::Result<()> {
    let halves = [Step::chunked(ANSWER, CHUNK), Step::gate(GATE), Step::chunked(ANSWER, CHUNK)];
    let waiting = Reply::new(halves).when_user(WAIT).always();
    let pieces: Vec<String> = (0..PIECES).map(|piece| format!("{PIECE}{piece:06} ")).collect();
    let long = Step::chunked(&pieces.concat(), pieces[0].len());
    let long = Reply::new([long]).when_user(LENGTH).always();
    let plain = Reply::new([Step::chunked(ANSWER, CHUNK)]).always();
    let model = Model::start(Script::new([waiting, long, plain]));
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", model.base_url())?;
    stdout.flush()?;
    for line in std::io::stdin().lock().lines() {
        (0..line?.trim().parse::<usize>()?).for_each(|_| model.open(GATE));
    }
    Ok(())
}
