//! What a command may touch, and who sees to it.
//!
//! On Linux there are two mechanisms. **Bubblewrap** gives the command a file system that is
//! read-only but for its roots, in which `.git` and the like are read-only again, and no network.
//! Where it is missing, **Landlock** limits writing to the roots. With both a seccomp filter takes
//! away the network and what reaches into other processes. Where neither works a limited command is
//! refused, so that somebody is asked.
//!
//! Landlock only ever adds rights from a folder downwards. So where a root holds something
//! protected, the rights are given on each of its other entries, not on the root: there a command
//! can change what is there, but make, rename and remove nothing directly in the root. Where
//! nothing protected is there yet, Landlock cannot keep a command from making a `.git`. Nor
//! does it know about owners, modes and times of files, or hide other processes in `/proc`.

pub mod environment;

pub mod roots;

mod protected;

mod known_roots;

mod bubblewrap;

mod placeholder;

mod inside;

mod probe;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exec::Command;

pub use inside::{SUBCOMMAND, enter};
pub use known_roots::KnownRoots;
pub use placeholder::Placeholder;
pub use protected::PROTECTED;
pub use roots::WritableRoots;

/// What a command may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It may read, and write nowhere.
    ReadOnly,
    /// It may write in the thread's folder, and in these.
    WorkspaceWrite {
        /// Further folders.
        roots: Vec<PathBuf>,
        /// Whether it may use the network.
        network: bool,
        /// Leaves `/tmp` read-only.
        exclude_slash_tmp: bool,
        /// Leaves the folder that `$TMPDIR` names read-only.
        exclude_tmpdir: bool,
    },
    /// Everything; asked for by name.
    FullAccess,
}

impl Policy {
    /// Writing in the thread's folder, without network.
    pub fn workspace_write() -> Self {
        Self::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            exclude_slash_tmp: false,
            exclude_tmpdir: false,
        }
    }

    /// Whether the network may be used.
    pub fn network(&self) -> bool {
        matches!(self, Self::WorkspaceWrite { network: true, .. } | Self::FullAccess)
    }
}

/// Who sees to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Bubblewrap, with seccomp.
    Bubblewrap {
        /// Its program.
        program: PathBuf,
        /// Whether the command has process numbers and a `/proc` of its own, which some containers
        /// do not allow.
        own_processes: bool,
    },
    /// Landlock, with seccomp.
    Landlock,
    /// Nobody.
    None,
}

/// Why a command cannot be limited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// Nothing on this machine does it.
    #[error(
        "this machine offers no sandbox: install bubblewrap, allow user namespaces, or ask for \
         full access by name"
    )]
    NoMechanism,
    /// A root is the whole system.
    #[error(
        "`/` cannot be a writable root, for then nothing is protected; \
         run in a folder of the project"
    )]
    WholeSystem,
    /// A protected entry is a link, which could be replaced.
    #[error(
        "`{}` is a link, which cannot be protected; replace it by what it leads to",
        .0.display()
    )]
    ProtectedLink(PathBuf),
    /// A root leads elsewhere than when the thread began.
    #[error(
        "`{}` is not the folder any more that it was when the thread began; move it back, or \
         start a new thread",
        .0.display()
    )]
    RootReplaced(PathBuf),
    /// A folder cannot be looked at.
    #[error("cannot look at `{}`: {source}", path.display())]
    Look {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// A mechanism, ready to be used.
#[derive(Clone, Debug)]
pub struct Sandbox {
    mechanism: Mechanism,
    /// The program that calls [`enter`] when its first argument is [`SUBCOMMAND`].
    helper: PathBuf,
    /// Kept read-only wherever they lie: the homes of Codex and of Bindery, where rules are.
    protect: Vec<PathBuf>,
}

impl Sandbox {
    /// Finds the best mechanism that works, trying each; the outcome is remembered.
    ///
    /// `helper` is a program that calls [`enter`] when its first argument is [`SUBCOMMAND`]:
    /// `bindery` itself, or `bindery-sandbox`.
    pub fn detect(helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        let mechanism = probe::best(&helper);
        Self { mechanism, helper, protect }
    }

    /// Uses a mechanism that was found before, or none.
    pub fn with(mechanism: Mechanism, helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        Self { mechanism, helper, protect }
    }

    /// Every mechanism that works here, best first. For tests and for telling people.
    pub fn all(helper: &Path) -> Vec<Mechanism> {
        probe::all(helper)
    }

    /// Who sees to it.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Whether commands can be limited at all.
    pub fn works(&self) -> bool {
        self.mechanism != Mechanism::None
    }

    /// Folders that are kept read-only wherever they lie.
    pub(crate) fn protected_folders(&self) -> &[PathBuf] {
        &self.protect
    }

    /// Limits a command that runs in the folder of its thread.
    pub fn wrap(&self, command: Command, policy: &Policy) -> Result<Command, SandboxError> {
        let workspace = command.cwd.clone();
        self.wrap_around(command, policy, &workspace)
    }

    /// Limits a command to a policy, for a thread whose folder is `workspace`. Where the command
    /// runs does not matter: the model chooses that. Full access leaves it as it is.
    pub fn wrap_around(
        &self,
        command: Command,
        policy: &Policy,
        workspace: &Path,
    ) -> Result<Command, SandboxError> {
        if *policy == Policy::FullAccess {
            return Ok(command);
        }
        let tmpdir = roots::temporary_folder();
        let roots = WritableRoots::of(policy, workspace, tmpdir.as_deref(), self.protect.clone())?;
        match &self.mechanism {
            Mechanism::Bubblewrap { program, own_processes } => {
                let outer = bubblewrap::Outer { program, own_processes: *own_processes };
                outer.wrap(command, policy, &roots, &self.helper)
            }
            Mechanism::Landlock => Ok(inside::wrap(command, policy, &roots, &self.helper)),
            Mechanism::None => Err(SandboxError::NoMechanism),
        }
    }
}

/// Puts arguments before a command's own.
fn prefixed(mut command: Command, prefix: Vec<OsString>) -> Command {
    command.argv.splice(..0, prefix);
    command
}
