//! Answers that let something leave the sandbox, and who may give them.

use std::path::{Component, Path, PathBuf};

use bindery_core::interrupt::{Answer, Ask, Decision, ElicitationAction};
use bindery_core::item::ChangeKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Contributor, Tenant};
use crate::error::Error;

/// Who may let something leave the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Escalation {
    /// Nobody.
    Deny,
    /// A token with the role `answer` whose party had no part in the thread.
    Approver,
    /// Every token with the role `answer`.
    Any,
}

/// Folders in a workspace whose files are run by programs outside of the sandbox.
const PROTECTED: [&str; 3] = [".git", ".codex", ".agents"];

/// Whether somebody may give this answer. `contributors` have had a part in the thread; none if
/// nobody knows who.
pub fn check_answer(
    tenant: &Tenant,
    ask: &Ask,
    answer: &Answer,
    answerer: &Contributor,
    contributors: Option<&[Contributor]>,
) -> Result<(), Error> {
    let Some(what) = granted(ask, answer, &tenant.settings.root) else { return Ok(()) };
    let refused = |code, why: &str| {
        Err(Error::Interrupt { code, message: format!("this answer would grant {what}; {why}") })
    };
    let policy = &tenant.settings.policy;
    if !policy.full_access && is_kept(answer) {
        return refused("escalation_denied", "a rule would outlast the policy; accept it once");
    }
    match policy.escalation() {
        Escalation::Any => Ok(()),
        Escalation::Deny => refused("escalation_denied", "this tenant may not leave the sandbox"),
        Escalation::Approver => match contributors {
            None => refused("approver_needed", "nobody knows who has had a part in this thread"),
            Some(all) if all.iter().any(|one| one.is_same_party(answerer)) => {
                let why = "that is for somebody who has had no part in this thread";
                refused("approver_needed", why)
            }
            Some(_) => Ok(()),
        },
    }
}

/// Whether an answer is written down as a rule, which counts in every later thread.
fn is_kept(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Decision { decision: Decision::AcceptWithRule(_) | Decision::ApplyNetworkRule(_) }
    )
}

/// What an answer grants beyond the sandbox, in words; none if it grants nothing.
///
/// Codex does not say whether a command that it asks about would leave the sandbox, so each is
/// taken to. The tools of MCP servers run outside by the operator's own configuration.
fn granted(ask: &Ask, answer: &Answer, root: &Path) -> Option<&'static str> {
    match (ask, answer) {
        (_, Answer::Decision { decision: Decision::Decline | Decision::Cancel }) => None,
        (Ask::Command { .. }, Answer::Decision { decision }) => match decision {
            Decision::ApplyNetworkRule(rule) if rule["action"] == "deny" => None,
            Decision::ApplyNetworkRule(_) => Some("access to the network"),
            Decision::AcceptWithRule(_) => Some("commands outside the sandbox from now on"),
            _ => Some("a command outside the sandbox"),
        },
        (Ask::FileChange { changes, grant_root, .. }, Answer::Decision { .. }) => {
            let paths = changes.iter().flat_map(|change| {
                let moved = match &change.kind {
                    ChangeKind::Update { move_path } => move_path.as_deref(),
                    ChangeKind::Add | ChangeKind::Delete => None,
                };
                std::iter::once(change.path.as_str()).chain(moved)
            });
            let mut inside = paths.map(|path| is_inside(root, Path::new(path)));
            let known = !changes.is_empty() && inside.all(|inside| inside);
            (!known || grant_root.is_some()).then_some("changes outside the sandbox")
        }
        (Ask::Permissions { .. }, Answer::Permissions { granted, .. }) => {
            (!is_nothing(granted)).then_some("more permissions")
        }
        (Ask::Elicitation { .. }, Answer::Decision { decision }) => match decision {
            Decision::Accept | Decision::AcceptForSession => None,
            _ => Some("a tool's calls from now on"),
        },
        (Ask::Elicitation { .. }, Answer::Elicitation { action, .. }) => match action {
            ElicitationAction::Accept | ElicitationAction::Decline | ElicitationAction::Cancel => {
                None
            }
        },
        (Ask::UserInput { .. }, Answer::UserInput { .. })
        | (Ask::ToolCall { .. }, Answer::ToolResult { .. }) => None,
        // An answer of another kind than the question is refused elsewhere.
        _ => Some("what was not asked for"),
    }
}

