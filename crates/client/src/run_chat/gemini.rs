//! Gemini CLI, whose `stream-json` is the normalised stream already.

use std::ffi::OsString;
use std::path::PathBuf;

use super::agent::{ChatAgent, ChatCommand, ChatRequest, check_text};
use crate::error::Error;

/// Gemini CLI as a command-line agent.
#[derive(Clone, Debug)]
pub struct GeminiAgent {
    /// The executable.
    pub program: PathBuf,
    /// Further arguments.
    pub args: Vec<OsString>,
}

impl Default for GeminiAgent {
    fn default() -> Self {
        Self { program: PathBuf::from("gemini"), args: Vec::new() }
    }
}

impl ChatAgent for GeminiAgent {
    fn name(&self) -> &str {
        "gemini"
    }

    fn check(&self, request: &ChatRequest) -> Result<(), Error> {
        check_text(self.name(), request)
    }

    /// Gemini CLI takes a piped stdin for the prompt.
    fn command(&self, request: &ChatRequest) -> Result<ChatCommand, Error> {
        let fixed = ["--output-format", "stream-json", "--approval-mode", "yolo"];
        let mut args: Vec<OsString> = fixed.map(OsString::from).to_vec();
        args.extend(["--sandbox".into(), "false".into()]);
        args.extend(self.args.iter().cloned());
        if let Some(model) = &request.model {
            args.extend(["--model".into(), model.into()]);
        }
        if let Some(session) = &request.session_id {
            args.extend(["--resume".into(), session.into()]);
        }
        Ok(ChatCommand {
            program: self.program.clone(),
            args,
            env: request.env.clone(),
            env_remove: Vec::new(),
            cwd: request.cwd.clone(),
            stdin: request.message.clone().into_bytes(),
        })
    }

    /// Said at every start.
    fn is_noise(&self, line: &str) -> bool {
        line.starts_with("Loaded cached credentials")
            || line.starts_with("YOLO mode is enabled")
            || line.starts_with("Data collection is disabled")
    }
}
