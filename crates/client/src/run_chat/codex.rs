//! `codex exec --json`, for a new thread or one that goes on.

use std::ffi::OsString;

use bindery_core::map::exec_to_ndjson::{Baseline, Options};
use bindery_core::ndjson::{Dialect, Tokens};

use super::agent::{ChatAgent, ChatCommand, ChatRequest};
use super::mapper::{NdjsonMapper, PartsMapper, StdoutMapper};
use super::{Form, RunOptions};
use crate::error::Error;
use crate::locate::Located;
use crate::transport::stdio::with_tools;

/// Codex as a command-line agent.
#[derive(Clone, Debug)]
pub struct CodexAgent {
    /// Which Codex.
    pub codex: Located,
    /// Further arguments of `codex exec`: `--sandbox`, `--config`, `--skip-git-repo-check` …
    pub args: Vec<OsString>,
    /// Tokens of the thread that goes on, before this run: the `total` of its last `usage`.
    pub baseline: Option<Tokens>,
}

impl CodexAgent {
    /// Codex with the settings it finds.
    pub fn new(codex: Located) -> Self {
        Self { codex, args: Vec::new(), baseline: None }
    }
}

impl ChatAgent for CodexAgent {
    fn name(&self) -> &str {
        "codex"
    }

    /// The prompt goes to stdin: as an argument it would be seen by all, be bounded in length, and
    /// be taken for an option if it begins with `-`.
    fn command(&self, request: &ChatRequest) -> Result<ChatCommand, Error> {
        let mut args: Vec<OsString> = ["exec", "--json"].map(OsString::from).to_vec();
        args.extend(self.args.iter().cloned());
        if let Some(model) = &request.model {
            args.extend(["--model".into(), model.into()]);
        }
        if let Some(session) = &request.session_id {
            args.extend(["resume".into(), session.into()]);
        }
        args.push("-".into());
        let mut env = request.env.clone();
        if let Some(path) = self.codex.tools.as_deref().and_then(with_tools) {
            env.push(("PATH".into(), path));
        }
        Ok(ChatCommand {
            program: self.codex.path.clone(),
            args,
            env,
            env_remove: Vec::new(),
            cwd: request.cwd.clone(),
            stdin: request.message.clone().into_bytes(),
        })
    }

    fn mapper(&self, request: &ChatRequest, options: &RunOptions) -> Option<Box<dyn StdoutMapper>> {
        let baseline = match (self.baseline, &request.session_id) {
            (Some(tokens), _) => Baseline::Known(tokens),
            (None, Some(_)) => Baseline::Unknown,
            (None, None) => Baseline::New,
        };
        Some(exec_mapper(request, options, baseline))
    }

    /// Said whenever stdin is not a terminal.
    fn is_noise(&self, line: &str) -> bool {
        line.starts_with("Reading additional input from stdin")
            || line.starts_with("Reading prompt from stdin")
    }
}

/// The mapper for whatever speaks as `codex exec --json` does.
pub(super) fn exec_mapper(
    request: &ChatRequest,
    options: &RunOptions,
    baseline: Baseline,
) -> Box<dyn StdoutMapper> {
    let (model, run) = (request.model.clone(), options.run.clone());
    let known = Options { model, run, baseline, ..Options::default() };
    match options.form {
        Form::Ndjson(dialect) => Box::new(NdjsonMapper::new(Options { dialect, ..known })),
        Form::Parts => Box::new(PartsMapper::new(Options { dialect: Dialect::Full, ..known })),
    }
}
