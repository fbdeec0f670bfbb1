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
            (None, Some(_), _) => Reason::Signal,
            (None, None, Some(_)) => Reason::Exit,
            (None, None, None) => Reason::Cut,
        }
    }

    /// What happened, for people.
    fn describe(&self) -> String {
        match (self.cause, &self.signal, self.code) {
            (Some(Cause::Aborted), ..) => "the run was stopped".to_owned(),
            (Some(Cause::Deadline), ..) => "the run took longer than it may".to_owned(),
            (Some(Cause::Limit), ..) => "the run wrote more than it may".to_owned(),
            (None, Some(signal), _) => format!("the process was ended by {signal}"),
            (None, None, Some(code)) => {
                format!("the process ended with exit code {code} before the turn did")
            }
            (None, None, None) => "the stream ended before the turn did".to_owned(),
        }
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
        let good = self.failure.is_none() && (self.completed || *exit == Exit::code(0));
        let (status, reason) = match (&self.failure, good) {
            (Some(_), _) => (Status::Error, Reason::Failed),
            (None, true) => (Status::Success, Reason::Completed),
            (None, false) => (Status::Error, exit.reason()),
        };
        let error = match &self.failure {
            Some(text) => Some(JsonText::from(text.as_str())),
            None if good => None,
            None => Some(JsonText::from(exit.describe())),
        };
        let signal = exit.signal.as_deref();
        RunResult { status, reason, exit_code: exit.code, signal, error }
    }
}
