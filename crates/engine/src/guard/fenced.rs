//! Commands behind a sandbox: what stays in it needs no asking.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Asked, Decision, Guard, NoFence};
use crate::exec::Command;
use crate::safety::rules::allow_for_good;
use crate::safety::{self, ApprovalPolicy, Granular, Question, Rules};
use crate::sandbox::{HiddenPaths, Policy, Sandbox as Mechanism};
use crate::thread::{Approval, Sandbox};

/// Decides by rules, by what a command does and by what the sandbox of this machine can do.
pub struct Fenced {
    helper: PathBuf,
    protect: Vec<PathBuf>,
    hidden: HiddenPaths,
    loopback: bool,
    rules: Mutex<Rules>,
    /// Where rules are kept.
    own: Option<PathBuf>,
    /// Looked for at the first command: a thread without commands needs none.
    found: OnceLock<Mechanism>,
}

impl Fenced {
    /// `helper` is a program that calls [`crate::sandbox::enter`]; `protect` are folders that
    /// commands never write in.
    pub fn new(helper: PathBuf, protect: Vec<PathBuf>) -> Self {
        Self {
            helper,
            protect,
            hidden: HiddenPaths::default(),
            loopback: false,
            rules: Mutex::default(),
            own: None,
            found: OnceLock::new(),
        }
    }

    /// Hides files and folders from commands and from the model's tools.
    #[must_use]
    pub fn hiding(self, hidden: impl Into<HiddenPaths>) -> Self {
        Self { hidden: hidden.into(), ..self }
    }

    /// Lets commands with network access reach the services of this machine.
    #[must_use]
    pub fn with_loopback(self, loopback: bool) -> Self {
        Self { loopback, ..self }
    }

    /// With a sandbox that was found before.
    pub fn with(mechanism: Mechanism) -> Self {
        let protect = mechanism.protected_folders().to_vec();
        let hidden = mechanism.hidden_paths().clone();
        let found = OnceLock::from(mechanism);
        Self { found, hidden, ..Self::new(PathBuf::new(), protect) }
    }

    /// With the rules of our own file, where new ones are kept, and of Codex's folder.
    pub fn with_rules(self, own: PathBuf, codex: &Path) -> Self {
        let rules = Mutex::new(Rules::load(&own, codex));
        Self { rules, own: Some(own), ..self }
    }

    /// What of the rules could not be read, in words.
    pub fn problems(&self) -> Vec<String> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let told = rules.problems.iter().map(|problem| {
            let file = problem.file.display();
            format!("rules in {file} are not in force: {}", problem.why)
        });
        told.collect()
    }

    fn mechanism(&self) -> &Mechanism {
        let detect = || {
            Mechanism::detect(self.helper.clone(), self.protect.clone())
                .hiding(self.hidden.clone())
                .with_loopback(self.loopback)
        };
        self.found.get_or_init(detect)
    }
}

impl Guard for Fenced {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let limited =
            matches!(asked.sandbox, Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. });
        let policy = policy(asked.sandbox);
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let question = Question {
            argv: asked.argv,
            policy: &policy,
            approval: match asked.approval {
                Approval::Untrusted => ApprovalPolicy::Untrusted,
                Approval::OnRequest => ApprovalPolicy::OnRequest,
                Approval::Never => ApprovalPolicy::Never,
                Approval::Granular(kinds) => ApprovalPolicy::Granular(Granular {
                    sandbox_approval: kinds.sandbox_approval,
                    rules: kinds.rules,
                }),
            },
            rules: &rules,
            escalated: asked.escalated,
            sandboxed: limited && self.mechanism().can_limit(&policy),
            proposed: asked.proposed,
            search: asked.search,
        };
        match safety::decide(&question) {
            safety::Decision::Allow { outside } => Decision::Allow { fenced: !outside },
            safety::Decision::Ask { reason, proposed, outside } => {
                Decision::Ask { reason: Some(reason), prefix: proposed, fenced: !outside }
            }
            safety::Decision::Forbid { reason } => Decision::Forbid { reason },
        }
    }

    fn fence(
        &self,
        command: Command,
        sandbox: &Sandbox,
        workspace: &Path,
    ) -> Result<Command, String> {
        let wrapped = self.mechanism().wrap_around(command, &policy(sandbox), workspace);
        wrapped.map_err(|error| error.to_string())
    }

    fn protected_folders(&self) -> Vec<PathBuf> {
        self.protect.clone()
    }

    fn hidden_paths(&self) -> HiddenPaths {
        self.hidden.clone()
    }

    fn remember(&self, prefix: &[String]) -> Result<(), String> {
        match &self.own {
            Some(file) => allow_for_good(file, prefix).map_err(|error| error.to_string()),
            None => NoFence::default().remember(prefix),
        }
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
    use super::*;
    use crate::safety::ProgramSearch;
    use crate::sandbox::Mechanism as Kind;

    fn decide(kind: Kind, sandbox: &Sandbox, approval: Approval, escalated: bool) -> Decision {
        let argv = ["make".to_owned()];
        let cwd = Path::new("/");
        let (search, proposed) = (&ProgramSearch::default(), None);
        let asked = Asked { argv: &argv, cwd, escalated, approval, sandbox, proposed, search };
        match Fenced::with(Mechanism::with(kind, PathBuf::new(), Vec::new())).decide(&asked) {
            Decision::Ask { fenced, .. } => Decision::Ask { reason: None, prefix: None, fenced },
            decision => decision,
        }
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