/// Whether a change stays where commands may write: below the root when all links are resolved, and
/// not in a folder that programs outside of the sandbox take orders from.
fn is_inside(root: &Path, path: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let Some(real) = resolved(&root.join(path)) else { return false };
    let Ok(below) = real.strip_prefix(&root) else { return false };
    let protected = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        PROTECTED.contains(&name.as_str())
    };
    below.components().next().is_some() && !below.components().any(protected)
}

/// A path with links resolved as far as it exists; none where it cannot be told.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    let mut here = path;
    loop {
        match here.symlink_metadata() {
            // A link that leads nowhere would be written through.
            Ok(_) => {
                let real = here.canonicalize().ok()?;
                return Some(rest.into_iter().rev().fold(real, |path, part| path.join(part)));
            }
            Err(_) => match here.components().next_back()? {
                Component::Normal(part) => rest.push(part),
                _ => return None,
            },
        }
        here = here.parent()?;
    }
}

/// Whether granted permissions are none.
fn is_nothing(granted: &Value) -> bool {
    match granted {
        Value::Null | Value::Bool(false) => true,
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bindery_core::item::FileChange;
    use serde_json::json;

    use super::*;

    fn command() -> Ask {
        Ask::Command {
            command: "make".into(),
            cwd: "/".into(),
            reason: None,
            into_running: false,
            person_required: false,
            rule: None,
            network: None,
            network_rules: Vec::new(),
        }
    }

    fn patch(paths: &[String], grant_root: Option<&str>) -> Ask {
        let change = |path: &String| FileChange {
            path: path.clone(),
            kind: ChangeKind::Add,
            diff: String::new(),
        };
        let changes = paths.iter().map(change).collect();
        Ask::FileChange { changes, reason: None, grant_root: grant_root.map(str::to_owned) }
    }

    fn grants(ask: &Ask, decision: Decision, root: &Path) -> bool {
        granted(ask, &Answer::decision(decision), root).is_some()
    }

    #[test]
    fn no_yes_to_a_command_stays_in_the_sandbox_and_every_no_does() {
        let root = Path::new("/");
        let rule = |action: &str| Decision::ApplyNetworkRule(json!({ "action": action }));
        for yes in [
            Decision::Accept,
            Decision::AcceptForSession,
            Decision::AcceptWithRule(vec!["make".into()]),
            rule("allow"),
            rule("other"),
        ] {
            assert!(grants(&command(), yes.clone(), root), "{yes:?}");
        }
        for no in [Decision::Decline, Decision::Cancel, rule("deny")] {
            assert!(!grants(&command(), no.clone(), root), "{no:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_patch_stays_in_the_sandbox_only_where_commands_may_write() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::os::unix::fs::symlink(outer.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink(outer.path().join("none"), root.join("dangling")).unwrap();
        let at = |path: &str| patch(&[root.join(path).display().to_string()], None);
        for fine in ["new", "src/new", "src/deep/new", "src/../new"] {
            assert!(!grants(&at(fine), Decision::Accept, &root), "{fine}");
        }
        for bad in [
            "..",
            "../x",
            "/etc/passwd",
            "out/x",
            "src/../../x",
            "dangling",
            ".git/hooks/pre-push",
            "src/.git/config",
            ".codex/config.toml",
            ".GIT/config",
            ".agents/x",
            "",
            "none/../../x",
        ] {
            assert!(grants(&at(bad), Decision::Accept, &root), "{bad}");
        }
        let inside = root.join("new").display().to_string();
        assert!(grants(&patch(&[], None), Decision::Accept, &root), "unknown changes");
        assert!(grants(&patch(std::slice::from_ref(&inside), Some("/")), Decision::Accept, &root));
        let both = [inside, "/etc/passwd".to_owned()];
        assert!(grants(&patch(&both, None), Decision::AcceptForSession, &root));
        assert!(!grants(&patch(&both, None), Decision::Decline, &root));
    }

    #[test]
    fn permissions_are_nothing_only_when_nothing_is_in_them() {
        let ask = Ask::Permissions { permissions: json!({}), reason: None, cwd: None };
        let grants = |granted: Value| {
            let answer = Answer::Permissions { granted, for_session: false };
            super::granted(&ask, &answer, Path::new("/")).is_some()
        };
        assert!(!grants(json!({})) && !grants(json!({ "network": { "enabled": false } })));
        assert!(grants(json!({ "network": { "enabled": true } })));
        assert!(grants(json!({ "fileSystem": { "write": ["/"] } })) && grants(json!("all")));
    }
}
