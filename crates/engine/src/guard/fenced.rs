//! Commands behind a sandbox: what stays in it needs no asking.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::{Asked, Decision, Guard, NoFence};
use crate::exec::Command;
use crate::sandbox::{Policy, Sandbox as Mechanism};
use crate::thread::{Approval, Sandbox};

/// Decides by what the sandbox of this machine can do.
pub struct Fenced {
    helper: PathBuf,
    protect: Vec<PathBuf>,
    /// Looked for at the first command: a thread without commands needs none.
    found: OnceLock<Mechanism>,
}

impl Fenced {
    /// `helper` is a program that calls [`crate::sandbox::enter`]; `protect` are folders that
    /// commands never write in.
    pub fn new(helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        Self { helper, protect, found: OnceLock::new() }
    }

    /// With a sandbox that was found before.
    pub fn with(mechanism: Mechanism) -> Self {
        let found = OnceLock::from(mechanism);
        Self { helper: PathBuf::new(), protect: Vec::new(), found }
    }

    fn mechanism(&self) -> &Mechanism {
        let detect = || Mechanism::detect(self.helper.clone(), self.protect.clone());
        self.found.get_or_init(detect)
    }
}

impl Guard for Fenced {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let limited =
            matches!(asked.sandbox, Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. });
        if !limited || !self.mechanism().works() {
            return NoFence.decide(asked);
        }
        match (asked.escalated, asked.approval) {
            (true, Approval::Never) => Decision::Forbid {
                reason: "it asks to run outside of the sandbox, and nobody may be asked".to_owned(),
            },
            (true, _) => Decision::Ask { reason: None, prefix: None, fenced: false },
            (false, Approval::Untrusted) => {
                Decision::Ask { reason: None, prefix: None, fenced: true }
            }
            (false, Approval::OnRequest | Approval::Never) => Decision::Allow { fenced: true },
        }
    }

    fn fence(&self, command: Command, sandbox: &Sandbox) -> Result<Command, String> {
        let policy = policy(sandbox);
        self.mechanism().wrap(command, &policy).map_err(|error| error.to_string())
    }

    fn remember(&self, prefix: &[String]) -> Result<(), String> {
        NoFence.remember(prefix)
    }
}

/// The sandbox's own words for a policy. What others are to see to is as closed as can be here.
pub(crate) fn policy(sandbox: &Sandbox) -> Policy {
    match sandbox {
        Sandbox::DangerFullAccess => Policy::FullAccess,
        Sandbox::ReadOnly { .. } | Sandbox::ExternalSandbox { .. } => Policy::ReadOnly,
        Sandbox::WorkspaceWrite {
            writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } => Policy::WorkspaceWrite {
            roots: writable_roots.clone(),
            network: *network_access,
            exclude_slash_tmp: *exclude_slash_tmp,
            exclude_tmpdir: *exclude_tmpdir_env_var,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sandbox::Mechanism as Kind;

    fn decide(kind: Kind, sandbox: &Sandbox, approval: Approval, escalated: bool) -> Decision {
        let argv = ["true".to_owned()];
        let asked = Asked { argv: &argv, cwd: Path::new("/"), escalated, approval, sandbox };
        Fenced::with(Mechanism::with(kind, PathBuf::new(), Vec::new())).decide(&asked)
    }

    #[test]
    fn without_a_sandbox_nothing_runs_unasked_and_outside_of_it_neither() {
        let ask = |fenced| Decision::Ask { reason: None, prefix: None, fenced };
        let allow = |fenced| Decision::Allow { fenced };
        let (work, full) = (Sandbox::workspace(), Sandbox::DangerFullAccess);
        let outside = Sandbox::ExternalSandbox { network_access: None };
        use Approval::{Never, OnRequest, Untrusted};
        #[rustfmt::skip]
        let table = [
            // mechanism       sandbox   approval   escalated  decision
            (Kind::Landlock, &work,    OnRequest, false,     Some(allow(true))),
            (Kind::Landlock, &work,    OnRequest, true,      Some(ask(false))),
            (Kind::Landlock, &work,    Untrusted, false,     Some(ask(true))),
            (Kind::Landlock, &work,    Never,     false,     Some(allow(true))),
            (Kind::Landlock, &work,    Never,     true,      None),
            (Kind::Landlock, &outside, OnRequest, false,     Some(ask(false))),
            (Kind::Landlock, &full,    Never,     false,     Some(allow(false))),
            (Kind::None,     &work,    OnRequest, false,     Some(ask(false))),
            (Kind::None,     &work,    Never,     false,     None),
            (Kind::None,     &full,    OnRequest, false,     Some(allow(false))),
            (Kind::None,     &full,    Untrusted, false,     Some(ask(false))),
        ];
        for (row, (kind, sandbox, approval, escalated, wanted)) in table.into_iter().enumerate() {
            let decision = decide(kind, sandbox, approval, escalated);
            match wanted {
                Some(wanted) => assert_eq!(decision, wanted, "row {row}"),
                None => assert!(matches!(decision, Decision::Forbid { .. }), "row {row}"),
            }
        }
    }
}
