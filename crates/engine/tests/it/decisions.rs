//! What a model chooses in a call must not decide what the call may do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_engine::guard::Fenced;
use bindery_engine::prompter::{ExecForm, PatchForm};
use bindery_engine::sandbox;
use bindery_engine::thread::{Approval, ApprovalsReviewer, Sandbox};
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, free_call, say};

fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bindery-sandbox"))
}

/// The mechanisms of this machine, of which a test needs at least one.
fn mechanisms(protect: &[PathBuf]) -> Vec<sandbox::Sandbox> {
    let found = sandbox::Sandbox::all(&helper());
    assert!(!found.is_empty(), "this machine offers no sandbox to test");
    found.into_iter().map(|one| sandbox::Sandbox::with(one, helper(), protect.to_vec())).collect()
}

fn workspace(roots: Vec<PathBuf>) -> Sandbox {
    Sandbox::WorkspaceWrite {
        writable_roots: roots,
        network_access: false,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    }
}

/// A thread that may write in its folder, and asks nobody.
fn setting(script: Vec<Vec<Act>>, form: ExecForm, guard: Fenced) -> Setting {
    let mut setting = Setting::new(script)
        .profile(|profile| {
            profile.exec = form;
            profile.patch = PatchForm::Freeform;
        })
        .answer(|_, _| Some(Ok(json!({ "decision": "accept" }))));
    setting.guard = Arc::new(guard);
    setting.change(|settings| {
        settings.standing.approval = Approval::Never;
        settings.standing.sandbox = workspace(Vec::new());
    })
}

fn output(stage: &Stage, request: usize) -> String {
    stage.input_lines(request).pop().unwrap()
}

