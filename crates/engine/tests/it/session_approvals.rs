//! A yes for the session is one to what a command ran when a person was asked, and to nothing that
//! was put in its place since.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bindery_engine::guard::Fenced;
use bindery_engine::prompter::ExecForm;
use bindery_engine::sandbox;
use bindery_engine::thread::{Approval, Sandbox};
use serde_json::{Value, json};

use crate::sandbox::{helper, mechanisms};
use crate::stage::{Act, Setting, Stage, call, say};

fn program(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("{text}\n")).unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

fn out(cmd: &str) -> Vec<Act> {
    let arguments =
        json!({ "cmd": cmd, "login": false, "sandbox_permissions": "require_escalated" });
    vec![call("c", "exec_command", &arguments)]
}

fn within(cmd: &str) -> Vec<Act> {
    vec![call("c", "exec_command", &json!({ "cmd": cmd, "login": false }))]
}

/// A thread in this folder that asks; every question is answered alike.
fn stage(
    mechanism: sandbox::Mechanism,
    project: &Path,
    script: Vec<Vec<Act>>,
    answer: impl Fn() -> Value + Send + Sync + 'static,
) -> Stage {
    let mechanism = sandbox::Sandbox::with(mechanism, helper(), Vec::new());
    let mut setting = Setting::new(script)
        .profile(|profile| profile.exec = ExecForm::Unified)
        .answer(move |_, _| Some(Ok(json!({ "decision": answer() }))));
    setting.guard = Arc::new(Fenced::with(mechanism));
    let (cwd, path) = (project.to_owned(), project.join("bin"));
    let setting = setting.change(move |settings| {
        settings.standing.approval = Approval::OnRequest;
        settings.standing.cwd = cwd;
        settings.standing.sandbox = Sandbox::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: false,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let path = format!("{}:/usr/bin:/bin", path.display());
        settings.environment.set.insert("PATH".to_owned(), path);
    });
    setting.open()
}

const QUESTION: &str = "item/commandExecution/requestApproval";

#[tokio::test]
async fn a_script_that_was_changed_is_asked_about_again() {
    // What is allowed for the session, and what a command in the sandbox changes then.
    let cases = [
        ("./run.sh", "echo 'echo bad' > run.sh"),
        ("sh run.sh", "echo 'echo bad' > run.sh"),
        ("sh -c './run.sh'", "echo 'echo bad' > run.sh"),
        ("cd sub && ./run.sh", "echo 'echo bad' > sub/run.sh"),
        ("tool", "echo 'echo bad' > bin/python9"),
        ("sh < run.sh", "echo 'echo bad' > run.sh"),
        ("true && ./run.sh", "echo 'echo bad' > run.sh; touch -r sub/run.sh run.sh || true"),
    ];
    for mechanism in mechanisms() {
        for (command, change) in cases {
            let project = tempfile::tempdir().unwrap();
            for name in ["run.sh", "sub/run.sh", "bin/python9"] {
                program(&project.path().join(name), "#!/bin/sh\necho good");
            }
            program(&project.path().join("bin/tool"), "#!/usr/bin/env python9");
            let script =
                vec![out(command), out(command), within(change), out(command), say("done")];
            let asked = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&asked);
            let answer = move || match count.fetch_add(1, Ordering::Relaxed) {
                0 => json!("acceptForSession"),
                _ => json!("decline"),
            };
            let stage = stage(mechanism.clone(), project.path(), script, answer);
            assert_eq!(stage.turn("go").await["status"], "completed");
            let told = |request| stage.input_lines(request).pop().unwrap();
            assert!(told(2).contains("good"), "{mechanism:?} {command}: {}", told(2));
            assert!(told(3).contains("code 0"), "{mechanism:?} {change}: {}", told(3));
            assert!(told(4).contains("rejected"), "{mechanism:?} {command}: {}", told(4));
            assert_eq!(stage.count(QUESTION), 2, "{mechanism:?} {command}");
        }
    }
}

#[tokio::test]
async fn a_script_that_changes_while_it_is_asked_about_does_not_run() {
    for decision in ["accept", "acceptForSession"] {
        let mechanism = mechanisms().remove(0);
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join("run.sh");
        program(&file, "#!/bin/sh\necho good");
        let swapped = file.clone();
        let answer = move || {
            program(&swapped, "#!/bin/sh\necho bad > made");
            json!(decision)
        };
        let stage = stage(mechanism, project.path(), vec![out("./run.sh"), say("done")], answer);
        assert_eq!(stage.turn("go").await["status"], "completed");
        let told = stage.input_lines(1).pop().unwrap();
        assert!(told.contains("changed while it was asked about"), "{told}");
        assert!(!project.path().join("made").exists());
    }
}
