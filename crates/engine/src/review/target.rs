//! What is to be reviewed.

use serde::{Deserialize, Serialize};

/// Letters of a commit's name that people are shown.
const SHORT: usize = 7;

/// What is to be reviewed, as `review/start` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Target {
    /// Everything in the folder that is not committed.
    UncommittedChanges,
    /// What the folder has over a branch.
    BaseBranch {
        /// The branch.
        branch: String,
    },
    /// One commit.
    Commit {
        /// Its name.
        sha: String,
        /// Its first line, where the client knows it.
        #[serde(default)]
        title: Option<String>,
    },
    /// Whatever these words say.
    Custom {
        /// The words.
        instructions: String,
    },
}

impl Target {
    /// For people, in a line or in their own words.
    pub fn words(&self) -> String {
        match self {
            Self::UncommittedChanges => "current changes".to_owned(),
            Self::BaseBranch { branch } => format!("changes against `{}`", branch.trim()),
            Self::Commit { sha, title } => {
                let short: String = sha.trim().chars().take(SHORT).collect();
                let title = title.as_deref().map(str::trim).filter(|title| !title.is_empty());
                let title = title.map(|title| format!(": {title}"));
                format!("commit {short}{}", title.unwrap_or_default())
            }
            Self::Custom { instructions } => instructions.trim().to_owned(),
        }
    }

    /// Says what of it is missing.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (what, word) = match self {
            Self::UncommittedChanges => return Ok(()),
            Self::BaseBranch { branch } => ("branch", branch),
            Self::Commit { sha, .. } => ("sha", sha),
            Self::Custom { instructions } => ("instructions", instructions),
        };
        match word.trim() {
            "" => Err(format!("{what} must not be empty")),
            _ => Ok(()),
        }
    }
}
