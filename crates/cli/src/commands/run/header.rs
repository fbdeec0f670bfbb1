//! The first line of a turn: what runs, on what model, in which sandbox, where.

use std::path::Path;
use std::time::Duration;

use bindery::core::wire::app_server::reply::ThreadOpened;
use bindery::engine::git::RepositoryView;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

/// A large repository must not delay the turn it only decorates.
const GIT_PATIENCE: Duration = Duration::from_millis(300);

/// The facts in the order they are shown.
pub(in crate::commands) async fn facts(
    name: &str,
    opened: Option<&ThreadOpened>,
    cwd: &Path,
) -> Vec<String> {
    let mut facts = vec![name.to_owned()];
    if let Some(opened) = opened {
        facts.push(opened.model.clone());
        facts.extend(sandbox(&opened.sandbox));
    }
    facts.push(place(cwd).await);
    facts
}

/// `workspaceWrite` → `workspace-write`.
fn sandbox(policy: &Value) -> Option<String> {
    let mut name = String::new();
    for letter in policy.get("type")?.as_str()?.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    Some(name)
}

async fn place(cwd: &Path) -> String {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let folder = match home.and_then(|home| cwd.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => cwd.display().to_string(),
    };
    match timeout(GIT_PATIENCE, git(cwd)).await {
        Ok(Some(state)) => format!("{folder} ({state})"),
        _ => folder,
    }
}

/// `main, 2 changed`; none outside a repository.
async fn git(cwd: &Path) -> Option<String> {
    let view = RepositoryView::open(cwd)?;
    let status = ["status", "--porcelain", "--branch", "--ignore-submodules=all"];
    let mut git = Command::from(view.command(&status));
    let output = git.kill_on_drop(true).output().await.ok().filter(|out| out.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let branch = lines.next()?.strip_prefix("## ")?;
    let branch = branch.strip_prefix("No commits yet on ").unwrap_or(branch);
    let branch = branch.split("...").next()?.split(' ').next()?;
    Some(match lines.count() {
        0 => branch.to_owned(),
        changed => format!("{branch}, {changed} changed"),
    })
}
