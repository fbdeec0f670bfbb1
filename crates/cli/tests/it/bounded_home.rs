//! What a tenant's Codex home cannot give a tenant without full access.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::web::{Heard, text};

const BACKENDS: [&str; 2] = ["codex", "engine"];

/// A folder that no sandbox lets commands write in; `/tmp` would not do.
fn outside() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A model that runs this in whatever sandbox there is.
fn runs(cmd: &str) -> Script {
    let call = Reply::new([Step::exec(cmd, "call_in")]).always();
    Script::new([Reply::text("done").when_after_tool(true).always(), call])
}

fn config_of(daemon: &Daemon) -> PathBuf {
    daemon.stage.codex.home().join("config.toml")
}

fn append(daemon: &Daemon, table: &str) {
    let config = fs::read_to_string(config_of(daemon)).unwrap();
    fs::write(config_of(daemon), format!("{config}\n{table}\n")).unwrap();
}

async fn run(daemon: &Daemon, thread: &str, kind: &str, body: Value) -> Vec<Heard> {
    let (status, turn) = daemon.web.post(&format!("/v1/threads/{thread}/{kind}"), body).await;
    assert_eq!(status, 201, "{turn}");
    daemon.web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await
}

async fn call(daemon: &Daemon, backend: &str, codex: Value) -> (u16, String) {
    let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] }]);
    let body = json!({ "specification": "v3", "settings": { "backend": backend },
        "options": { "prompt": prompt, "providerOptions": { "codex": codex } } });
    let (status, said) = daemon.web.post("/v1/language-model/stream", body).await;
    (status, said.to_string())
}

fn writes() -> Value {
    json!({ "sandbox": "workspace-write", "approvalPolicy": "never" })
}

#[tokio::test]
async fn rules_of_the_home_let_no_command_out() {
    for backend in BACKENDS {
        let folder = outside();
        let mark = folder.path().join("mark");
        let daemon = Daemon::new(runs(&format!("touch {}", mark.display())));
        let rules = daemon.stage.codex.home().join("rules");
        fs::create_dir_all(&rules).unwrap();
        let rule = "prefix_rule(pattern = [\"touch\"], decision = \"allow\")\n";
        fs::write(rules.join("mine.rules"), rule).unwrap();
        let body = json!({ "backend": backend, "settings": writes() });
        let thread = daemon.thread(body.clone()).await;
        run(&daemon, &thread, "turns", json!({ "input": "go" })).await;
        if backend == "codex" {
            assert!(mark.exists(), "with full access the rule counts");
        }
        let _ = fs::remove_file(&mark);
        daemon.set_tenant("[policy]\nfull_access = false\nconfig = true\n");
        let new = daemon.thread(body).await;
        for thread in [&thread, &new] {
            for (kind, body) in [
                ("turns", json!({ "input": "go" })),
                ("review", json!({ "target": { "type": "uncommittedChanges" } })),
            ] {
                let all = run(&daemon, thread, kind, body).await;
                let end = &all.last().unwrap().data;
                let code = if backend == "codex" { json!("home_unbounded") } else { json!(null) };
                assert_eq!(end["error"]["code"], code, "{backend} {kind}: {all:#?}");
                assert!(!mark.exists(), "{backend} {kind}: it got out");
            }
        }
        let (status, said) = call(&daemon, backend, writes()).await;
        assert!(!mark.exists(), "{backend}: it got out by a call");
        if backend == "codex" {
            assert_eq!(status, 409, "{said}");
            assert!(said.contains("home_unbounded") && said.contains("mine.rules"), "{said}");
        }
    }
}

