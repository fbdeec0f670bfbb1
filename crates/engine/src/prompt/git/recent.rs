//! The latest commits before a head, remembered: a commit never changes, nor do those before it.
//!
//! Threads of one repository begin often and its head moves seldom, so that git, which costs more
//! than all else a thread begins with, is asked for them once.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Heads that are remembered, the latest of them.
const HEADS: usize = 32;

/// A commit of a repository, by its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) root: PathBuf,
    pub(super) head: String,
}

static REMEMBERED: Mutex<VecDeque<(Tip, Vec<String>)>> = Mutex::new(VecDeque::new());

/// What git said of it, if it was asked.
pub(super) fn known(tip: &Tip) -> Option<Vec<String>> {
    let heads = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    heads.iter().find(|(known, _)| known == tip).map(|(_, commits)| commits.clone())
}

/// Git said this of it.
pub(super) fn learn(tip: Tip, commits: Vec<String>) {
    let mut heads = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    heads.retain(|(known, _)| *known != tip);
    heads.push_front((tip, commits));
    heads.truncate(HEADS);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(root: &str, head: usize) -> Tip {
        Tip { root: root.into(), head: format!("{head:040}") }
    }

    #[test]
    fn heads_are_known_by_their_repository_and_the_oldest_are_forgotten() {
        let commits = |head: usize| vec![format!("{head} subject")];
        for head in 0..=HEADS {
            learn(tip("/heads", head), commits(head));
        }
        assert_eq!(known(&tip("/heads", 0)), None);
        assert_eq!(known(&tip("/heads", 1)), Some(commits(1)));
        assert_eq!(known(&tip("/elsewhere", 1)), None);
        learn(tip("/heads", 1), commits(1));
        learn(tip("/heads", 0), commits(0));
        assert_eq!(known(&tip("/heads", 1)), Some(commits(1)));
        assert_eq!(known(&tip("/heads", 2)), None);
    }
}
