//! A plan in the words of the protocol's `fileChange` item.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;

use super::plan::{Action, Before, Plan, Step};

/// A diff that takes longer to find is shown coarser.
const PATIENCE: Duration = Duration::from_secs(2);

/// One file of a `fileChange` item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// From the root.
    pub path: String,
    /// What happens to it.
    pub kind: Kind,
    /// For an update the hunks, for an added or removed file its content.
    pub diff: String,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Kind {
    /// It is written anew.
    Add,
    /// It is removed.
    Delete,
    /// It is changed.
    Update {
        /// Its new place, `null` where it stays.
        move_path: Option<String>,
    },
}

/// The changes as a client is shown them, sorted by path.
pub fn changes(plan: &Plan) -> Vec<Change> {
    let mut changes: Vec<_> = plan.steps.iter().map(change).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// The hunks of a unified diff, without a header.
pub(crate) fn hunks(old: &str, new: &str, context: usize) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    diff.unified_diff().context_radius(context).to_string()
}

fn change(step: &Step) -> Change {
    let before = match &step.target.before {
        Before::Text(text) => text,
        Before::Nothing | Before::Opaque => "",
    };
    let (kind, diff) = match &step.action {
        Action::Add { content } => (Kind::Add, content.clone()),
        Action::Delete => (Kind::Delete, before.to_owned()),
        Action::Update { content, to } => {
            let to = to.as_ref().map(|to| shown(&to.path));
            let mut diff = hunks(before, content, 1);
            if let Some(to) = &to {
                diff.push_str(&format!("\n\nMoved to: {to}"));
            }
            (Kind::Update { move_path: to }, diff)
        }
    };
    Change { path: shown(&step.target.path), kind, diff }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
