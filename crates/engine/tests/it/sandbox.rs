//! Escapes, each refused by every mechanism that the machine offers.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bindery_engine::exec::{Command, Ending, Processes, State};
use bindery_engine::sandbox::environment::EnvironmentPolicy;
use bindery_engine::sandbox::roots::PathError;
use bindery_engine::sandbox::{
    Mechanism, PROTECTED, Policy, REQUIRE, Sandbox, SandboxError, WritableRoots, missing,
};
use bindery_testkit::skipped::report_skipped;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::exec::{LONG, script};

pub(crate) fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bindery-sandbox"))
}

/// Every mechanism that works here. Those that `BINDERY_REQUIRE` names have to, and on Linux at
/// least one, unless it says `none`: a test that tries nothing must not pass.
#[track_caller]
pub(crate) fn mechanisms() -> Vec<Mechanism> {
    let found = Sandbox::all(&helper());
    let usual = if cfg!(target_os = "linux") { "any" } else { "none" };
    let required = std::env::var(REQUIRE).unwrap_or_else(|_| usual.to_owned());
    if required == "any" {
        assert!(!found.is_empty(), "no sandbox works here; {REQUIRE}=none leaves them untested");
        return found;
    }
    let missing = missing(&found, &required);
    assert!(missing.is_empty(), "{REQUIRE} names what does not work here: {missing:?}");
    found
}

/// A sandbox of every mechanism.
#[track_caller]
pub(crate) fn sandboxes() -> Vec<Sandbox> {
    mechanisms().into_iter().map(|one| Sandbox::with(one, helper(), Vec::new())).collect()
}

/// A project with a repository, and a folder beside it.
pub(crate) struct Scene {
    project: TempDir,
    outside: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self::bare();
        fs::create_dir_all(scene.root().join(".git/hooks")).unwrap();
        fs::write(scene.root().join(".git/config"), "[core]\n").unwrap();
        fs::create_dir(scene.root().join("src")).unwrap();
        fs::write(scene.root().join("README"), "old\n").unwrap();
        scene
    }

    pub(crate) fn bare() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        Self { project: folder(), outside: folder() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outside.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn command(&self, text: &str) -> Command {
        Command { cwd: self.root(), ..script(text) }
    }
}

/// Temporary folders are where the tests are, so they must not be writable.
pub(crate) fn workspace(network: bool) -> Policy {
    Policy::WorkspaceWrite {
        roots: Vec::new(),
        network,
        exclude_slash_tmp: true,
        exclude_tmpdir: true,
    }
}

pub(crate) async fn ran(command: Command) -> Ending {
    let processes = Processes::new();
    let (process, _) = processes.start(command).unwrap();
    processes.finish(&process, LONG, &CancellationToken::new()).await.ending
}

pub(crate) async fn tried(sandbox: &Sandbox, scene: &Scene, policy: &Policy, text: &str) -> Ending {
    ran(sandbox.wrap(scene.command(text), policy).unwrap()).await
}

#[track_caller]
pub(crate) fn refused(ending: &Ending, sandbox: &Sandbox) {
    assert_ne!(ending.exit_code, 0, "{:?}: {}", sandbox.mechanism(), ending.output);
    assert!(!ending.output.contains("cannot limit the command"), "{}", ending.output);
}

#[tokio::test]
async fn a_command_works_where_it_may() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let text = "echo new > README && echo new > src/a && cat .git/config && echo > /dev/null; \
                    mkdir src/b && mv src/a src/b/c && exit 9";
        let ending = tried(&sandbox, &scene, &workspace(false), text).await;
        assert_eq!((ending.exit_code, ending.output.as_str()), (9, "[core]\n"), "{sandbox:?}");
        assert_eq!(fs::read_to_string(scene.root().join("src/b/c")).unwrap(), "new\n");
    }
}

#[tokio::test]
async fn writing_outside_is_refused() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let file = scene.outside("file");
        fs::write(&file, "kept").unwrap();
        let path = file.display();
        for text in [
            format!("echo x > {path}"),
            format!("rm {path}"),
            format!("mv {path} ."),
            format!("ln {path} src/hard && echo x > src/hard"),
            format!("truncate -s 0 {path}"),
            format!("mkdir {path}.d"),
        ] {
            refused(&tried(&sandbox, &scene, &workspace(false), &text).await, &sandbox);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert!(!scene.outside("file.d").exists());
    }
}

