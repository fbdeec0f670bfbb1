//! The state of a stream, and what every vocabulary has in common.

use crate::json_text::JsonText;
use crate::ndjson::{
    Dialect, Event, PlanItem, Role, RunResult, Severity, State, Status, Tokens, Topic,
};
use crate::wire::exec::{self, Line};

use super::outcome::{Exit, Outcome};
use super::repair::repair;
use super::tools::Tools;
use super::usage::{Baseline, Totals, plus};
use super::{Options, old, today};

/// How much of a line is shown that nobody understands.
const SHOWN: usize = 4096;

/// The name that `init` gives the agent.
const AGENT: &str = "codex";

/// The state of a stream.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) tools: Tools,
    totals: Totals,
    outcome: Outcome,
    /// An error that may be said again by `turn.failed`, or overcome.
    held: Option<String>,
    plan: Vec<PlanItem>,
    /// Tokens of the turn so far; only 0.42 and older count while it runs.
    pub(super) running: Option<Tokens>,
    model: Option<String>,
    run: Option<String>,
    thread: Option<String>,
    runs: u32,
    /// Errors are told at once, as the original mapper did.
    eager: bool,
}

impl Fold {
    pub(super) fn new(options: Options) -> Self {
        let prefix = options.run.as_ref().map(|run| format!("{run}:")).unwrap_or_default();
        Self {
            tools: Tools::new(prefix),
            totals: Totals::new(options.baseline),
            outcome: Outcome::default(),
            held: None,
            plan: Vec::new(),
            running: None,
            model: options.model,
            run: options.run,
            thread: None,
            runs: 0,
            eager: options.dialect == Dialect::Compat,
        }
    }

