//! What may be done, in words to the model.

use super::context::ThreadScene;
use crate::config::{ApprovalPolicy, SandboxMode};
use crate::sandbox::PROTECTED;

/// How the block begins. Codex's own wrapper, so that whoever reads a session knows it for one.
pub(super) const OPENING: &str = "<permissions instructions>";
const CLOSING: &str = "</permissions instructions>";

/// The block.
pub fn text(scene: &ThreadScene) -> String {
    let mut sentences = vec![files(scene.sandbox.mode)];
    sentences.extend(roots(scene));
    sentences.push(network(scene.sandbox.network()).to_owned());
    sentences.push(approval(scene).to_owned());
    format!("{OPENING}\n{}\n{CLOSING}", sentences.join("\n"))
}

fn files(mode: SandboxMode) -> String {
    match mode {
        SandboxMode::ReadOnly => {
            "Files (`read-only`): commands can read everything and change nothing.".to_owned()
        }
        SandboxMode::WorkspaceWrite => {
            let names = PROTECTED.map(|name| format!("`{name}`")).join(", ");
            format!(
                "Files (`workspace-write`): commands can read everything, and change what is in \
                 the workspace; {names} in it can only be read."
            )
        }
        SandboxMode::DangerFullAccess => {
            "Files (`danger-full-access`): there is no sandbox; commands can read and change \
             whatever the user can. Take care outside the workspace."
                .to_owned()
        }
    }
}

/// Folders to write in, named where there is a choice.
fn roots(scene: &ThreadScene) -> Option<String> {
    let sandbox = &scene.sandbox;
    if sandbox.mode != SandboxMode::WorkspaceWrite {
        return None;
    }
    let roots = scene.roots();
    let mut names: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    if !sandbox.exclude_slash_tmp {
        names.push("`/tmp`".to_owned());
    }
    if !sandbox.exclude_tmpdir_env_var {
        names.push("the folder `$TMPDIR` names, if it is set".to_owned());
    }
    Some(format!("Writable folders: {}.", names.join(", ")))
}

fn network(open: bool) -> &'static str {
    match open {
        true => "Network: commands can reach it.",
        false => "Network: closed to commands.",
    }
}

fn approval(scene: &ThreadScene) -> &'static str {
    match (&scene.approval_policy, scene.sandbox.mode) {
        (ApprovalPolicy::Never, _) => {
            "Approvals (`never`): nobody can be asked. A command that asks for more than the \
             sandbox gives is refused, so do not ask; find another way or say what is missing."
        }
        (ApprovalPolicy::OnRequest, SandboxMode::DangerFullAccess) => {
            "Approvals (`on-request`): the user is asked before a command that is likely to \
             destroy something."
        }
        (ApprovalPolicy::OnRequest, _) => {
            "Approvals (`on-request`): a command that needs more than the sandbox gives, such as \
             the network or another folder, can ask for it: set `sandbox_permissions` to \
             `require_escalated` and say why in one sentence as `justification`. The user then \
             decides. Ask only for what the task needs."
        }
        (ApprovalPolicy::Untrusted, _) => {
            "Approvals (`untrusted`): the user is asked before every command that is not known to \
             only read. Expect to wait, and put together what belongs together."
        }
        (ApprovalPolicy::Granular(_), _) => {
            "Approvals (`granular`): the user has set for each kind of request whether they are \
             asked; a kind they are not asked about is refused."
        }
    }
}
