//! Commands of a turn behind the sandboxes that this machine offers.

use std::path::PathBuf;
use std::sync::Arc;

use bindery_engine::guard::Fenced;
use bindery_engine::prompter::ExecForm;
use bindery_engine::thread::{Approval, Sandbox};
use serde_json::json;

use crate::stage::{Setting, Stage, call, say};

fn stages(script: &str, approval: Approval, escalated: bool) -> Vec<Stage> {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_bindery-sandbox"));
    let found = crate::sandbox::mechanisms();
    let permissions = if escalated { "require_escalated" } else { "use_default" };
    let start = json!({
        "cmd": script, "login": false, "yield_time_ms": 30_000, "sandbox_permissions": permissions,
    });
    let stage = |mechanism| {
        let mechanism =
            bindery_engine::sandbox::Sandbox::with(mechanism, helper.clone(), Vec::new());
        let acts = vec![call("c1", "exec_command", &start)];
        let mut setting = Setting::new(vec![acts, say("done")])
            .profile(|profile| profile.exec = ExecForm::Unified)
            .answer(|_, _| Some(Ok(json!({ "decision": "decline" }))));
        setting.guard = Arc::new(Fenced::with(mechanism));
        let setting = setting.change(move |settings| {
            settings.standing.approval = approval;
            settings.standing.sandbox = Sandbox::WorkspaceWrite {
                writable_roots: Vec::new(),
                network_access: false,
                exclude_tmpdir_env_var: true,
                exclude_slash_tmp: true,
            };
        });
        setting.open()
    };
    found.into_iter().map(stage).collect()
}

fn output(stage: &Stage) -> String {
    stage.input_lines(1).pop().unwrap()
}

#[tokio::test]
async fn what_stays_in_the_sandbox_runs_unasked() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().display();
    let script = format!("echo in >> inside; echo out > {place}/outside");
    for approval in [Approval::Never, Approval::OnRequest] {
        for stage in stages(&script, approval, false) {
            assert_eq!(stage.turn("go").await["status"], "completed");
            // What the sandbox refuses is told to the model: nobody is asked, nothing runs twice.
            let ran = std::fs::read_to_string(stage.folder.path().join("inside")).unwrap();
            assert_eq!(ran, "in\n", "{}", output(&stage));
            assert!(!outside.path().join("outside").exists(), "{}", output(&stage));
            assert_eq!(stage.count("item/commandExecution/requestApproval"), 0);
            assert!(!output(&stage).contains("exited with code 0"), "{}", output(&stage));
        }
    }
}

#[tokio::test]
async fn what_wants_out_is_asked_for_or_refused() {
    for (approval, asked) in [(Approval::OnRequest, 1), (Approval::Never, 0)] {
        for stage in stages("echo x > made", approval, true) {
            assert_eq!(stage.turn("go").await["status"], "completed");
            assert!(!stage.folder.path().join("made").exists());
            assert_eq!(stage.count("item/commandExecution/requestApproval"), asked);
            assert!(output(&stage).contains("rejected:"), "{}", output(&stage));
        }
    }
}
