//! Branch, head, changes and recent commits of the repository around a folder.
//!
//! Codex tells the model nothing of this; we do, in a block of its own that can be turned off.
//! What files say (branch, head, remote) is read from them; only the counts and the commits need
//! git, which gets as long as the caller allows and is ended after that.

mod files;

mod recent;

mod ask;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::ask::STATUS;
use super::environment::escape;
use super::section::{Section, SectionKind, Snapshot};

/// How the block begins.
pub(super) const OPENING: &str = "<git_context>";

/// The longest that git is ever waited for.
pub const LIMIT: Duration = Duration::from_secs(5);

/// What is known of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Git {
    /// The folder with `.git` in it.
    pub root: PathBuf,
    /// The branch; none where the head is detached.
    pub branch: Option<String>,
    /// The commit; none before the first.
    pub head: Option<String>,
    /// Where `origin` is, without a password.
    pub remote: Option<String>,
    /// Changes; none where git had no time or was not asked.
    pub changes: Option<Changes>,
    /// The latest commits, newest first, each `hash subject`.
    pub recent: Vec<String>,
}

/// How many files differ from the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Files that git knows and that have changed.
    pub dirty: u64,
    /// Files, or whole folders, that git does not know.
    pub untracked: u64,
}

/// A question put to git, which works on it while others work.
pub struct Question {
    git: Git,
    asked: Option<ask::Asked>,
}

impl Question {
    /// Finds the repository and puts the question; none where there is no repository. With no
    /// time at all git is not asked, nor where its answer would be told to nobody.
    pub fn put(cwd: &Path, limit: Option<Duration>, told: &Snapshot) -> Option<Self> {
        let git = files::read(cwd)?;
        let is_news = !told.is_current(&section(&git));
        let limit = limit.filter(|limit| is_news && !limit.is_zero());
        let asked =
            limit.map(|limit| ask::Asked::start(&git.root, git.head.as_deref(), limit.min(LIMIT)));
        Some(Self { git, asked })
    }

    /// Waits for the answer, as long as was allowed.
    pub fn answer(self) -> Git {
        let mut git = self.git;
        if let Some(asked) = self.asked {
            let answer = asked.answer();
            git.changes = answer.changes;
            git.recent = answer.recent;
        }
        git
    }

    /// The block.
    pub(super) fn section(self) -> Section {
        section(&self.answer())
    }
}

fn section(git: &Git) -> Section {
    Section { kind: SectionKind::Git, text: git.text(), sources: Vec::new() }
}

impl Git {
    /// The block.
    pub fn text(&self) -> String {
        let mut lines = vec![OPENING.to_owned()];
        let mut tag = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  <{name}>{}</{name}>", escape(&value))));
        };
        tag("root", Some(self.root.to_string_lossy().into_owned()));
        tag("branch", Some(self.branch.clone().unwrap_or_else(|| "(detached)".to_owned())));
        tag("head", self.head.clone());
        tag("remote", self.remote.clone());
        tag("changed_files", self.changes.map(|changes| changes.dirty.to_string()));
        tag("untracked_files", self.changes.map(|changes| changes.untracked.to_string()));
        for commit in &self.recent {
            tag("commit", Some(commit.clone()));
        }
        lines.push("</git_context>".to_owned());
        lines.join("\n")
    }
}

/// Whether a change of this line is worth telling. Heads and counts move with every edit the
/// model makes itself.
pub(super) fn is_lasting(line: &str) -> bool {
    let line = line.trim_start();
    ["<root>", "<branch>", "<remote>"].iter().any(|tag| line.starts_with(tag))
}
