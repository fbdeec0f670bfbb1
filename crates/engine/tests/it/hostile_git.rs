//! Repositories that are made to run programs of theirs when somebody looks at them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bindery_engine::prompt::Snapshot;
use bindery_engine::prompt::git::{Changes, Git, LIMIT, Question};
use tempfile::TempDir;

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.args(identity).args(args).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.project()).unwrap();
        git(&scene.project(), &["init", "-q", "-b", "trunk"]);
        fs::write(scene.project().join("a"), "1\n").unwrap();
        git(&scene.project(), &["add", "."]);
        git(&scene.project(), &["commit", "-qm", "first"]);
        scene
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("ran")
    }

    /// A program of the repository's.
    fn program(&self) -> String {
        let file = self.project().join("evil");
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", self.mark().display());
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file.display().to_string()
    }
}

fn ask(folder: &Path) -> Git {
    Question::put(folder, Some(LIMIT), &Snapshot::default()).unwrap().answer()
}

#[test]
fn looking_at_a_repository_runs_none_of_its_programs() {
    let scene = Scene::new();
    let (project, evil) = (scene.project(), scene.program());
    let included = scene.folder.path().join("included");
    fs::write(&included, format!("[core]\n\tfsmonitor = {evil}\n\tsshCommand = {evil}\n")).unwrap();
    let hooks = project.join(".git/hooks");
    for name in ["post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"]
    {
        fs::copy(&evil, hooks.join(name)).unwrap();
    }
    let config = format!(
        "[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n\teditor = {evil}\n\tgitProxy = {evil}\n\
         \tsshCommand = {evil}\n\taskPass = {evil}\n\thooksPath = {hooks}\n\
         \talternateRefsCommand = {evil}\n\
         [include]\n\tpath = {included}\n[filter \"x\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\
         \tprocess = {evil}\n\trequired = true\n[diff]\n\texternal = {evil}\n\
         [diff \"x\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n[gpg]\n\tprogram = {evil}\n\
         [log]\n\tshowSignature = true\n[alias]\n\tstatus = !{evil}\n\tlog = !{evil}\n\
         [credential]\n\thelper = {evil}\n[status]\n\tsubmoduleSummary = true\n\
         [extensions]\n\tworktreeConfig = true\n[pager]\n\tstatus = {evil}\n\tlog = {evil}\n",
        hooks = hooks.display(),
        included = included.display(),
    );
    let mut text = fs::read_to_string(project.join(".git/config")).unwrap();
    text.push_str(&config);
    fs::write(project.join(".git/config"), text).unwrap();
    fs::write(project.join(".git/config.worktree"), format!("[core]\n\tfsmonitor = {evil}\n"))
        .unwrap();
    // In every place that attributes come from.
    fs::write(project.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
    fs::create_dir_all(project.join(".git/info")).unwrap();
    fs::write(project.join(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
    fs::write(project.join("a"), "2\n").unwrap();
    let found = ask(&project);
    assert!(!scene.mark().exists(), "{}", fs::read_to_string(scene.mark()).unwrap());
    assert_eq!(found.changes, Some(Changes { dirty: 1, untracked: 2 }));
    assert_eq!(found.recent.len(), 1, "{:?}", found.recent);
    // The trap is one: git by itself walks into it.
    let status = Command::new("git").arg("status").current_dir(&project).output().unwrap();
    assert!(scene.mark().exists(), "{status:?}");
}

#[test]
fn a_submodule_with_a_configuration_of_its_own_runs_nothing() {
    let (scene, inner) = (Scene::new(), Scene::new());
    let project = scene.project();
    let from = inner.project().display().to_string();
    git(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "sub"]);
    git(&project, &["commit", "-qm", "second"]);
    let evil = scene.program();
    let config = project.join(".git/modules/sub/config");
    let mut text = fs::read_to_string(&config).unwrap();
    text.push_str(&format!("[core]\n\tfsmonitor = {evil}\n[filter \"x\"]\n\tclean = {evil}\n"));
    fs::write(&config, text).unwrap();
    fs::write(project.join(".git/modules/sub/info/attributes"), "* filter=x\n").unwrap();
    fs::write(project.join("sub/a"), "2\n").unwrap();
    git(&project, &["config", "diff.ignoreSubmodules", "none"]);
    git(&project, &["config", "submodule.sub.ignore", "none"]);
    ask(&project);
    ask(&project.join("sub"));
    assert!(!scene.mark().exists(), "{}", fs::read_to_string(scene.mark()).unwrap());
}

#[test]
fn a_working_tree_elsewhere_is_not_looked_at() {
    let scene = Scene::new();
    let project = scene.project();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("private"), "").unwrap();
    git(&project, &["config", "core.worktree", elsewhere.path().to_str().unwrap()]);
    assert_eq!(ask(&project).changes, Some(Changes { dirty: 0, untracked: 0 }));
}

#[test]
fn a_partial_clone_with_a_silent_remote_does_not_hold_the_turn_up() {
    let scene = Scene::new();
    let project = scene.project();
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("git://{}/x", silent.local_addr().unwrap());
    git(&project, &["config", "core.repositoryFormatVersion", "1"]);
    git(&project, &["config", "extensions.partialClone", "origin"]);
    git(&project, &["config", "remote.origin.url", &address]);
    git(&project, &["config", "remote.origin.promisor", "true"]);
    // Objects that git would have to fetch.
    let objects = project.join(".git/objects");
    for folder in fs::read_dir(&objects).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.file_name().is_some_and(|name| name.len() == 2) {
            fs::remove_dir_all(folder).unwrap();
        }
    }
    fs::write(project.join("a"), "22\n").unwrap();
    let begun = Instant::now();
    let found = ask(&project);
    assert!(begun.elapsed() < LIMIT + Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(found.recent.is_empty());
    silent.set_nonblocking(true).unwrap();
    assert!(silent.accept().is_err(), "nobody connected");
}

#[test]
fn worktrees_and_other_forms_of_repositories_are_still_told() {
    let scene = Scene::new();
    let project = scene.project();
    let tree = scene.folder.path().join("tree");
    git(&project, &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    fs::write(tree.join("new"), "").unwrap();
    let found = ask(&tree);
    assert_eq!(found.branch.as_deref(), Some("side"));
    assert_eq!(found.changes, Some(Changes { dirty: 0, untracked: 1 }));
    assert_eq!(found.recent.len(), 1);
    git(&project, &["pack-refs", "--all"]);
    git(&project, &["gc", "-q"]);
    fs::write(project.join(".git/info/exclude"), "ignored\n").unwrap();
    fs::write(project.join("ignored"), "").unwrap();
    assert_eq!(ask(&project).changes, Some(Changes { dirty: 0, untracked: 0 }));
    let other = tempfile::tempdir().unwrap();
    git(other.path(), &["init", "-q", "--object-format=sha256"]);
    fs::write(other.path().join("a"), "").unwrap();
    git(other.path(), &["add", "."]);
    git(other.path(), &["commit", "-qm", "long"]);
    let found = ask(other.path());
    assert_eq!((found.changes, found.recent.len()), (Some(Changes::default()), 1));
}
