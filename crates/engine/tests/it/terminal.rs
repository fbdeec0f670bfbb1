//! Nothing that the engine starts reaches the terminal that the engine was started from.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bindery_engine::exec::Command;
use bindery_engine::mcp::{ServerSettings, Way};
use bindery_engine::prompt::Snapshot;
use bindery_engine::prompt::git::Question;
use bindery_engine::sandbox::Policy;
use tokio::io::AsyncReadExt;

use crate::exec::{LONG, script};
use crate::sandbox::{Scene, ran, sandboxes, workspace};
use crate::stage::{PATIENCE, Setting, say};

/// Where the inner run finds its scripts and leaves what they saw.
const FOLDER: &str = "BINDERY_TEST_TERMINAL";

/// Says whether the terminal opened, in the file that follows.
const TRY: &str = "if ( : < /dev/tty ) 2> /dev/null; then echo opened; else echo closed; fi > ";

/// Starts itself once more, on a terminal of its own: there it has something to lose.
#[tokio::test]
async fn no_child_of_the_engine_reaches_its_terminal() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return on_a_terminal(&PathBuf::from(folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    executable(
        &path.join("git"),
        &format!("#!/bin/sh\n{TRY}'{}'\n", path.join("git.saw").display()),
    );
    let (pty, pts) = pty_process::open().unwrap();
    let own = "terminal::no_child_of_the_engine_reaches_its_terminal";
    let paths = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let command = pty_process::Command::new(std::env::current_exe().unwrap());
    let command = command.args([own, "--exact", "--nocapture"]);
    let command = command.env("PATH", paths).env(FOLDER, path);
    let mut child = command.spawn(pts).unwrap();
    let (mut reader, _writer) = pty.into_split();
    let shown = tokio::spawn(async move {
        let mut shown = Vec::new();
        // A terminal that everybody has left answers with an error.
        let _ = reader.read_to_end(&mut shown).await;
        String::from_utf8_lossy(&shown).into_owned()
    });
    let status = tokio::time::timeout(LONG * 2, child.wait()).await.unwrap().unwrap();
    let shown = shown.await.unwrap();
    assert!(status.success(), "{shown}");
    assert!(shown.contains("1 passed"), "{shown}");
    assert!(!shown.contains("DRAWN"), "{shown}");
}

async fn on_a_terminal(folder: &Path) {
    fs::File::open("/dev/tty").expect("this process is on a terminal");
    let text = "(echo DRAWN > /dev/tty) 2> /dev/null; (read x < /dev/tty) 2> /dev/null && exit 1; \
                (: < /dev/tty) 2> /dev/null && exit 2; exit 7";
    assert_eq!(ran(script(text)).await.exit_code, 7, "without a sandbox");
    for sandbox in sandboxes() {
        let sandbox = sandbox.with_loopback(true);
        let scene = Scene::new();
        for policy in [Policy::ReadOnly, workspace(false), workspace(true)] {
            let command = sandbox.wrap(scene.command(text), &policy).unwrap();
            assert_eq!(ran(command).await.exit_code, 7, "{:?}", sandbox.mechanism());
        }
        // With a terminal of its own it reaches that one.
        let own = Command { tty: true, ..scene.command("echo x > /dev/tty && exit 8") };
        let ending = ran(sandbox.wrap(own, &Policy::ReadOnly).unwrap()).await;
        assert_eq!((ending.exit_code, ending.output.trim()), (8, "x"), "{:?}", sandbox.mechanism());
    }
    mcp_server(folder).await;
    git(folder);
}

async fn mcp_server(folder: &Path) {
    let saw = folder.join("mcp.saw");
    let server = ServerSettings {
        name: "toy".to_owned(),
        enabled: true,
        way: Way::Stdio {
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), format!("{TRY}'{}'", saw.display())],
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            cwd: None,
        },
        startup_timeout: PATIENCE,
        tool_timeout: PATIENCE,
        enabled_tools: None,
        disabled_tools: Vec::new(),
    };
    let setting = Setting::new(vec![say("done")]);
    let stage = setting.change(move |settings| settings.mcp = vec![server]).open();
    stage.turn("go").await;
    assert_eq!(fs::read_to_string(saw).unwrap(), "closed\n", "an MCP server");
}

fn git(folder: &Path) {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join(".git")).unwrap();
    fs::write(project.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let question = Question::put(project.path(), Some(LONG), &Snapshot::default());
    question.expect("a repository").answer();
    assert_eq!(fs::read_to_string(folder.join("git.saw")).unwrap(), "closed\n", "git");
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
