//! How a run ended: what Codex said about its turn, and how its process went.

use crate::json_text::JsonText;
use crate::ndjson::{Reason, RunResult, Status};

/// How the process ended, as far as anybody knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it, by name.
    pub signal: Option<String>,
    /// Why we ended it, if we did.
    pub cause: Option<Cause>,
    /// What is known beyond that: the last words of the process, why it did not start.
    pub detail: Option<String>,
}

/// Why a run was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The caller wanted so.
    Aborted,
    /// It took too long.
    Deadline,
    /// It wrote too much.
    Limit,
    /// It never began.
    NotStarted,
}

impl Exit {
    /// The process ended by itself.
    pub fn code(code: i32) -> Self {
        Self { code: Some(code), ..Self::default() }
    }

    /// Nobody let the process end by itself.
    pub(super) fn was_stopped(&self) -> bool {
        self.cause.is_some() || self.signal.is_some()
    }

    fn reason(&self) -> Reason {
        match (self.cause, &self.signal, self.code) {
            (Some(Cause::Aborted), ..) => Reason::Aborted,
            (Some(Cause::Deadline), ..) => Reason::Deadline,
            (Some(Cause::Limit), ..) => Reason::Limit,
            (Some(Cause::NotStarted), ..) => Reason::NotStarted,
            (None, Some(_), _) => Reason::Signal,
            (None, None, Some(_)) => Reason::Exit,
            (None, None, None) => Reason::Cut,
        }
    }

    /// What happened, for people.
    fn describe(&self) -> String {
        let what = match (self.cause, &self.signal, self.code) {
            (Some(Cause::Aborted), ..) => "the run was stopped".to_owned(),
            (Some(Cause::Deadline), ..) => "the run took longer than it may".to_owned(),
            (Some(Cause::Limit), ..) => "the run wrote more than it may".to_owned(),
            (Some(Cause::NotStarted), ..) => "the run did not start".to_owned(),
            (None, Some(signal), _) => format!("the process was ended by {signal}"),
            (None, None, Some(code)) => {
                format!("the process ended with exit code {code} before the turn did")
            }
            (None, None, None) => "the stream ended before the turn did".to_owned(),
        };
        match &self.detail {
            Some(detail) => format!("{what}: {detail}"),
            None => what,
        }
    }

    /// Whether the process ended well.
    fn is_good(&self) -> bool {
        self.code == Some(0) && !self.was_stopped()
    }

    /// The verdict where only the process can tell.
    pub fn result(&self) -> RunResult<'_> {
        let (status, reason, error) = match self.is_good() {
            true => (Status::Success, Reason::Completed, None),
            false => (Status::Error, self.reason(), Some(JsonText::from(self.describe()))),
        };
        let signal = self.signal.as_deref();
        RunResult { status, reason, exit_code: self.code, signal, error }
    }
}

/// What Codex said about the turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// It was completed.
    pub(super) completed: bool,
    /// It failed, and why.
    pub(super) failure: Option<String>,
}

impl Outcome {
    /// The verdict. Only a failed turn, or none completed and a bad end, is failure: Codex tells
    /// of errors that it then overcomes, and 0.42 and older exit with 0 whatever happens.
    pub(super) fn result<'a>(&'a self, exit: &'a Exit) -> RunResult<'a> {
        let (status, reason, error) = match &self.failure {
            Some(text) => (Status::Error, Reason::Failed, Some(JsonText::from(text.as_str()))),
            None if self.completed => (Status::Success, Reason::Completed, None),
            None => return exit.result(),
        };
        let signal = exit.signal.as_deref();
        RunResult { status, reason, exit_code: exit.code, signal, error }
    }
}
