//! What a target comes to in a repository: the words that the reviewer is asked with, or nothing.

use std::path::Path;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::target::Target;
use crate::git::RepositoryView;
use crate::prompt::git;

/// Bytes of git's answers that are read; names of commits are shorter.
const MOST: u64 = 4096;

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Ask the reviewer this.
    Ask(String),
    /// There is nothing to review, for this reason.
    Nothing(String),
}

/// What git says: how it ended and the beginning of what it printed. None where it cannot be asked,
/// or takes too long.
type Said = Option<(i32, String)>;

/// Looks a target up. Git that cannot be asked is left to the reviewer; a name that git does not
/// know is told instead.
pub(super) async fn look(target: &Target, cwd: &Path) -> Result<Scope, String> {
    match target {
        Target::UncommittedChanges => Ok(uncommitted(cwd).await),
        Target::BaseBranch { branch } => against(branch.trim(), cwd).await,
        Target::Commit { sha, title } => commit(sha.trim(), title.as_deref(), cwd).await,
        Target::Custom { instructions } => Ok(Scope::Ask(instructions.trim().to_owned())),
    }
}

async fn uncommitted(cwd: &Path) -> Scope {
    let status = ask(cwd, &git::STATUS).await;
    match status {
        Some((0, changes)) if changes.is_empty() => {
            Scope::Nothing("There is nothing to review: everything is committed.".to_owned())
        }
        _ => Scope::Ask(
            "Review the changes in this working tree that are not committed: staged, unstaged and \
             untracked files. `git status` names them, `git diff HEAD` shows those of files that \
             git knows, and untracked files are read as they are. Report your findings in order \
             of priority."
                .to_owned(),
        ),
    }
}

async fn against(branch: &str, cwd: &Path) -> Result<Scope, String> {
    let Some(base) = find(branch, cwd).await? else {
        return Ok(Scope::Ask(format!(
            "Review what this branch changes against `{branch}`. Find their merge base first \
             (`git merge-base HEAD {branch}`), then look at `git diff` from it to the working \
             tree. Report your findings in order of priority."
        )));
    };
    let merge_base = match ask(cwd, &["merge-base", "HEAD", &base]).await {
        Some((0, name)) => name.trim().to_owned(),
        Some(_) => return Err(format!("this branch and `{branch}` have no commit in common")),
        None => base,
    };
    let plain = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let diff: Vec<&str> = plain.into_iter().chain([merge_base.as_str()]).collect();
    if let Some((0, _)) = ask(cwd, &diff).await {
        let words = format!("There is nothing to review: no file differs from `{branch}`.");
        return Ok(Scope::Nothing(words));
    }
    Ok(Scope::Ask(format!(
        "Review what this branch changes against `{branch}`. Their merge base is {merge_base}: \
         `git diff {merge_base}` shows the changes. Report your findings in order of priority."
    )))
}

async fn commit(sha: &str, title: Option<&str>, cwd: &Path) -> Result<Scope, String> {
    let name = find(sha, cwd).await?.unwrap_or_else(|| sha.to_owned());
    let title = title.map(str::trim).filter(|title| !title.is_empty());
    let title = title.map(|title| format!(" (\"{title}\")")).unwrap_or_default();
    Ok(Scope::Ask(format!(
        "Review what commit {name}{title} changes: `git show {name}` shows it. Report your \
         findings in order of priority."
    )))
}

/// The commit that a name stands for, here or at `origin`; none where git cannot be asked.
async fn find(name: &str, cwd: &Path) -> Result<Option<String>, String> {
    for prefix in ["", "refs/remotes/origin/"] {
        let commit = format!("{prefix}{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        match ask(cwd, &args).await {
            Some((0, found)) => return Ok(Some(found.trim().to_owned())),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Err(format!("no branch or commit `{name}` in this folder; `git branch --all` names them"))
}

async fn ask(cwd: &Path, args: &[&str]) -> Said {
    tokio::time::timeout(git::LIMIT, run(cwd, args)).await.ok().flatten()
}

async fn run(cwd: &Path, args: &[&str]) -> Said {
    let view = RepositoryView::open(cwd)?;
    let mut child = Command::from(view.command(args)).kill_on_drop(true).spawn().ok()?;
    let mut said = Vec::new();
    let mut out = child.stdout.take()?;
    (&mut out).take(MOST).read_to_end(&mut said).await.ok()?;
    // Git that has more to say ends when nobody listens, which is all that is wanted to know.
    drop(out);
    let code = child.wait().await.ok()?.code().unwrap_or(-1);
    Some((code, String::from_utf8_lossy(&said).into_owned()))
}
