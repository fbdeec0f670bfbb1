//! What can go wrong between us and Codex, one variant per thing a caller does differently.

use std::sync::Arc;
use std::time::Duration;

use bindery_core::map::prompt_to_turn::PlanError;
use serde_json::value::RawValue;
use thiserror::Error;

/// A failure of the process, the line or the request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no Codex where we looked.
    #[error("Codex not found: looked at {looked}")]
    NotFound {
        /// The places, for a reader.
        looked: String,
    },
    /// Codex is there and does not start.
    #[error("cannot start `{program}`")]
    Spawn {
        /// What was to be started.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no such address, or not for this purpose.
    #[error("the address `{address}` cannot be used: {why}")]
    Address {
        /// As it was given, without secrets.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers at the address, or not as an app-server does.
    #[error("cannot connect to `{address}`: {why}")]
    Connect {
        /// Where the server was looked for.
        address: String,
        /// What the system or the server said.
        why: String,
    },
    /// The server does not let us in.
    #[error("`{address}` does not let us in ({status}): {message}")]
    Unauthorized {
        /// Where the server is.
        address: String,
        /// The HTTP status: 401 or 403.
        status: u16,
        /// What the server said.
        message: String,
    },
    /// Codex is older than we can speak to.
    #[error("Codex {found} is too old; {needed} or newer is needed")]
    TooOld {
        /// The version in use.
        found: String,
        /// The oldest we support.
        needed: String,
    },
    /// The connection is gone; nothing more will come.
    #[error("Codex is gone: {status}{}", last_words(stderr))]
    Closed {
        /// How it ended: `exit code 3`, `signal 9 (SIGKILL)`.
        status: String,
        /// The last it said on stderr.
        stderr: String,
    },
    /// No answer in time; it may still come, and is then ignored.
    #[error("no answer to `{what}` within {after:?}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
    },
    /// Codex refused the request.
    #[error("`{method}` failed: {message} ({code})")]
    Rpc {
        /// What was asked.
        method: String,
        /// Codex 0.166 sends -32600 for nearly everything.
        code: i64,
        /// What Codex says.
        message: String,
        /// More, as JSON text.
        data: Option<Box<RawValue>>,
    },
    /// Codex was too busy for the request, again and again until the deadline.
    #[error("Codex is overloaded: `{method}` was turned away {attempts} times")]
    Overloaded {
        /// What was asked.
        method: String,
        /// How often.
        attempts: u32,
    },
    /// The prompt cannot be run.
    #[error(transparent)]
    Prompt(#[from] PlanError),
    /// The prompt names a file that may not be handed on.
    #[error("{why}")]
    InputRefused {
        /// Which one, and what is wrong with it.
        why: String,
    },
    /// Whoever is to write down that a turn is asked for could not, so it was not.
    #[error("the turn was not asked for: {why}")]
    NotRecorded {
        /// What went wrong.
        why: String,
    },
    /// A call brought answers, and no turn waits for them.
    #[error("the call only brings answers, and no turn waits for them")]
    NothingWaits,
    /// A thread could not be compacted.
    #[error("the thread was not compacted: {why}")]
    Compaction {
        /// What Codex says.
        why: String,
    },
    /// The thread is in the middle of a turn; Codex would take a second one for a steer.
    #[error("thread `{thread}` is busy with another turn")]
    Busy {
        /// The thread.
        thread: String,
    },
    /// The thread has got another turn since the caller last looked at it.
    #[error("thread `{thread}` has gone on since")]
    GoneOn {
        /// The thread.
        thread: String,
    },
    /// Another process has the thread loaded, and Codex lets only one at a time write to it.
    #[error("thread `{thread}` is held by another Codex process")]
    ThreadHeld {
        /// The thread.
        thread: String,
    },
    /// All workers are full and enough callers wait for them.
    #[error("all workers are busy and {waiting} callers wait already")]
    PoolBusy {
        /// How many wait.
        waiting: usize,
        /// When to come again.
        retry_after: Duration,
    },
    /// Workers keep ending soon after their start; the next is tried later.
    #[error("workers keep ending; the next is started in {} s", seconds(retry_after))]
    BackOff {
        /// When to come again.
        retry_after: Duration,
        /// How the last one ended.
        #[source]
        reason: Arc<Error>,
    },
    /// A worker could not be started; all who waited for it are told the same.
    #[error(transparent)]
    Worker(Arc<Error>),
    /// The pool is shutting down and takes no more work.
    #[error("the pool is shutting down")]
    ShuttingDown,
    /// The answer was longer than we are willing to keep.
    #[error("the answer to `{method}` has {bytes} bytes, more than a line may have")]
    LineTooLong {
        /// What was asked.
        method: String,
        /// Length of the answer.
        bytes: u64,
    },
    /// What we were to send is longer than the other side takes; it was not sent.
    #[error("`{what}` has {bytes} bytes, and the backend takes at most {limit} in one message")]
    MessageTooLong {
        /// What was to be sent.
        what: String,
        /// Its length.
        bytes: usize,
        /// The most.
        limit: usize,
    },
    /// Codex said something we cannot read where we must.
    #[error("cannot read the answer to `{what}`: {why}")]
    Protocol {
        /// What was asked.
        what: String,
        /// What was wrong with the answer.
        why: String,
    },
    /// A command-line agent cannot take the request.
    #[error("`{agent}` cannot take the request: {why}")]
    ChatRequest {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        why: String,
    },
    /// The description of a command-line agent is wrong.
    #[error("the description of an agent is wrong: {why}")]
    AgentDescription {
        /// What is wrong with it.
        why: String,
    },
    /// What we were to send cannot be written as JSON.
    #[error("cannot write `{what}` as JSON")]
    Encode {
        /// What was to be sent.
        what: String,
        /// What the writer said.
        source: serde_json::Error,
    },
}

impl Error {
    /// Stable name for logs, HTTP bodies and tests. Never reworded.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "codex_not_found",
            Self::Spawn { .. } => "spawn",
            Self::Address { .. } => "address",
            Self::Connect { .. } => "connect",
            Self::Unauthorized { .. } => "unauthorized",
            Self::TooOld { .. } => "codex_too_old",
            Self::Closed { .. } => "closed",
            Self::Timeout { .. } => "timeout",
            Self::Rpc { .. } => "rpc",
            Self::Overloaded { .. } => "overloaded",
            Self::Prompt(err) => err.code(),
            Self::InputRefused { .. } => "input_refused",
            Self::NotRecorded { .. } => "not_recorded",
            Self::NothingWaits => "nothing_waits",
            Self::Compaction { .. } => "compaction",
            Self::Busy { .. } => "thread_busy",
            Self::GoneOn { .. } => "thread_gone_on",
            Self::ThreadHeld { .. } => "thread_held",
            Self::PoolBusy { .. } => "busy",
            Self::BackOff { .. } => "back_off",
            Self::Worker(err) => err.code(),
            Self::ShuttingDown => "shutting_down",
            Self::LineTooLong { .. } => "line_too_long",
            Self::MessageTooLong { .. } => "message_too_long",
            Self::Protocol { .. } => "protocol",
            Self::ChatRequest { .. } => "chat_request",
            Self::AgentDescription { .. } => "agent_description",
            Self::Encode { .. } => "encode",
        }
    }

    /// The next thing to try, printed after the error as `hint: …`.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { .. } => {
                "install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`"
            }
            Self::Spawn { .. } => "run `bindery doctor` to see which Codex is used",
            Self::TooOld { .. } => "update it with `npm install -g @openai/codex@latest`",
            Self::Connect { .. } => {
                "start one with `codex app-server --listen ws://127.0.0.1:4500`"
            }
            Self::Unauthorized { .. } => "give the token that the server was started with",
            Self::Prompt(err) => return err.hint(),
            Self::Overloaded { .. } => "try again later",
            Self::MessageTooLong { .. } => "send less at a time, or images as uploads or files",
            Self::NothingWaits => {
                "the turn may have ended or its process restarted; send a user message to go on"
            }
            Self::Busy { .. } => "wait for it, steer it, or fork the thread",
            Self::ThreadHeld { .. } => "end the other process, or fork the thread",
            Self::PoolBusy { retry_after, .. } => {
                return Some(format!("retry in {} s", seconds(retry_after)));
            }
            Self::BackOff { reason, .. } | Self::Worker(reason) => return reason.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Whole seconds, at least one: what a caller can wait.
fn seconds(duration: &Duration) -> u64 {
    duration.as_secs_f64().ceil().max(1.0) as u64
}

/// Not given as the reason: what it said last may have nothing to do with its end.
fn last_words(stderr: &str) -> String {
    match stderr.trim().lines().last() {
        Some(line) => format!("; it last said: {}", line.trim()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_codex_is_told_with_its_last_words() {
        let closed = |stderr: &str| Error::Closed {
            status: "exit code 3".to_owned(),
            stderr: stderr.to_owned(),
        };
        assert_eq!(closed("").to_string(), "Codex is gone: exit code 3");
        let said = closed("starting\nerror: no such option\n");
        assert_eq!(
            said.to_string(),
            "Codex is gone: exit code 3; it last said: error: no such option"
        );
        assert_eq!((said.code(), said.hint()), ("closed", None));
    }

    #[test]
    fn a_missing_codex_says_what_to_do() {
        let missing = Error::NotFound { looked: "`BINDERY_CODEX`, `PATH`".to_owned() };
        insta::assert_snapshot!(
            format!("error: {missing}\nhint: {}", missing.hint().unwrap()),
            @r"
        error: Codex not found: looked at `BINDERY_CODEX`, `PATH`
        hint: install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`
        "
        );
    }
}
