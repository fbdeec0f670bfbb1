//! What a command may touch, and who sees to it.
//!
//! On Linux there are three mechanisms, tried in this order. **Bubblewrap** gives the command a
//! file system that is read-only except for its roots, in which `.git` and the like are read-only
//! again, process numbers of its own, and no network. Where bubblewrap is missing, our own helper
//! builds the same out of **namespaces**. Where the system allows no user namespaces, **Landlock**
//! limits writing to the roots. Landlock is also stacked inside the other two where the kernel has
//! it, and a seccomp filter is part of all three. Where none works a limited command is refused, so
//! that somebody is asked.
//!
//! [`Mechanism::limits`] says what a mechanism cannot do. Landlock only ever adds rights from a
//! folder downwards. So where a root holds something protected, the rights are given on each of its
//! other entries, not on the root.

pub mod environment;

pub mod roots;

mod nested;

mod protected;

mod known_roots;

mod hidden;

mod bubblewrap;

mod egress;

mod mechanism;

mod placeholder;

mod inside;

mod plan;

mod probe;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::exec::Command;

use self::plan::{NetworkAccess, Plan};
pub use egress::Egress;
pub use hidden::HiddenPaths;
pub use inside::{SUBCOMMAND, enter};
pub use known_roots::KnownRoots;
pub use mechanism::{Mechanism, REQUIRE, missing};
pub use placeholder::Placeholder;
pub(crate) use placeholder::remove_abandoned;
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
    /// A command cannot run or write in a folder that is hidden from it.
    #[error(
        "`{}` is hidden from commands; run in another folder, or ask for full access by name",
        .0.display()
    )]
    Hidden(PathBuf),
    /// Landlock closes no addresses.
    #[error(
        "this machine's sandbox (Landlock) cannot keep a command with network access from the \
         services of this machine: install bubblewrap, allow user namespaces, or set \
         `loopback = true` in `[sandbox_workspace_write]`"
    )]
    NoWayPastLoopback,
    /// The proxy for a command's network cannot be started.
    #[error("cannot start the proxy for the command's network: {0}")]
    Egress(std::io::Error),
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
    /// Commands see nothing of what is there.
    hidden: HiddenPaths,
    /// Commands with network access reach this machine's own services.
    loopback: bool,
}

impl Sandbox {
    /// Finds the best mechanism that works, trying each; the outcome is remembered.
    ///
    /// `helper` is a program that calls [`enter`] when its first argument is [`SUBCOMMAND`]:
    /// `bindery` itself, or `bindery-sandbox`.
    pub fn detect(helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        let mechanism = probe::best(&helper);
        Self::with(mechanism, helper, protect)
    }

    /// Uses a mechanism that was found before, or none.
    pub fn with(mechanism: Mechanism, helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        Self { mechanism, helper, protect, hidden: HiddenPaths::default(), loopback: false }
    }

    /// Hides files and folders from commands: a folder is empty to them, a file as well. Roots
    /// inside a hidden folder stay visible. A path that is not there when a command starts is not
    /// hidden from it, so name a folder that is.
    #[must_use]
    pub fn hiding(self, hidden: impl Into<HiddenPaths>) -> Self {
        Self { hidden: hidden.into(), ..self }
    }

    /// Lets commands with network access use the network as this process does, with all services
    /// that listen on this machine. Otherwise they reach other machines through a proxy.
    #[must_use]
    pub fn with_loopback(self, loopback: bool) -> Self {
        Self { loopback, ..self }
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

    /// Whether commands can be limited to this policy.
    pub fn can_limit(&self, policy: &Policy) -> bool {
        self.works() && (self.loopback || !policy.network() || self.mounts())
    }

    /// Whether the mechanism makes a file system and a network for a command.
    fn mounts(&self) -> bool {
        match self.mechanism {
            Mechanism::Bubblewrap { .. } | Mechanism::Namespaces { .. } => true,
            Mechanism::Landlock | Mechanism::None => false,
        }
    }

    /// Opens the network as far as the policy does. The proxy lasts as long as the command.
    fn open_network(
        &self,
        command: &mut Command,
        policy: &Policy,
    ) -> Result<NetworkAccess, SandboxError> {
        match policy.network() {
            false => Ok(NetworkAccess::Closed),
            true if self.loopback => Ok(NetworkAccess::Host),
            true if !self.mounts() => Err(SandboxError::NoWayPastLoopback),
            true => {
                let egress = Egress::start().map_err(SandboxError::Egress)?;
                let socket = egress.socket();
                command.env.extend(Egress::variables());
                command.egress = Some(egress);
                Ok(NetworkAccess::Bridged(socket))
            }
        }
    }

    /// What commands do not see.
    pub(crate) fn hidden_paths(&self) -> &HiddenPaths {
        &self.hidden
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
        mut command: Command,
        policy: &Policy,
        workspace: &Path,
    ) -> Result<Command, SandboxError> {
        if *policy == Policy::FullAccess {
            return Ok(command);
        }
        let tmpdir = roots::temporary_folder();
        let roots = WritableRoots::of(policy, workspace, tmpdir.as_deref(), self.protect.clone())?;
        let network = self.open_network(&mut command, policy)?;
        let plan = Plan::new(&command, network, &roots, &self.hidden, self.mounts())?;
        let supervisor = match &self.mechanism {
            Mechanism::Bubblewrap { program, own_proc } => {
                let outer = bubblewrap::Outer { program, own_proc: *own_proc };
                outer.wrap(&command.cwd, &plan, &self.helper)
            }
            Mechanism::Namespaces { own_proc } => {
                inside::in_namespaces(&self.helper, &plan, *own_proc)
            }
            Mechanism::Landlock => inside::landlocked(&self.helper, &plan),
            Mechanism::None => return Err(SandboxError::NoMechanism),
        };
        Ok(supervised(command, supervisor, plan))
    }
}

/// Puts a supervisor's arguments before a command's own, with what has to last as long as it does.
fn supervised(mut command: Command, prefix: Vec<OsString>, plan: Plan) -> Command {
    command.argv.splice(..0, prefix);
    command.placeholders.extend(plan.placeholders);
    command.enclosed = true;
    command
}