#[tokio::test]
async fn writable_roots_of_the_home_are_not_obeyed_past_the_tenants_root() {
    for backend in BACKENDS {
        let folder = outside();
        let mark = folder.path().join("mark");
        let daemon = Daemon::new(runs(&format!("touch {}", mark.display())));
        let inside = daemon.stage.codex.project().join("src");
        append(
            &daemon,
            &format!(
                "[sandbox_workspace_write]\nwritable_roots = ['/', '{}', '{}']\n",
                folder.path().display(),
                inside.display()
            ),
        );
        for policy in ["config = false", "config = true"] {
            daemon.set_tenant(&format!("[policy]\nfull_access = false\n{policy}\n"));
            let body = json!({ "backend": backend, "settings": writes() });
            let thread = daemon.thread(body).await;
            let all = run(&daemon, &thread, "turns", json!({ "input": "go" })).await;
            assert_eq!(text(&all), "done", "{backend} {policy}");
            assert!(!mark.exists(), "{backend} {policy}: a turn");
            let target = json!({ "target": { "type": "uncommittedChanges" } });
            run(&daemon, &thread, "review", target).await;
            assert!(!mark.exists(), "{backend} {policy}: a review");
            run(&daemon, &thread, "turns", json!({ "input": "again" })).await;
            assert!(!mark.exists(), "{backend} {policy}: the next turn");
            let (status, said) = call(&daemon, backend, writes()).await;
            assert_eq!(status, 200, "{said}");
            assert!(!mark.exists(), "{backend} {policy}: a call");
        }
    }
}

#[tokio::test]
async fn no_name_for_a_wider_sandbox_in_the_home_is_obeyed() {
    let profile = "profile = 'wide'\n[profiles.wide]\nsandbox_mode = 'danger-full-access'\n";
    for line in [
        "sandbox_mode = 'danger-full-access'",
        "default_permissions = ':danger-no-sandbox'",
        "default_permissions = ':danger-full-access'",
        "approvals_reviewer = 'auto_review'",
        profile,
    ] {
        let folder = outside();
        let mark = folder.path().join("mark");
        let daemon = Daemon::new(runs(&format!("touch {}", mark.display())));
        daemon.set_tenant("[policy]\nfull_access = false\n");
        let config = fs::read_to_string(config_of(&daemon)).unwrap();
        fs::write(config_of(&daemon), format!("{line}\n{config}")).unwrap();
        for settings in [json!({}), writes()] {
            let body = json!({ "backend": "codex", "settings": settings });
            let thread = daemon.thread(body).await;
            for (kind, body) in [
                ("turns", json!({ "input": "go" })),
                ("review", json!({ "target": { "type": "uncommittedChanges" } })),
            ] {
                let (status, turn) =
                    daemon.web.post(&format!("/v1/threads/{thread}/{kind}"), body).await;
                assert_eq!(status, 201, "{turn}");
                let turn = turn["id"].as_str().unwrap();
                let mut events = daemon.web.follow(turn, 0).await;
                // Some homes have Codex ask, which nobody answers here.
                events.until(|heard| ["interrupt", "end"].contains(&&*heard.event)).await;
                assert!(!mark.exists(), "{line}: {kind} {settings}");
                let stop = format!("/v1/turns/{turn}/interrupt");
                daemon.web.post(&stop, json!({})).await;
                daemon.web.follow(turn, 0).await.rest().await;
            }
            call(&daemon, "codex", writes()).await;
            assert!(!mark.exists(), "{line}: a call");
        }
    }
}

