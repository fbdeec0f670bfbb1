//! The view of a turn: stream parts in, text for a terminal or a pipe out.
//!
//! [`View`] is pure: it reads no clock and writes nothing. The answer goes to stdout; what the
//! agent does, thinks and costs goes to stderr. On a terminal both are one screen, at whose bottom
//! rows may be drawn that disappear again; to a pipe the answer goes as it is.

pub mod clean;

pub mod row;

pub mod theme;

pub mod wording;

mod wrap;

pub mod output;

pub mod markdown;

pub mod shell;

mod tool;

mod thought;

mod answer;

mod notice;

mod agent;

mod closing;

use bindery::core::part::{Part, ToolResult};
use bindery::core::spec::{Metadata, codex_of};
use serde_json::Value;

use crate::terminal::Style;
use agent::Agents;
use answer::Answer;
use notice::Told;
use output::{Kind, Output, Page};
use row::{Paint, Row};
use theme::Theme;
use thought::Thought;
use tool::Calls;

pub(crate) use tool::{diff, summary};
pub(crate) use wording::homely;
pub(crate) use wrap::{wrap_text, wrap_verbatim};

/// A turn as it is shown.
#[derive(Debug)]
pub struct View {
    theme: Theme,
    page: Page,
    answer: Answer,
    thought: Thought,
    calls: Calls,
    agents: Agents,
    /// A review, until it is known whether it is said as an answer too.
    review: Option<String>,
    /// Milliseconds of the caller's clock: the start, the last tick, and when anything came last.
    started_ms: Option<u64>,
    now_ms: u64,
    moved_ms: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Running,
    /// Somebody is asked; nothing may move.
    Waiting,
    Interrupting,
    Over,
}

/// Rows of text that are drawn before they are settled; more would not fit on small screens.
const LIVE_TEXT: usize = 8;

/// Rows of a running command's output, or of a thought, that are drawn.
const LIVE_TAIL: usize = 3;

impl View {
    /// A view in a style, of work in the folder `cwd`.
    pub fn new(style: Style, cwd: &str) -> Self {
        let theme = Theme::of(&style);
        Self {
            theme,
            page: Page::new(style),
            answer: Answer::new(theme, style.out.terminal.then_some(style.out.colour)),
            thought: Thought::default(),
            calls: Calls::in_folder(cwd),
            agents: Agents::default(),
            review: None,
            started_ms: None,
            now_ms: 0,
            moved_ms: 0,
            state: State::Running,
        }
    }

    /// The first line: agent, model, sandbox, folder.
    pub fn header<S: AsRef<str>>(&mut self, facts: &[S]) -> Output {
        let (text, none) = (self.theme.facts(facts), Row::new());
        let rows = wrap_text(&text, Paint::DIM, &none, &none, self.theme.prose);
        self.page.print(Kind::Header, &rows);
        self.shown()
    }

    /// Shows a part.
    pub fn push(&mut self, part: &Part) -> Output {
        if self.state == State::Waiting {
            self.state = State::Running;
        }
        self.take(part);
        self.shown()
    }

    /// Lets time pass: `now_ms` is any clock of milliseconds that does not go back.
    pub fn tick(&mut self, now_ms: u64) -> Output {
        if self.started_ms.is_none() {
            self.started_ms = Some(now_ms);
            self.moved_ms = now_ms;
        }
        self.now_ms = now_ms;
        self.shown()
    }

    /// Lays out what comes from now on for a window of another width.
    pub fn resize(&mut self, style: &Style) -> Output {
        let theme = Theme::of(style);
        if theme.cols != self.theme.cols {
            self.theme = theme;
            self.answer.resize(theme);
        }
        self.shown()
    }

    /// Takes away what moves, so that somebody can be asked; the next part brings it back.
    pub fn pause(&mut self) -> Output {
        self.settle();
        self.page.space(Kind::Activity);
        self.state = State::Waiting;
        self.shown()
    }

    /// Says that the turn is being interrupted.
    pub fn interrupting(&mut self) -> Output {
        if self.state != State::Over {
            self.state = State::Interrupting;
        }
        self.shown()
    }

    /// Shows one remark of the command's own.
    pub fn remark(&mut self, text: &str) -> Output {
        self.tell(&notice::dim(self.theme, text));
        self.shown()
    }

    /// Ends the view; needed where no `finish` part came, harmless otherwise.
    pub fn finish(&mut self) -> Output {
        self.conclude();
        self.shown()
    }

    fn take(&mut self, part: &Part) {
        match part {
            Part::StreamStart { warnings } => {
                for warning in warnings {
                    self.tell(&notice::warning(self.theme, warning));
                }
            }
            Part::TextStart(run) => self.answer.start(&run.id),
            Part::TextDelta(delta) => {
                self.settle();
                self.answer.delta(&delta.id, &delta.delta, &mut self.page);
            }
            Part::TextEnd { id, provider_metadata, .. } => {
                self.answer.end(id, provider_metadata.as_ref(), &mut self.page);
            }
            Part::ReasoningStart(run) => self.think(&run.id, ""),
            Part::ReasoningDelta(delta) => self.think(&delta.id, &delta.delta),
            Part::ReasoningEnd(_) => self.end_thought(),
            Part::ToolInputStart(start) => {
                self.moved_ms = self.now_ms;
                self.calls.begin(&start.id, &start.tool_name, self.now_ms);
            }
            Part::ToolCall(call) => {
                self.end_thought();
                let rows = self.calls.call(self.theme, call, self.now_ms);
                self.print(&rows);
            }
            Part::ToolResult(result) => self.result(result),
            Part::ToolApprovalRequest { .. } => {
                self.settle();
                self.state = State::Waiting;
            }
            Part::File { media_type, .. } | Part::ReasoningFile { media_type, .. } => {
                self.tell(&notice::dim(self.theme, &format!("a file was made: {media_type}")));
            }
            Part::Source(source) => self.tell(&notice::source(self.theme, source)),
            Part::Custom { kind, provider_metadata } => {
                self.custom(kind, provider_metadata.as_ref());
            }
            Part::Error { error } => self.tell(&notice::error(self.theme, error)),
            Part::Finish { usage, finish_reason, provider_metadata } => {
                self.conclude();
                let seen_ms = self.now_ms - self.started_ms.unwrap_or(self.now_ms);
                let metadata = provider_metadata.as_ref();
                let end = closing::End { usage, reason: finish_reason, metadata, seen_ms };
                self.page.print(Kind::Closing, &closing::rows(self.theme, end));
            }
            Part::ResponseMetadata { .. }
            | Part::ToolInputDelta(_)
            | Part::ToolInputEnd(_)
            | Part::Raw { .. }
            | Part::Ping => {}
        }
    }

