//! What is told of a repository.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bindery_engine::prompt::git::{Changes, Git, LIMIT, Question};
use bindery_engine::prompt::{Section, SectionKind, Snapshot};

use crate::place::Place;

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.args(identity).args(args).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository() -> Place {
    let place = Place::new();
    std::fs::remove_dir(place.project().join(".git")).unwrap();
    git(&place.project(), &["init", "-q", "-b", "trunk"]);
    place.write("project/a", "1");
    place.write("project/b", "1");
    git(&place.project(), &["add", "."]);
    git(&place.project(), &["commit", "-qm", "first <one>"]);
    place
}

fn put(folder: &Path, limit: Option<Duration>) -> Option<Question> {
    Question::put(folder, limit, &Snapshot::default())
}

fn ask(folder: &Path) -> Git {
    put(folder, Some(LIMIT)).unwrap().answer()
}

#[test]
fn a_repository_is_told() {
    let place = repository();
    let project = place.project();
    git(&project, &["remote", "add", "origin", "https://me:secret@host.example/x.git"]);
    git(&project, &["mv", "a", "c"]);
    place.write("project/b", "2");
    place.write("project/new/file", "");
    place.write("project/with \n line", "");
    let found = ask(&project.join("new"));
    assert_eq!(found.changes, Some(Changes { dirty: 2, untracked: 2 }));
    assert_eq!(found.remote.as_deref(), Some("https://host.example/x.git"));
    assert_eq!(found.branch.as_deref(), Some("trunk"));
    let head = found.head.clone().unwrap();
    let text = place.stable(&found.text()).replace(&head, "[head]").replace(&head[..7], "[short]");
    insta::assert_snapshot!(text, @"
    <git_context>
      <root>~/project</root>
      <branch>trunk</branch>
      <head>[head]</head>
      <remote>https://host.example/x.git</remote>
      <changed_files>2</changed_files>
      <untracked_files>2</untracked_files>
      <commit>[short] first &lt;one&gt;</commit>
    </git_context>
    ");
}

#[test]
fn commits_are_those_of_the_head_however_often_it_moves() {
    let place = repository();
    let project = place.project();
    let subjects = || {
        let recent = ask(&project).recent;
        recent.iter().map(|line| line[8..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([subjects(), subjects()], [["first <one>"], ["first <one>"]]);
    git(&project, &["commit", "-qm", "second", "--allow-empty"]);
    assert_eq!([subjects(), subjects()], [["second", "first <one>"], ["second", "first <one>"]]);
    git(&project, &["commit", "-q", "--amend", "-m", "other", "--allow-empty"]);
    assert_eq!(subjects(), ["other", "first <one>"]);
    git(&project, &["reset", "-q", "HEAD~"]);
    place.write("project/b", "2");
    assert_eq!(subjects(), ["first <one>"]);
    // What can change between two questions is asked for again.
    assert_eq!(ask(&project).changes, Some(Changes { dirty: 1, untracked: 0 }));
}

#[test]
fn packed_detached_unborn_and_worktrees() {
    let place = repository();
    let project = place.project();
    let head = ask(&project).head;
    git(&project, &["pack-refs", "--all"]);
    assert_eq!(ask(&project).head, head);
    git(&project, &["worktree", "add", "-q", "-b", "side", "../tree"]);
    let tree = ask(&place.root().join("tree"));
    assert_eq!((tree.branch.as_deref(), &tree.head), (Some("side"), &head));
    git(&project, &["checkout", "-q", "--detach"]);
    let detached = ask(&project);
    assert_eq!((detached.branch, detached.head), (None, head));
    let unborn = Place::new();
    std::fs::remove_dir(unborn.project().join(".git")).unwrap();
    git(&unborn.project(), &["init", "-q", "-b", "trunk"]);
    let found = ask(&unborn.project());
    assert_eq!((found.branch.as_deref(), found.head, found.recent), (Some("trunk"), None, vec![]));
}

#[test]
fn git_is_asked_for_nothing_that_would_not_be_told() {
    let place = repository();
    let project = place.project();
    let first = ask(&project);
    let section = Section { kind: SectionKind::Git, text: first.text(), sources: Vec::new() };
    let told = Snapshot::of(&[section]);
    place.write("project/b", "2");
    let again = || Question::put(&project, Some(LIMIT), &told).unwrap().answer();
    assert_eq!((first.changes.is_some(), again().changes), (true, None));
    git(&project, &["checkout", "-q", "-b", "side"]);
    assert_eq!(again().changes, Some(Changes { dirty: 1, untracked: 0 }));
}

#[test]
fn no_time_and_no_repository() {
    let place = repository();
    let found = put(&place.project(), Some(Duration::ZERO)).unwrap().answer();
    assert_eq!((found.changes, found.branch.as_deref()), (None, Some("trunk")));
    assert!(put(&place.root(), Some(LIMIT)).is_none());
    // A folder that only looks like one.
    place.write("odd/.git", "nonsense");
    assert!(put(&place.root().join("odd"), None).is_none());
    place.write("odd2/.git/HEAD", "ref: ../../../etc/passwd\n");
    assert_eq!(put(&place.root().join("odd2"), None).unwrap().answer().head, None);
}

#[cfg(unix)]
#[test]
fn nothing_of_the_repository_is_run() {
    use std::os::unix::fs::PermissionsExt;
    let place = repository();
    let mark = place.root().join("ran");
    let script = place.root().join("monitor");
    place.write("monitor", format!("#!/bin/sh\ntouch '{}'\n", mark.display()));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = script.to_string_lossy().into_owned();
    git(&place.project(), &["config", "core.fsmonitor", &path]);
    git(&place.project(), &["config", "core.pager", &path]);
    git(&place.project(), &["config", "log.showSignature", "true"]);
    git(&place.project(), &["config", "gpg.program", &path]);
    place.write("project/b", "2");
    assert_eq!(ask(&place.project()).changes, Some(Changes { dirty: 1, untracked: 0 }));
    assert!(!mark.exists());
}