    /// Takes one line.
    pub(super) fn line(&mut self, line: &[u8], sink: &mut dyn FnMut(&Event<'_>)) {
        let text = repair(line.trim_ascii());
        let text = text.trim_matches(is_blank);
        if text.is_empty() {
            return;
        }
        let line = exec::decode(text);
        if !matches!(line, Line::TurnFailed { .. }) {
            self.release(false, sink);
        }
        self.take(line, text, sink);
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, exit: &Exit, sink: &mut dyn FnMut(&Event<'_>)) {
        let left = if exit.was_stopped() { State::Aborted } else { State::Incomplete };
        let complete = self.tools.is_empty();
        self.tools.close(left, sink);
        self.close_old_turn(complete, sink);
        let outcome = std::mem::take(&mut self.outcome);
        let result = outcome.result(exit);
        self.release(result.status == Status::Error, sink);
        tell_end(&outcome, &result, sink);
        sink(&Event::Result(result));
    }

    /// A line nobody understands is shown, not dropped.
    pub(super) fn strange(
        &mut self,
        tag: String,
        why: String,
        line: &str,
        bytes: u64,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        let raw = line[..line.floor_char_boundary(SHOWN)].to_owned();
        sink(&Event::Unknown { tag, why, raw, bytes });
    }

    /// Codex says who it is. Several runs may follow each other in one stream.
    pub(super) fn init(
        &mut self,
        session_id: Option<JsonText<'_>>,
        model: Option<JsonText<'_>>,
        cwd: Option<JsonText<'_>>,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        self.begin_run(session_id.as_ref(), sink);
        let known = self.model.clone();
        let model_id = model.or(known.map(JsonText::from));
        sink(&Event::Init { session_id, model_id, agent: Some(AGENT), cwd });
    }

    /// The model says something.
    pub(super) fn say(
        &self,
        content: JsonText<'_>,
        delta: bool,
        id: Option<JsonText<'_>>,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        let id = id.map(|id| self.tools.name(&id));
        sink(&Event::Message { role: Role::Assistant, content, delta, id });
    }

    /// The plan changes; it is told only if it does.
    pub(super) fn plan(
        &mut self,
        id: Option<JsonText<'_>>,
        explanation: Option<JsonText<'_>>,
        items: Vec<PlanItem>,
        sink: &mut dyn FnMut(&Event<'_>),
    ) {
        if self.plan != items {
            self.plan.clone_from(&items);
            sink(&Event::Plan { id: id.map(|id| self.tools.name(&id)), explanation, items });
        }
    }

    /// The turn failed.
    pub(super) fn fail(&mut self, message: &JsonText<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
        let message = message.decode().into_owned();
        let held = self.held.take();
        let told = self.eager && held.as_ref() == Some(&message);
        if let Some(held) = held.filter(|held| *held != message && !self.eager) {
            sink(&Event::Error { message: JsonText::from(held), fatal: false });
        }
        if !told {
            sink(&Event::Error { message: JsonText::from(message.as_str()), fatal: true });
        }
        self.tools.close(State::Incomplete, sink);
        self.outcome.failure = Some(message);
    }

    /// Tokens of the response that just came; told at the end of the turn.
    pub(super) fn count(&mut self, response: Tokens) {
        self.running = Some(plus(self.running.unwrap_or_default(), response));
    }

    /// The model has said something, so that the turn of an old Codex may be over.
    pub(super) fn may_be_done(&mut self, done: bool) {
        self.outcome.completed = done;
    }

    /// The end of a turn, for Codex versions that do not tell it.
    fn close_old_turn(&mut self, complete: bool, sink: &mut dyn FnMut(&Event<'_>)) {
        if !complete {
            self.outcome.completed = false;
        }
        if let Some(turn) = self.running.take() {
            let total = self.totals.add(turn);
            sink(&Event::Usage { turn: Some(turn), total });
        }
    }

    fn take(&mut self, line: Line<'_>, text: &str, sink: &mut dyn FnMut(&Event<'_>)) {
        match line {
            Line::ThreadStarted { thread_id } => self.init(Some(thread_id), None, None, sink),
            Line::SessionCreated { id, model } => self.init(id, model, None, sink),
            Line::Config { model, workdir } => self.init(None, Some(model), workdir, sink),
            Line::Prompt(content) => {
                sink(&Event::Message { role: Role::User, content, delta: false, id: None });
            }
            Line::TurnStarted => self.outcome = Outcome::default(),
            Line::TurnCompleted { usage } => self.complete(usage, sink),
            Line::TurnFailed { message } => self.fail(&message, sink),
            Line::Item(phase, item) => today::item(self, phase, item, sink),
            Line::Error { message } => self.error(message, sink),
            Line::TextDelta(delta) => self.say(delta, true, None, sink),
            Line::TextDone(text) => {
                self.outcome.completed = true;
                self.say(text, false, None, sink);
            }
            Line::ResponseCompleted => self.outcome.completed = true,
            Line::Msg(msg) => old::msg(self, msg, sink),
            Line::Unknown { tag, why } => self.strange(tag, why, text, text.len() as u64, sink),
        }
    }

    fn complete(&mut self, usage: Option<Tokens>, sink: &mut dyn FnMut(&Event<'_>)) {
        self.tools.close(State::Incomplete, sink);
        self.outcome = Outcome { completed: true, failure: None };
        if let Some(total) = usage {
            let turn = self.totals.turn(total);
            sink(&Event::Usage { turn, total });
        }
    }

    /// A top-level `error` is not the end: Codex tells each attempt to reconnect so.
    fn error(&mut self, message: JsonText<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
        if is_retry(&message) {
            return notice(message, Topic::Retry, sink);
        }
        let text = message.decode().into_owned();
        if self.eager {
            sink(&Event::Error { message, fatal: false });
        }
        self.held = Some(text);
    }

    /// Tells an error that no `turn.failed` repeated.
    fn release(&mut self, fatal: bool, sink: &mut dyn FnMut(&Event<'_>)) {
        let Some(message) = self.held.take() else { return };
        if !self.eager {
            sink(&Event::Error { message: JsonText::from(message), fatal });
        }
    }

    fn begin_run(&mut self, thread: Option<&JsonText<'_>>, sink: &mut dyn FnMut(&Event<'_>)) {
        self.runs += 1;
        let thread = thread.map(|thread| thread.decode().into_owned());
        if self.runs > 1 {
            let complete = self.tools.is_empty();
            self.tools.close(State::Incomplete, sink);
            self.close_old_turn(complete, sink);
            self.tools.forget();
            let run = self.run.as_ref().map(|run| format!("{run}:")).unwrap_or_default();
            self.tools.prefix = format!("{run}{}:", self.runs);
            self.plan.clear();
            self.outcome = Outcome::default();
            if thread != self.thread {
                self.totals = Totals::new(Baseline::New);
            }
        }
        self.thread = thread;
    }
}

/// Something that is neither answer nor failure.
pub(super) fn notice(content: JsonText<'_>, topic: Topic, sink: &mut dyn FnMut(&Event<'_>)) {
    sink(&Event::Stderr { content, severity: Some(Severity::Warning), topic: Some(topic) });
}

/// What may stand around a line: white space of any script, and the byte order mark.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}'
}

/// 0.50 wrote the word with a hyphen.
fn is_retry(message: &JsonText<'_>) -> bool {
    message.starts_with("Reconnecting") || message.starts_with("Re-connecting")
}

/// A bad end that nobody told of yet is told as an error too.
fn tell_end(outcome: &Outcome, result: &RunResult<'_>, sink: &mut dyn FnMut(&Event<'_>)) {
    if let (None, Some(message)) = (&outcome.failure, &result.error) {
        sink(&Event::Error { message: message.clone(), fatal: true });
    }
}