#[tokio::test]
async fn commands_do_not_write_the_home_that_bounds_them() {
    for backend in BACKENDS {
        let daemon = Daemon::new(Script::new([]));
        let home = daemon.stage.codex.home();
        // The home lies below `/tmp`, which a sandbox lets commands write otherwise.
        assert!(home.starts_with("/tmp"));
        let cmd = format!(
            "mkdir -p {home}/rules; echo x > {home}/rules/x.rules; echo x > {home}/planted; \
             echo >> {home}/config.toml; touch here",
            home = home.display()
        );
        let call = Reply::new([Step::exec(&cmd, "call_in")]).always();
        let done = Reply::text("done").when_after_tool(true).always();
        daemon.stage.model.push([done, call]);
        let before = fs::read_to_string(config_of(&daemon)).unwrap();
        daemon.set_tenant("[policy]\nfull_access = false\n");
        let body = json!({ "backend": backend, "settings": writes() });
        let thread = daemon.thread(body).await;
        let all = run(&daemon, &thread, "turns", json!({ "input": "go" })).await;
        assert_eq!(text(&all), "done", "{backend}");
        assert!(daemon.stage.codex.project().join("here").exists(), "{backend}: it did not run");
        assert!(!home.join("rules/x.rules").exists(), "{backend}");
        assert!(!home.join("planted").exists(), "{backend}");
        assert_eq!(fs::read_to_string(config_of(&daemon)).unwrap(), before, "{backend}");
    }
}

#[tokio::test]
async fn a_home_in_the_tenants_own_root_is_refused() {
    let daemon = Daemon::new(runs("touch ran"));
    let root = daemon.stage.codex.project();
    let home = root.join("homes/acme");
    fs::create_dir_all(&home).unwrap();
    fs::copy(config_of(&daemon), home.join("config.toml")).unwrap();
    let settings = format!("codex_home = '{}'\n[policy]\nfull_access = false\n", home.display());
    daemon.set_tenant(&settings);
    let thread = daemon.thread(json!({ "backend": "codex", "settings": writes() })).await;
    let all = run(&daemon, &thread, "turns", json!({ "input": "go" })).await;
    let error = &all.last().unwrap().data["error"];
    assert_eq!(error["code"], "home_unbounded", "{all:#?}");
    assert!(!root.join("ran").exists());
}

#[tokio::test]
async fn a_turn_is_stopped_when_one_of_its_writable_roots_is_replaced() {
    for backend in BACKENDS {
        let write = |name: &str| format!("echo mine > ../extra/{name}");
        let daemon = Daemon::new(Script::new([]));
        let root = daemon.stage.codex.project();
        let (extra, cwd) = (root.join("extra"), root.join("sub"));
        fs::create_dir_all(&extra).unwrap();
        fs::create_dir_all(&cwd).unwrap();
        let other = outside();
        daemon.stage.model.push([
            Reply::new([Step::gate("hold"), Step::exec(&write("late"), "c2")]).when_output_of("c1"),
            Reply::text("done").when_output_of("c2"),
            Reply::new([Step::exec(&write("early"), "c1")]).always(),
        ]);
        daemon.set_tenant("[policy]\nfull_access = false\nconfig = true\n");
        let settings = json!({ "approvalPolicy": "never", "sandboxPolicy": {
            "type": "workspaceWrite", "writableRoots": [extra], "excludeSlashTmp": true } });
        let thread = daemon.thread(json!({ "backend": backend, "cwd": "sub" })).await;
        let path = format!("/v1/threads/{thread}/turns");
        let body = json!({ "input": "go", "settings": settings });
        let (status, turn) = daemon.web.post(&path, body).await;
        assert_eq!(status, 201, "{turn}");
        daemon.stage.reached("hold").await;
        assert!(extra.join("early").exists(), "{backend}: the root is writable");
        fs::rename(&extra, root.join("kept")).unwrap();
        symlink(other.path(), &extra).unwrap();
        daemon.stage.model.open("hold");
        let all = daemon.web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await;
        let end = &all.last().unwrap().data;
        assert_eq!(end["error"]["code"], "folder_moved", "{backend}: {all:#?}");
        // The next turn does not begin with it either.
        let (_, turn) = daemon.web.post(&path, json!({ "input": "again" })).await;
        assert_ne!(turn["state"], "completed", "{turn}");
        if let Some(id) = turn["id"].as_str() {
            let all = daemon.web.follow(id, 0).await.rest().await;
            assert_ne!(all.last().unwrap().data["state"], "completed", "{backend}: {all:#?}");
        }
    }
}
