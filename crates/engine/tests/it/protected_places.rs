//! Places that run programs later, wherever a repository keeps them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_engine::exec::{Command, Ending, Processes};
use bindery_engine::sandbox::{Mechanism, Policy, Sandbox, SandboxError, WritableRoots};
use bindery_engine::service::disk::Disk;
use bindery_engine::service::house::House;
use bindery_engine::service::{Service, ServiceSettings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::exec::{LONG, script};
use crate::place::Place;
use crate::service::peer::Peer;

fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bindery-sandbox"))
}

fn workspace() -> Policy {
    Policy::WorkspaceWrite {
        roots: Vec::new(),
        network: false,
        exclude_slash_tmp: true,
        exclude_tmpdir: true,
    }
}

fn make(root: &Path, folders: &[&str], files: &[(&str, &str)]) {
    for folder in folders {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (file, text) in files {
        fs::write(root.join(file), text).unwrap();
    }
}

async fn ran(command: Command) -> Ending {
    let processes = Processes::new();
    let (process, _) = processes.start(command).unwrap();
    processes.finish(&process, LONG, &CancellationToken::new()).await.ending
}

/// Tries to write a file, by a command under every mechanism and by a patch.
async fn assert_protected(root: &Path, files: &[&str]) {
    let found = Sandbox::all(&helper());
    assert!(!found.is_empty(), "this machine offers no sandbox to test");
    for sandbox in found.into_iter().map(|one| Sandbox::with(one, helper(), Vec::new())) {
        for file in files {
            let text = format!("echo x > {file}");
            let command = Command { cwd: root.to_owned(), ..script(&text) };
            match sandbox.wrap(command, &workspace()) {
                Ok(command) => {
                    let ending = ran(command).await;
                    assert_ne!(ending.exit_code, 0, "{file}: {:?}", sandbox.mechanism());
                }
                // A link can be replaced under bubblewrap, so nothing runs there at all.
                Err(SandboxError::ProtectedLink(_)) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(!root.join(file).exists(), "{file}: {:?}", sandbox.mechanism());
        }
        let command = Command { cwd: root.to_owned(), ..script("echo x > work/new") };
        if let Ok(command) = sandbox.wrap(command, &workspace()) {
            assert_eq!(ran(command).await.exit_code, 0, "{:?}", sandbox.mechanism());
        }
    }
    let roots = WritableRoots::of(&workspace(), root, None, Vec::new()).unwrap();
    for file in files {
        assert!(roots.check(root, Path::new(file)).is_err(), "{file}");
    }
    assert!(roots.check(root, Path::new("work/new")).is_ok());
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    make(&root, &["work"], &[]);
    (folder, root)
}

#[tokio::test]
async fn a_repository_below_the_root_is_protected() {
    let (_folder, root) = folder();
    make(&root, &["a/b/.git/hooks", "a/c/.codex"], &[("a/b/.git/config", "")]);
    let files = ["a/b/.git/hooks/pre-commit", "a/b/.git/config.worktree", "a/c/.codex/hooks.json"];
    assert_protected(&root, &files).await;
}

#[tokio::test]
async fn a_repository_without_a_working_tree_is_protected() {
    let (_folder, root) = folder();
    let folders = ["a/x.git/hooks", "a/x.git/objects", "a/x.git/refs"];
    make(&root, &folders, &[("a/x.git/HEAD", "ref: refs/heads/x\n")]);
    assert_protected(&root, &["a/x.git/hooks/post-receive", "a/x.git/commondir"]).await;
}

#[tokio::test]
async fn what_a_worktree_shares_is_protected() {
    let (_folder, root) = folder();
    let files = [
        ("tree/.git", "gitdir: ../store/worktrees/tree\n"),
        ("store/worktrees/tree/commondir", "../..\n"),
    ];
    make(&root, &["tree", "store/hooks", "store/worktrees/tree"], &files);
    let paths = ["store/hooks/pre-commit", "store/worktrees/tree/config.worktree", "store/config"];
    assert_protected(&root, &paths).await;
}

#[tokio::test]
async fn a_folder_of_hooks_is_protected_where_the_configuration_puts_it() {
    let (_folder, root) = folder();
    let config = "[user]\n\tname = x\n[Core]\n\tHooksPath = \"./tools/hooks\"\n";
    make(&root, &[".git", "tools/hooks"], &[(".git/config", config)]);
    assert_protected(&root, &["tools/hooks/pre-commit"]).await;
}

#[tokio::test]
async fn a_repository_behind_a_link_is_protected() {
    let (_folder, root) = folder();
    make(&root, &["store/hooks"], &[("store/config", "")]);
    symlink("store", root.join(".git")).unwrap();
    assert_protected(&root, &["store/hooks/pre-commit"]).await;
    let bubblewrap = Mechanism::Bubblewrap { program: "bwrap".into(), own_proc: true };
    let sandbox = Sandbox::with(bubblewrap, helper(), Vec::new());
    let command = Command { cwd: root, ..script("true") };
    let wrapped = sandbox.wrap(command, &workspace());
    assert!(matches!(wrapped, Err(SandboxError::ProtectedLink(_))));
}

async fn served(place: &Place) -> (Service, Peer) {
    let house = House::new(place.home(), Vec::new()).with_helper(helper());
    let disk = Arc::new(Disk::new(place.root().join("codex")));
    let service = Service::start(Arc::new(house), disk, ServiceSettings::default());
    let peer = Peer::new(&service).await;
    (service, peer)
}

const SETTINGS: &str = "[sandbox_workspace_write]\nnetwork_access = true\n\
    exclude_slash_tmp = true\nexclude_tmpdir_env_var = true\nwritable_roots = [\"/extra\"]\n";

#[tokio::test]
async fn a_mode_by_name_comes_with_what_the_settings_say_of_it() {
    let place = Place::with(SETTINGS);
    let (service, mut peer) = served(&place).await;
    let expected = json!({ "type": "workspaceWrite", "writableRoots": ["/extra"],
        "networkAccess": true, "excludeTmpdirEnvVar": true, "excludeSlashTmp": true });
    let start = json!({ "cwd": place.project(), "sandbox": "workspace-write" });
    let opened = peer.ask("thread/start", start).await.unwrap();
    assert_eq!(opened["sandbox"], expected);
    let id = opened["thread"]["id"].clone();
    let mut sandbox =
        async |params: Value| peer.ask("thread/resume", params).await.unwrap()["sandbox"].clone();
    let closed = sandbox(json!({ "threadId": id, "sandbox": "read-only" })).await;
    assert_eq!(closed, json!({ "type": "readOnly", "networkAccess": false }));
    let open = sandbox(json!({ "threadId": id, "sandbox": "workspace-write" })).await;
    assert_eq!(open, expected);
    service.stop().await;
}

#[tokio::test]
async fn who_reviews_approvals_is_taken_and_told() {
    let place = Place::new();
    let (service, mut peer) = served(&place).await;
    let start = json!({ "cwd": place.project(), "approvalsReviewer": "auto_review" });
    let opened = peer.ask("thread/start", start).await.unwrap();
    assert_eq!(opened["approvalsReviewer"], "auto_review");
    let turn = json!({ "threadId": opened["thread"]["id"], "input": [],
        "approvalsReviewer": "nobody" });
    assert!(peer.ask("turn/start", turn).await.unwrap_err().contains("unknown variant `nobody`"));
    let place = Place::with("approvals_reviewer = \"nobody\"\n");
    let (other, mut peer) = served(&place).await;
    let start = json!({ "cwd": place.project() });
    let refused = peer.ask("thread/start", start).await.unwrap_err();
    assert!(refused.contains("approvals_reviewer"), "{refused}");
    service.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_clients_command_makes_neither_its_folder_nor_its_tmpdir_a_root() {
    let place = Place::with(SETTINGS);
    // Not below the folder of temporary files, which may be a root.
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (service, mut peer) = served(&place).await;
    let policy = |roots: Value| json!({ "type": "workspaceWrite", "writableRoots": roots, "excludeSlashTmp": true });
    let mut exec = async |policy: Value| {
        let params = json!({ "command": ["/bin/sh", "-c", "echo x > made"], "cwd": outside.path(),
            "env": { "TMPDIR": outside.path() }, "sandboxPolicy": policy, "timeoutMs": 60_000 });
        peer.ask("command/exec", params).await.unwrap()["exitCode"].clone()
    };
    assert_ne!(exec(policy(json!([]))).await, 0);
    assert!(!outside.path().join("made").exists());
    assert_eq!(exec(policy(json!([outside.path()]))).await, 0, "a root by name is one");
    service.stop().await;
}

#[tokio::test]
async fn hooks_are_protected_however_the_configuration_names_them() {
    let configs = [
        ("[core]\n\thooksPath = tools/\\\nhooks\n", ""),
        ("[core]\n\thooksPath = \"tools\"/hooks # here\n", ""),
        ("[include]\n\tpath = ../shared\n", "[core]\nhooksPath = tools/hooks\n"),
        ("[includeIf \"gitdir:~/nowhere/\"]\n\tpath = ../shared\n", "[core] hooksPath=tools/hooks"),
    ];
    for (config, shared) in configs {
        let (_folder, root) = folder();
        let files = [(".git/config", config), ("shared", shared)];
        make(&root, &[".git", "tools/hooks"], &files);
        assert_protected(&root, &["tools/hooks/pre-commit"]).await;
    }
}

/// A file that is included can name a program as well as the configuration itself.
#[tokio::test]
async fn files_that_the_configuration_includes_are_protected() {
    let (_folder, root) = folder();
    let config = "[include]\n\tpath = ../shared/one\n\tpath = ../shared/two\n";
    make(&root, &[".git", "shared"], &[(".git/config", config), ("shared/one", "[a]\nb=c\n")]);
    assert_protected(&root, &["shared/two/x"]).await;
    for sandbox in crate::sandbox::sandboxes() {
        let text = "echo x > shared/one";
        let command = Command { cwd: root.clone(), ..script(text) };
        let ending = ran(sandbox.wrap(command, &workspace()).unwrap()).await;
        assert_ne!(ending.exit_code, 0, "{:?}", sandbox.mechanism());
        assert_eq!(fs::read_to_string(root.join("shared/one")).unwrap(), "[a]\nb=c\n");
    }
}

#[tokio::test]
async fn a_repository_stays_protected_however_deep_it_lies_or_is_moved() {
    for sandbox in crate::sandbox::sandboxes() {
        let (_folder, root) = folder();
        let deep = "a/b/c/d/e/f";
        make(&root, &["near/.git/hooks", "a/b/c/d/e/f/own/.git/hooks"], &[]);
        let run = async |text: &str| {
            let command = Command { cwd: root.clone(), ..script(text) };
            ran(sandbox.wrap(command, &workspace()).unwrap()).await
        };
        let own = format!("{deep}/own/.git/hooks/x");
        assert_ne!(run(&format!("echo x > {own}")).await.exit_code, 0);
        // Neither it nor what holds it can be moved.
        for moved in [format!("mv near {deep}/far"), "mv a a2".to_owned(), "mv a/b a/b2".to_owned()]
        {
            assert_ne!(run(&moved).await.exit_code, 0, "{moved}: {:?}", sandbox.mechanism());
        }
        assert_ne!(run("echo x > near/.git/hooks/x").await.exit_code, 0);
        assert!(!root.join(own).exists() && !root.join("near/.git/hooks/x").exists());
        assert!(root.join("near").exists() && root.join(deep).exists());
    }
}

/// What holds a protected place could be moved away, and another be made in its place.
#[tokio::test]
async fn a_folder_that_holds_hooks_is_not_replaced() {
    for sandbox in crate::sandbox::sandboxes() {
        let (_folder, root) = folder();
        let config = "[core]\n\thooksPath = .husky/_\n";
        let files = [(".git/config", config), (".husky/_/pre-commit", "exit 0\n")];
        make(&root, &[".git", ".husky/_"], &files);
        let text = "mv .husky .old; mkdir -p .husky/_; echo evil > .husky/_/pre-commit; \
                    echo own > .husky/beside";
        let command = Command { cwd: root.clone(), ..script(text) };
        ran(sandbox.wrap(command, &workspace()).unwrap()).await;
        let hook = fs::read_to_string(root.join(".husky/_/pre-commit")).unwrap();
        assert_eq!(hook, "exit 0\n", "{:?}", sandbox.mechanism());
        assert_eq!(
            root.join(".husky/beside").exists(),
            *sandbox.mechanism() != Mechanism::Landlock
        );
    }
}
