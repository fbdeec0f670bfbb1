//! Whether a command may run, and within what bounds: the seam between the loop and the sandbox.

mod fenced;

use std::path::{Path, PathBuf};

use crate::exec::Command;
use crate::safety::ProgramSearch;
use crate::sandbox::HiddenPaths;
use crate::thread::{Approval, Sandbox};

pub use self::fenced::Fenced;
pub(crate) use self::fenced::policy;

/// Decides about commands and fences them in.
pub trait Guard: Send + Sync {
    /// Whether a command may run.
    fn decide(&self, asked: &Asked<'_>) -> Decision;

    /// Puts a command behind the fence that `sandbox` describes, around `workspace`: the folder of
    /// the thread, wherever the command itself runs. One that cannot be fenced in must not run,
    /// and the words say why.
    fn fence(
        &self,
        command: Command,
        sandbox: &Sandbox,
        workspace: &Path,
    ) -> Result<Command, String>;

    /// Folders that neither commands nor patches write in, wherever they lie: the homes of Codex
    /// and of Bindery, where rules are.
    fn protected_folders(&self) -> Vec<PathBuf>;

    /// What commands do not see, and tools do not read for the model.
    fn hidden_paths(&self) -> HiddenPaths;

    /// A person allowed every command that begins with these words, for good.
    fn remember(&self, prefix: &[String]) -> Result<(), String>;
}

/// A command that somebody wants to run.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// Where.
    pub cwd: &'a Path,
    /// The model asks for it to run without a fence.
    pub escalated: bool,
    /// When a person is asked.
    pub approval: Approval,
    /// What commands can reach.
    pub sandbox: &'a Sandbox,
    /// First words that the model proposes to allow for good.
    pub proposed: Option<&'a [String]>,
    /// Where its programs are found.
    pub search: &'a ProgramSearch,
}

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow {
        /// Behind the fence.
        fenced: bool,
    },
    /// A person is asked.
    Ask {
        /// Why.
        reason: Option<String>,
        /// What they could allow for good.
        prefix: Option<Vec<String>>,
        /// Whether it runs behind the fence even then.
        fenced: bool,
    },
    /// It does not run.
    Forbid {
        /// Why.
        reason: String,
    },
}

/// For machines without a fence: every command is asked for, whatever the policy says, unless full
/// access was given by name. Who trusts nothing is asked even then.
#[derive(Clone, Debug, Default)]
pub struct NoFence {
    protect: Vec<PathBuf>,
    hidden: HiddenPaths,
}

impl NoFence {
    /// `protect` are folders that patches never write in without a question.
    pub fn new(protect: Vec<PathBuf>) -> Self {
        Self { protect, hidden: HiddenPaths::default() }
    }

    /// Hides files and folders from the model's tools. A command that a person allows sees them.
    #[must_use]
    pub fn hiding(self, hidden: impl Into<HiddenPaths>) -> Self {
        Self { hidden: hidden.into(), ..self }
    }
}

impl Guard for NoFence {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        if asked.sandbox.is_full_access() && asked.approval != Approval::Untrusted {
            return Decision::Allow { fenced: false };
        }
        if !asked.approval.asks_about_sandbox() {
            let reason = "commands are not sandboxed here, and nobody may be asked".to_owned();
            return Decision::Forbid { reason };
        }
        Decision::Ask { reason: None, prefix: None, fenced: false }
    }

    fn fence(&self, _: Command, _: &Sandbox, _: &Path) -> Result<Command, String> {
        Err("this machine offers no sandbox".to_owned())
    }

    fn protected_folders(&self) -> Vec<PathBuf> {
        self.protect.clone()
    }

    fn hidden_paths(&self) -> HiddenPaths {
        self.hidden.clone()
    }

    fn remember(&self, _: &[String]) -> Result<(), String> {
        Err("there is no place to keep rules in; it holds for this thread".to_owned())
    }
}
