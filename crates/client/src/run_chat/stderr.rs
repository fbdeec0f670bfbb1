//! stderr of an agent as events: a line each, noise left out, no more than a bound.

use bindery_core::lines::{LineRef, LineSplitter};
use bindery_core::ndjson::{Event, Severity, Topic};

use super::agent::ChatAgent;
use crate::transport::stdio::plain;

/// The longest line told whole.
const LINE: usize = 16 * 1024;

/// Reads stderr.
pub(super) struct Stderr<'a> {
    agent: &'a dyn ChatAgent,
    splitter: LineSplitter,
    left: u64,
    full: bool,
    /// The line that explains a bad end best.
    why: Option<String>,
}

impl<'a> Stderr<'a> {
    pub(super) fn new(agent: &'a dyn ChatAgent, limit: u64) -> Self {
        Self { agent, splitter: LineSplitter::new(LINE), left: limit, full: false, why: None }
    }

    /// Takes bytes; the events of whole lines go to `sink`.
    pub(super) fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&Event<'_>)) {
        let Self { agent, splitter, left, full, why } = self;
        let mut state = State { agent: *agent, left, full, why };
        while let Some(line) = splitter.read(&mut bytes) {
            state.take(line, sink);
        }
    }

    /// A last line without a line feed still counts.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&Event<'_>)) {
        let Self { agent, splitter, left, full, why } = self;
        if let Some(line) = splitter.read_last() {
            State { agent: *agent, left, full, why }.take(line, sink);
        }
    }

    /// What it said that explains a bad end.
    pub(super) fn why(&self) -> Option<String> {
        self.why.clone()
    }
}

struct State<'s> {
    agent: &'s dyn ChatAgent,
    left: &'s mut u64,
    full: &'s mut bool,
    why: &'s mut Option<String>,
}

impl State<'_> {
    fn take(&mut self, line: LineRef<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
        let (LineRef::Whole(line) | LineRef::TooLong { head: line, .. }) = line;
        let text = plain(&String::from_utf8_lossy(line));
        let text = text.trim_end();
        if text.is_empty() || self.agent.is_noise(text) {
            return;
        }
        self.learn(text);
        match self.left.checked_sub(text.len() as u64) {
            Some(left) => {
                *self.left = left;
                tell(text, sink);
            }
            None if !std::mem::replace(self.full, true) => {
                tell("more was written to stderr than is told here", sink);
            }
            None => {}
        }
    }

    /// The first line that calls itself an error, else the last line.
    fn learn(&mut self, text: &str) {
        let is_error = |text: &str| text.to_ascii_lowercase().starts_with("error");
        if !self.why.as_deref().is_some_and(is_error) {
            *self.why = Some(text.to_owned());
        }
    }
}

fn tell(text: &str, sink: &mut dyn FnMut(&Event<'_>)) {
    let (severity, topic) = (Some(Severity::Info), Some(Topic::Process));
    sink(&Event::Stderr { content: text.into(), severity, topic });
}