#[tokio::test]
async fn a_link_out_of_the_root_leads_nowhere() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let file = scene.outside("file");
        fs::write(&file, "kept").unwrap();
        symlink(&file, scene.root().join("link")).unwrap();
        symlink(scene.outside(""), scene.root().join("src/folder")).unwrap();
        for text in ["echo x > link", "echo x > src/folder/file", "ln -sf /etc l; echo x > l/x"] {
            refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    }
}

#[tokio::test]
async fn the_repository_is_protected() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        for text in [
            "echo x > .git/config",
            "echo x > .git/hooks/pre-commit",
            "ln -s ../../evil .git/hooks/pre-commit",
            "mv .git gone",
            "rm -r .git",
            "echo x > src/hook; mv src/hook .git/hooks/pre-commit && cat .git/hooks/pre-commit",
        ] {
            refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        }
        assert_eq!(fs::read_to_string(scene.root().join(".git/config")).unwrap(), "[core]\n");
        assert_eq!(fs::read_dir(scene.root().join(".git/hooks")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn what_is_not_there_yet_is_protected() {
    for sandbox in sandboxes().into_iter().filter(|one| *one.mechanism() != Mechanism::Landlock) {
        let scene = Scene::bare();
        for name in PROTECTED {
            let text = format!("mkdir -p {name} && echo x > {name}/file");
            refused(&tried(&sandbox, &scene, &workspace(false), &text).await, &sandbox);
        }
        let ending = tried(&sandbox, &scene, &workspace(false), "echo x > new").await;
        assert_eq!(ending.exit_code, 0, "{}", ending.output);
        let left = || fs::read_dir(scene.root()).unwrap().count() == 1;
        let tidied = async {
            while !left() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, tidied).await.expect("only the new file should be left");
    }
}

#[tokio::test]
async fn the_homes_of_rules_are_protected_wherever_they_are() {
    for found in sandboxes() {
        let scene = Scene::bare();
        let home = scene.root().join("a/home");
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(scene.root().join("a/other")).unwrap();
        let sandbox = Sandbox::with(found.mechanism().clone(), helper(), vec![home.clone()]);
        let text = "echo x > a/home/rules";
        refused(&tried(&sandbox, &scene, &workspace(false), text).await, &sandbox);
        let ending = tried(&sandbox, &scene, &workspace(false), "echo x > a/other/file").await;
        assert_eq!(ending.exit_code, 0, "{}", ending.output);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn reading_only_is_reading_only() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let text = "cat README; echo x > README || touch src/x || exit 3";
        let ending = tried(&sandbox, &scene, &Policy::ReadOnly, text).await;
        assert_eq!(ending.exit_code, 3, "{sandbox:?}: {}", ending.output);
        assert!(ending.output.starts_with("old\n"), "{}", ending.output);
        assert_eq!(fs::read_dir(scene.root().join("src")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_network_is_off_unless_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    for sandbox in sandboxes() {
        let sandbox = sandbox.with_loopback(true);
        let scene = Scene::new();
        let bash = |policy: &Policy| {
            let argv = ["/bin/bash", "-c", &text].map(Into::into).to_vec();
            sandbox.wrap(Command { argv, ..scene.command("") }, policy).unwrap()
        };
        refused(&ran(bash(&workspace(false))).await, &sandbox);
        refused(&ran(bash(&Policy::ReadOnly)).await, &sandbox);
        assert!(listener.accept().is_err(), "{:?} let it through", sandbox.mechanism());
        let ending = ran(bash(&workspace(true))).await;
        assert_eq!(ending.exit_code, 0, "{:?}: {}", sandbox.mechanism(), ending.output);
        listener.accept().unwrap();
    }
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let ours = std::process::id();
        let text = format!("kill -0 {ours}");
        refused(&tried(&sandbox, &scene, &workspace(false), &text).await, &sandbox);
        if *sandbox.mechanism() != Mechanism::Landlock {
            let text = format!("cat /proc/{ours}/environ");
            refused(&tried(&sandbox, &scene, &workspace(false), &text).await, &sandbox);
        }
        let text = "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status";
        let ending = tried(&sandbox, &scene, &workspace(false), text).await;
        assert_eq!(ending.output, "NoNewPrivs:\t1\nSeccomp:\t2\n", "{:?}", sandbox.mechanism());
    }
}

/// By number, as the shell has no word for it. Every Debian has perl; where it is missing the test
/// above has to do.
#[tokio::test]
#[cfg(target_arch = "x86_64")]
async fn tracing_and_rings_are_refused() {
    if !Path::new("/usr/bin/perl").is_file() {
        report_skipped("there is no perl");
        return;
    }
    // ptrace(PTRACE_TRACEME), process_vm_readv, io_uring_setup, and the first by its other number.
    let calls = ["101, 0, 0, 0, 0", "310, 1, 0, 0, 0, 0, 0", "425, 1, 0", "0x40000000 | 101, 0"];
    for sandbox in sandboxes() {
        let sandbox = sandbox.with_loopback(true);
        let scene = Scene::new();
        for call in calls {
            let text = format!("perl -e 'exit(syscall({call}) == -1 && $! == 1 ? 7 : 0)'");
            let ending = tried(&sandbox, &scene, &workspace(true), &text).await;
            assert_eq!(ending.exit_code, 7, "{:?}: {call}", sandbox.mechanism());
        }
    }
}

#[tokio::test]
async fn a_secret_is_not_in_the_environment() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let mut command = scene.command("env");
        let ours = command.env.clone().into_iter();
        let secrets = ["OPENAI_API_KEY", "Github_Token", "AWS_SECRET_ACCESS", "PGPASSWORD"];
        let secrets = secrets.map(|name| (name.into(), "hunter2".into()));
        command.env = EnvironmentPolicy::default().apply(ours.chain(secrets));
        let ending = ran(sandbox.wrap(command, &workspace(false)).unwrap()).await;
        assert!(ending.output.contains("PATH=") && !ending.output.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_terminal_works_within() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let text = "trap 'echo caught; exit 5' INT; test -t 0 && test -t 1 && echo ready; \
                    read x; echo got $x; while :; do sleep 0.01; done";
        let command = Command { tty: true, ..scene.command(text) };
        let command = sandbox.wrap(command, &workspace(false)).unwrap();
        let (processes, none) = (Processes::new(), CancellationToken::new());
        let (process, mut deltas) = processes.start(command).unwrap();
        let mut seen = String::new();
        let mut sent = false;
        let ended = async {
            while let Some(delta) = deltas.next().await {
                seen += &delta.text;
                if seen.contains("ready") && !sent {
                    sent = true;
                    let window = Duration::from_millis(1);
                    processes.write(process.session(), "words\n", window, &none).await.unwrap();
                }
                if seen.contains("got words") {
                    break;
                }
            }
        };
        tokio::time::timeout(LONG, ended).await.expect("no answer");
        let chunk = processes.write(process.session(), "\u{3}", LONG, &none).await.unwrap();
        assert_eq!(chunk.state, State::Exited(5), "{:?}: {seen}", sandbox.mechanism());
        assert!(chunk.output.ends_with("caught\r\n"), "{}", chunk.output);
    }
}

#[tokio::test]
async fn ending_reaches_all_within() {
    for sandbox in sandboxes() {
        let scene = Scene::new();
        let text = "(trap '' TERM; touch src/alive; while :; do sleep 0.01; done) & \
                    trap 'echo asked; exit 4' TERM; echo ready; while :; do sleep 0.01; done";
        let command = sandbox.wrap(scene.command(text), &workspace(false)).unwrap();
        let processes = Processes::new();
        let (process, mut deltas) = processes.start(command).unwrap();
        let mut seen = String::new();
        while !seen.contains("ready") {
            seen += &tokio::time::timeout(LONG, deltas.next()).await.unwrap().unwrap().text;
        }
        process.end();
        let ending = tokio::time::timeout(LONG, process.ended()).await.unwrap();
        assert_eq!(ending.exit_code, 4, "{:?}: {}", sandbox.mechanism(), ending.output);
        tokio::time::timeout(LONG, processes.end_all()).await.unwrap();
    }
}

#[test]
fn without_a_mechanism_nothing_is_limited() {
    let sandbox = Sandbox::with(Mechanism::None, helper(), Vec::new());
    let wrapped = sandbox.wrap(script("true"), &Policy::workspace_write());
    assert!(matches!(wrapped, Err(SandboxError::NoMechanism)));
    let free = sandbox.wrap(script("true"), &Policy::FullAccess).unwrap();
    assert_eq!(free, script("true"));
}

#[test]
fn the_whole_system_is_no_root() {
    let sandbox = Sandbox::with(Mechanism::Landlock, helper(), Vec::new());
    let command = Command { cwd: "/".into(), ..script("true") };
    let wrapped = sandbox.wrap(command, &Policy::workspace_write());
    assert!(matches!(wrapped, Err(SandboxError::WholeSystem)));
}

#[test]
fn a_protected_link_is_refused() {
    let scene = Scene::bare();
    symlink(scene.outside(""), scene.root().join(".git")).unwrap();
    let bubblewrap = Mechanism::Bubblewrap { program: "bwrap".into(), own_proc: true };
    let sandbox = Sandbox::with(bubblewrap, helper(), Vec::new());
    let wrapped = sandbox.wrap(scene.command("true"), &workspace(false));
    assert!(matches!(wrapped, Err(SandboxError::ProtectedLink(_))));
}

fn roots(scene: &Scene, policy: &Policy) -> WritableRoots {
    WritableRoots::of(policy, &scene.root(), None, vec![scene.root().join("home")]).unwrap()
}

#[test]
fn a_patch_may_go_where_a_command_may() {
    let scene = Scene::new();
    let roots = roots(&scene, &workspace(false));
    let (root, outside) = (scene.root(), scene.outside("file"));
    symlink(&outside, root.join("link")).unwrap();
    symlink(scene.outside(""), root.join("folder")).unwrap();
    symlink("src", root.join("inner")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    symlink(".git", root.join("repository")).unwrap();
    let absolute = outside.to_str().unwrap();
    let own = root.join("src/own");
    #[rustfmt::skip]
    let table = [
        ("src/a",            "src/a"),
        ("new/deep/file",    "new/deep/file"),
        ("inner/a",          "src/a"),
        ("src/../README",    "README"),
        (own.to_str().unwrap(), "src/own"),
        (absolute,           "outside"),
        ("../file",          "outside"),
        ("new/../../file",   "outside"),
        ("link",             "outside"),
        ("folder/x/y",       "outside"),
        ("inner/../../x",    "outside"),
        (".git/config",      "protected"),
        (".GIT/hooks/x",     "protected"),
        ("src/../.git/x",    "protected"),
        ("repository/x",     "protected"),
        (".codex/rules/x",   "protected"),
        ("home/rules.toml",  "protected"),
        ("circle/x",         "follow"),
    ];
    for (path, expected) in table {
        let found = match roots.check(&root, Path::new(path)) {
            Ok(place) => place.path().strip_prefix(&root).unwrap().display().to_string(),
            Err(PathError::Outside(_)) => "outside".to_owned(),
            Err(PathError::Protected(_)) => "protected".to_owned(),
            Err(_) => "follow".to_owned(),
        };
        assert_eq!(found, expected, "{path}");
    }
    let nowhere = self::roots(&scene, &Policy::ReadOnly);
    for path in ["src/a", "/etc/a"] {
        let refused = nowhere.check(&root, Path::new(path)).unwrap_err();
        assert!(matches!(refused, PathError::ReadOnly(_)), "{refused}");
        assert!(refused.to_string().starts_with("the sandbox is read-only"), "{refused}");
    }
    let anywhere = self::roots(&scene, &Policy::FullAccess);
    assert_eq!(anywhere.check(&root, &outside).unwrap().path(), outside);
}

#[test]
fn a_worktree_protects_the_folder_its_file_names() {
    let scene = Scene::bare();
    fs::create_dir_all(scene.root().join("real/hooks")).unwrap();
    fs::write(scene.root().join(".git"), "gitdir: real\n").unwrap();
    let roots = roots(&scene, &workspace(false));
    let checked = roots.check(&scene.root(), Path::new("real/hooks/x"));
    assert!(matches!(checked, Err(PathError::Protected(_))));
}

#[test]
fn files_are_written_through_the_check() {
    let scene = Scene::new();
    let roots = roots(&scene, &workspace(false));
    let place = roots.check(&scene.root(), Path::new("new/deep/file")).unwrap();
    place.write(b"one").unwrap();
    place.write(b"2").unwrap();
    assert_eq!(place.read().unwrap(), b"2");
    place.remove().unwrap();
    assert!(!place.path().exists());
}

#[test]
fn a_link_put_in_the_way_after_the_check_is_not_followed() {
    let scene = Scene::new();
    let roots = roots(&scene, &workspace(false));
    let (folder, link) = (scene.root().join("race"), scene.root().join("race-link"));
    symlink(scene.outside(""), &link).unwrap();
    fs::create_dir(&folder).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Folder and link change places all the time.
            let spare = scene.root().join("race-spare");
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&folder, &spare);
                let _ = fs::rename(&link, &folder);
                let _ = fs::rename(&folder, &link);
                let _ = fs::rename(&spare, &folder);
            }
        });
        let mut written = 0;
        for _ in 0..20_000 {
            if let Ok(place) = roots.check(&scene.root(), Path::new("race/file")) {
                written += usize::from(place.write(b"x").is_ok());
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(written > 0, "nothing was written at all");
    });
    assert_eq!(fs::read_dir(scene.outside("")).unwrap().count(), 0);
}
