//! What a command-line agent is: a check, a preparation, a command, and perhaps a mapper.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt, ready};

use super::RunOptions;
use super::mapper::StdoutMapper;
use crate::error::Error;

/// A command-line agent.
pub trait ChatAgent: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Refuses what it cannot run.
    fn check(&self, request: &ChatRequest) -> Result<(), Error> {
        check_text(self.name(), request)
    }

    /// Makes ready what the command needs: folders, settings.
    fn prepare<'a>(&'a self, _request: &'a ChatRequest) -> BoxFuture<'a, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    /// What to start.
    fn command(&self, request: &ChatRequest) -> Result<ChatCommand, Error>;

    /// How to read its stdout; without one, that passes unchanged.
    fn mapper(
        &self,
        _request: &ChatRequest,
        _options: &RunOptions,
    ) -> Option<Box<dyn StdoutMapper>> {
        None
    }

    /// Whether a line of its stderr says nothing.
    fn is_noise(&self, _line: &str) -> bool {
        false
    }
}

/// What is asked of an agent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChatRequest {
    /// The prompt.
    pub message: String,
    /// The conversation to go on with.
    pub session_id: Option<String>,
    /// The model, instead of the configured one.
    pub model: Option<String>,
    /// The folder to work in; ours without it.
    pub cwd: Option<PathBuf>,
    /// Added to the environment. Keys of providers come this way, so values are never shown.
    pub env: Vec<(OsString, OsString)>,
}

impl ChatRequest {
    /// A prompt and nothing else.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("message", &self.message)
            .field("session_id", &self.session_id)
            .field("model", &self.model)
            .field("cwd", &self.cwd)
            .field("env", &names(&self.env))
            .finish()
    }
}

/// What to start, and what to tell it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChatCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Added to our environment.
    pub env: Vec<(OsString, OsString)>,
    /// Taken out of our environment.
    pub env_remove: Vec<OsString>,
    /// The folder to start in; ours without it.
    pub cwd: Option<PathBuf>,
    /// What it reads on stdin, which is then closed.
    pub stdin: Vec<u8>,
}

impl fmt::Debug for ChatCommand {
    /// Without the values of the environment and without the prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .field("env_remove", &self.env_remove)
            .field("cwd", &self.cwd)
            .field("stdin", &format_args!("{} bytes", self.stdin.len()))
            .finish()
    }
}

fn names(env: &[(OsString, OsString)]) -> Vec<&OsStr> {
    env.iter().map(|(name, _)| name.as_os_str()).collect()
}

/// The check that every agent shares.
pub(super) fn check_text(agent: &str, request: &ChatRequest) -> Result<(), Error> {
    let session = request.session_id.as_deref();
    if request.message.trim().is_empty() {
        return Err(refused(agent, "the message is empty"));
    }
    // Session and model are arguments, and must not be taken for options.
    if session.is_some_and(|id| id.is_empty() || id.starts_with('-')) {
        return Err(refused(agent, "the session id is empty or begins with `-`"));
    }
    if request.model.as_deref().is_some_and(|model| model.is_empty() || model.starts_with('-')) {
        return Err(refused(agent, "the model's name is empty or begins with `-`"));
    }
    Ok(())
}

/// The agent cannot take the request.
pub(super) fn refused(agent: &str, why: &str) -> Error {
    Error::ChatRequest { agent: agent.to_owned(), why: why.to_owned() }
}