/// The same command in each form of the tool.
fn forms(script: &str, more: &Value) -> [(ExecForm, &'static str, Value); 3] {
    let with = |mut own: Value| {
        own.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        own
    };
    [
        (ExecForm::Unified, "exec_command", with(json!({ "cmd": script, "login": false }))),
        (ExecForm::Shell, "shell", with(json!({ "command": ["bash", "-c", script] }))),
        (ExecForm::ShellCommand, "shell_command", with(json!({ "command": script }))),
    ]
}

fn program(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_folder_of_a_command_is_no_writable_root() {
    for mechanism in mechanisms(&[]) {
        let outside = tempfile::tempdir().unwrap();
        let keys = outside.path().join("authorized_keys");
        let more = json!({ "workdir": outside.path() });
        for (form, tool, arguments) in forms("echo x >> authorized_keys; pwd", &more) {
            let acts = vec![call("c1", tool, &arguments)];
            let guard = Fenced::with(mechanism.clone());
            let stage = setting(vec![acts, say("done")], form, guard).open();
            assert_eq!(stage.turn("go").await["status"], "completed");
            assert!(!keys.exists(), "{tool}: {}", output(&stage, 1));
            let place = outside.path().canonicalize().unwrap();
            assert!(output(&stage, 1).contains(place.to_str().unwrap()), "it runs there: {tool}");
        }
    }
}

#[tokio::test]
async fn a_workspace_that_a_command_has_replaced_is_refused() {
    for mechanism in mechanisms(&[]) {
        let above = tempfile::tempdir().unwrap();
        let victim = tempfile::tempdir().unwrap();
        let (root, folder) = (above.path().to_owned(), above.path().join("folder"));
        fs::create_dir(&folder).unwrap();
        let swap = format!(
            "cd {0} && mv folder gone && ln -s {1} folder",
            root.display(),
            victim.path().display()
        );
        let patch = "*** Begin Patch\n*** Add File: by-patch\n+x\n*** End Patch\n";
        let cmd = |script: &str| json!({ "cmd": script, "login": false });
        let script = vec![
            vec![call("c1", "exec_command", &cmd(&swap))],
            vec![call("c2", "exec_command", &cmd("echo x > key"))],
            vec![free_call("c3", "apply_patch", patch)],
            say("done"),
        ];
        let guard = Fenced::with(mechanism.clone());
        let stage = setting(script, ExecForm::Unified, guard).change(move |settings| {
            settings.standing.approval = Approval::Never;
            settings.standing.cwd = folder;
            settings.standing.sandbox = workspace(vec![root]);
        });
        let stage = stage.open();
        assert_eq!(stage.turn("go").await["status"], "completed");
        let left: Vec<_> = fs::read_dir(victim.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}\n{}", output(&stage, 1));
        if above.path().join("folder").is_symlink() {
            for request in [2, 3] {
                let told = output(&stage, request);
                assert!(told.contains("is not the folder any more"), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn a_rule_about_a_program_allows_no_file_of_the_project() {
    let home = tempfile::tempdir().unwrap();
    let rules = home.path().join("rules.toml");
    let allow = "[[rule]]\nprefix = [\"cargo\", \"test\"]\ndecision = \"allow\"\n";
    fs::write(&rules, allow).unwrap();
    for mechanism in mechanisms(&[]) {
        let project = tempfile::tempdir().unwrap();
        let mark = home.path().join("escaped");
        let bin = project.path().join("sub");
        for name in ["bash", "cargo", "env", "sh"] {
            program(&bin.join(name), &format!("echo x > {}", mark.display()));
        }
        let bash = bin.join("bash");
        let out = |own: Value| {
            let mut own = own;
            own["sandbox_permissions"] = json!("require_escalated");
            own
        };
        let unified = |cmd: &str| out(json!({ "cmd": cmd, "login": false }));
        let words = |words: &[&str]| out(json!({ "command": words }));
        use ExecForm::{Shell, Unified};
        let mut with_shell = unified("cargo test");
        with_shell["shell"] = json!(bash);
        let mut relative = unified("cargo test");
        (relative["shell"], relative["workdir"]) = (json!("sub/bash"), json!(project.path()));
        let cases = [
            (Unified, "exec_command", with_shell),
            (Unified, "exec_command", relative),
            (Unified, "exec_command", unified("cargo test")),
            (Unified, "exec_command", unified("./sub/cargo test")),
            (Unified, "exec_command", unified("PATH=sub cargo test")),
            (Unified, "exec_command", unified("env cargo test")),
            (Unified, "exec_command", unified("alias cargo=sub/cargo; cargo test")),
            (Unified, "exec_command", unified("cargo() { sub/cargo; }; cargo test")),
            (Shell, "shell", words(&["cargo", "test"])),
            (Shell, "shell", words(&["bash", "-lc", "cargo test"])),
            (Shell, "shell", words(&[bash.to_str().unwrap(), "-lc", "cargo test"])),
            (Shell, "shell", words(&["sub/cargo", "test"])),
        ];
        for (form, tool, arguments) in cases {
            let acts = vec![call("c1", tool, &arguments)];
            let guard = Fenced::with(mechanism.clone()).with_rules(rules.clone(), home.path());
            let (cwd, path) = (project.path().to_owned(), bin.clone());
            let setting = setting(vec![acts, say("done")], form, guard);
            let stage = setting.change(move |settings| {
                settings.standing.approval = Approval::Never;
                settings.standing.sandbox = workspace(Vec::new());
                settings.standing.cwd = cwd;
                let path = format!(".:{}:/usr/bin:/bin", path.display());
                settings.environment.set.insert("PATH".to_owned(), path);
                settings.environment.set.insert("BASH_ENV".to_owned(), "sub/bash".to_owned());
            });
            let stage = stage.open();
            assert_eq!(stage.turn("go").await["status"], "completed");
            assert!(!mark.exists(), "{arguments}: {}", output(&stage, 1));
        }
    }
}

#[tokio::test]
async fn a_patch_cannot_change_the_rules_that_commands_are_judged_by() {
    let home = tempfile::tempdir().unwrap();
    let protect = home.path().join(".config/bindery");
    for mechanism in mechanisms(std::slice::from_ref(&protect)) {
        let names = [".config/bindery/rules.toml", ".aws/config", "sub/.git/hooks/post-checkout"];
        for name in names {
            let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n");
            let file = home.path().join(name);
            let parent = file.parent().unwrap().display().to_string();
            let cmd = format!("mkdir -p {parent}; echo x > {}", file.display());
            let cmd = json!({ "cmd": cmd, "login": false });
            let mut script = vec![vec![free_call("c1", "apply_patch", &patch)]];
            // A command can make a new repository below its folder, but no new rules.
            let bubblewrap = matches!(mechanism.mechanism(), sandbox::Mechanism::Bubblewrap { .. });
            if bubblewrap && !name.starts_with("sub") {
                script.push(vec![call("c2", "exec_command", &cmd)]);
            }
            script.push(say("done"));
            let cwd = home.path().to_owned();
            let guard = Fenced::with(mechanism.clone());
            let setting = setting(script, ExecForm::Unified, guard).change(move |settings| {
                settings.standing.approval = Approval::Never;
                settings.standing.sandbox = workspace(Vec::new());
                settings.standing.cwd = cwd;
            });
            let stage = setting.open();
            assert_eq!(stage.turn("go").await["status"], "completed");
            assert!(output(&stage, 1).contains("patch rejected"), "{}", output(&stage, 1));
            assert!(!file.exists(), "{name}: {}", output(&stage, 2));
        }
    }
}

#[tokio::test]
async fn what_cannot_be_reviewed_is_declined_and_said() {
    for reviewer in [ApprovalsReviewer::AutoReview, ApprovalsReviewer::GuardianSubagent] {
        let mechanism = mechanisms(&[]).remove(0);
        let arguments = json!({ "cmd": "echo x > made", "login": false,
            "sandbox_permissions": "require_escalated" });
        let patch = "*** Begin Patch\n*** Add File: ../made\n+x\n*** End Patch\n";
        let script = vec![
            vec![call("c1", "exec_command", &arguments)],
            vec![free_call("c2", "apply_patch", patch)],
            say("done"),
        ];
        let setting = setting(script, ExecForm::Unified, Fenced::with(mechanism));
        let stage = setting.change(move |settings| {
            settings.standing.approval = Approval::OnRequest;
            settings.standing.reviewer = reviewer;
            settings.standing.sandbox = workspace(Vec::new());
        });
        let stage = stage.open();
        assert_eq!(stage.turn("go").await["status"], "completed");
        assert_eq!(stage.count("item/commandExecution/requestApproval"), 0);
        assert_eq!(stage.count("item/fileChange/requestApproval"), 0);
        assert_eq!(stage.count("warning"), 2);
        assert!(!stage.folder.path().join("made").exists());
        for request in [1, 2] {
            let told = output(&stage, request);
            assert!(told.contains("automatic review"), "{told}");
        }
    }
}