    fn think(&mut self, id: &bindery::core::ids::PartId, delta: &str) {
        let done = self.thought.push(self.theme, id, delta);
        self.tell(&done);
    }

    fn end_thought(&mut self) {
        let rows = self.thought.end(self.theme);
        self.tell(&rows);
    }

    fn result(&mut self, result: &ToolResult) {
        self.moved_ms = self.now_ms;
        if result.preliminary {
            return self.calls.progress(result);
        }
        let rows = self.calls.done(self.theme, result);
        self.print(&rows);
    }

    fn custom(&mut self, kind: &str, metadata: Option<&Metadata>) {
        match notice::custom(self.theme, kind, codex_of(metadata)) {
            Told::Rows(rows) => self.tell(&rows),
            Told::Agent(data) => self.agent(&data),
            Told::Review(text) => self.review = Some(text),
            Told::Nothing => {}
        }
    }

    fn agent(&mut self, data: &Value) {
        let rows = self.agents.push(self.theme, data);
        if !rows.is_empty() {
            self.settle_looks();
            self.page.print(Kind::Activity, &rows);
        }
    }

    /// Prints what the agent did; looks that came before are printed before.
    fn tell(&mut self, rows: &[Row]) {
        if !rows.is_empty() {
            self.settle_looks();
            self.print(rows);
        }
    }

    fn print(&mut self, rows: &[Row]) {
        if !rows.is_empty() {
            self.agents.interrupted();
            self.page.print(Kind::Activity, rows);
        }
    }

    fn settle_looks(&mut self) {
        let rows = self.calls.looked(self.theme);
        self.print(&rows);
    }

    /// Prints everything that is complete and was kept back.
    fn settle(&mut self) {
        self.settle_looks();
        self.end_thought();
    }

    fn conclude(&mut self) {
        if self.state == State::Over {
            return;
        }
        self.settle();
        self.answer.close(&mut self.page);
        if let Some(text) = self.review.take().filter(|text| !self.answer.was(text)) {
            let id = "review".into();
            self.answer.delta(&id, &text, &mut self.page);
            self.answer.end(&id, None, &mut self.page);
        }
        let rows = self.calls.abandoned(self.theme);
        self.print(&rows);
        self.state = State::Over;
    }

    fn shown(&mut self) -> Output {
        if self.page.moving() {
            let rows = self.live();
            self.page.draw(&rows);
        }
        self.page.take()
    }

    /// The rows at the bottom: what is not settled yet, and the one that moves.
    fn live(&self) -> Vec<Row> {
        if matches!(self.state, State::Waiting | State::Over) {
            return Vec::new();
        }
        let growing = self.answer.is_growing() && self.state == State::Running;
        let mut rows = Vec::new();
        if growing {
            let text = self.answer.live();
            let from = text.len().saturating_sub(LIVE_TEXT);
            rows.extend(text.into_iter().skip(from));
        } else {
            rows.extend(self.calls.looking(self.theme));
            rows.extend(self.thought.live(self.theme, LIVE_TAIL));
            rows.extend(self.calls.tail(self.theme, LIVE_TAIL));
            rows.push(self.wheel());
        }
        let kind = if growing { Kind::Answer } else { Kind::Activity };
        if !rows.is_empty() && self.page.apart(kind) {
            rows.insert(0, Row::new());
        }
        rows
    }

    /// `⠹ cargo test parse · 3 s · ctrl-c to interrupt`
    fn wheel(&self) -> Row {
        let wheel = self.theme.glyphs.wheel;
        let frame = usize::try_from(self.now_ms / 100).unwrap_or(0) % wheel.len();
        let (what, since, beside) =
            self.calls.running().unwrap_or(("thinking".to_owned(), self.moved_ms, 0));
        let what = if beside > 0 { format!("{what} (and {beside} more)") } else { what };
        let seconds = format!("{} s", self.now_ms.saturating_sub(since) / 1000);
        let way_out = match self.state {
            State::Interrupting => "interrupting, ctrl-c again to end",
            _ => "ctrl-c to interrupt",
        };
        let end = self.theme.facts(&["", &seconds, way_out]);
        let room = self.theme.cols.saturating_sub(end.chars().count() + 2);
        let what = Row::of(Paint::PLAIN, &what).cut(room, self.theme.glyphs.more);
        let row = Row::of(Paint::CYAN, wheel[frame]).text(Paint::PLAIN, " ");
        row.join(&what).text(Paint::DIM, &end)
    }
}
