//! What may be done, and when somebody is asked first.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::thread::Granular;

/// When somebody is asked first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// Before everything that is not known to be harmless.
    Untrusted,
    /// When the model asks for more than the sandbox gives.
    #[default]
    OnRequest,
    /// Never; what would need an answer is refused.
    Never,
    /// For some kinds of question only.
    Granular(Granular),
}

/// What commands may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing is written.
    ReadOnly,
    /// The workspace and temporary folders are written.
    WorkspaceWrite,
    /// No sandbox.
    DangerFullAccess,
}

/// The sandbox in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxSettings {
    /// What commands may touch.
    pub mode: SandboxMode,
    /// Folders besides the workspace that may be written.
    pub writable_roots: Vec<PathBuf>,
    /// Whether commands reach the network in a writable workspace.
    pub network_access: bool,
    /// Whether `$TMPDIR` stays closed.
    pub exclude_tmpdir_env_var: bool,
    /// Whether `/tmp` stays closed.
    pub exclude_slash_tmp: bool,
}

impl SandboxSettings {
    /// A mode with nothing besides.
    pub fn of(mode: SandboxMode) -> Self {
        Self {
            mode,
            writable_roots: Vec::new(),
            network_access: false,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        }
    }

    /// Whether commands reach the network.
    pub fn network(&self) -> bool {
        match self.mode {
            SandboxMode::ReadOnly => false,
            SandboxMode::WorkspaceWrite => self.network_access,
            SandboxMode::DangerFullAccess => true,
        }
    }
}

/// Whether somebody has said that a project may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Yes.
    Trusted,
    /// No: its own instructions are not read.
    Untrusted,
    /// Nobody has said.
    #[serde(skip_deserializing)]
    Undecided,
}
