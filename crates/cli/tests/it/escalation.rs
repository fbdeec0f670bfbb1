//! Leaving the sandbox, through a running server: who may allow it, and every way around it.

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, end_workers};
use crate::web::{Heard, Web, text};

const BACKENDS: [&str; 2] = ["codex", "engine"];

/// A model that wants to run this outside of the sandbox, once a turn.
fn wants_out(cmd: &str) -> Script {
    let arguments = json!({ "cmd": cmd, "sandbox_permissions": "require_escalated",
        "justification": "May it leave the sandbox?" });
    let call = Reply::new([Step::call("exec_command", arguments, "call_out")]).always();
    Script::new([Reply::text("done").when_after_tool(true).always(), call])
}

/// A model that runs this in whatever sandbox there is.
fn runs(cmd: &str) -> Script {
    let call = Reply::new([Step::exec(cmd, "call_in")]).always();
    Script::new([Reply::text("done").when_after_tool(true).always(), call])
}

/// A folder that no sandbox lets commands write in; `/tmp` would not do.
fn outside() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Starts a turn in a thread that writes nothing, and waits for its question.
async fn asked(daemon: &Daemon, backend: &str) -> (String, String) {
    let settings = json!({ "sandbox": "read-only", "approvalPolicy": "on-request" });
    let thread = daemon.thread(json!({ "backend": backend, "settings": settings })).await;
    let turn = daemon.say(&thread, "go").await;
    let mut events = daemon.web.follow(&turn, 0).await;
    let heard = events.until(|heard| heard.event == "interrupt").await;
    let token = heard.last().unwrap().data["token"].as_str().unwrap().to_owned();
    (turn, token)
}

async fn answer(web: &Web, token: &str, decision: Value) -> (u16, Value) {
    let body = json!({ "kind": "decision", "decision": decision });
    let (status, told) = web.post(&format!("/v1/interrupts/{token}/answer"), body).await;
    (status, told["code"].clone())
}

/// Home settings before those that a test's Codex has.
fn prepend(daemon: &Daemon, line: &str) {
    let path = daemon.stage.codex.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{line}\n{config}")).unwrap();
}

#[tokio::test]
async fn without_full_access_no_answer_lets_a_command_leave_the_sandbox() {
    for backend in BACKENDS {
        let daemon = Daemon::new(wants_out("touch escaped"));
        daemon.set_tenant("[policy]\nfull_access = false\n");
        let (turn, token) = asked(&daemon, backend).await;
        let (_, question) = daemon.web.get(&format!("/v1/interrupts/{token}")).await;
        for decision in question["decisions"].as_array().unwrap() {
            if !["decline", "cancel"].contains(&decision.as_str().unwrap_or_default()) {
                let refused = answer(&daemon.web, &token, decision.clone()).await;
                assert_eq!(refused, (403, json!("escalation_denied")), "{backend} {decision}");
            }
        }
        assert_eq!(answer(&daemon.web, &token, json!("decline")).await.0, 200);
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(text(&all), "done", "{backend}");
        assert!(!daemon.stage.codex.project().join("escaped").exists(), "{backend}");
    }
}

#[tokio::test]
async fn an_approver_is_somebody_who_has_had_no_part_in_the_thread() {
    for backend in BACKENDS {
        let daemon = Daemon::new(wants_out("touch approved"));
        daemon.set_tenant("[policy]\nfull_access = false\nescalation = 'approver'\n");
        let token_of = |args: &[&str]| {
            let made = daemon.tenant(&[&["token", "default"], args].concat());
            daemon.web.with(&made)
        };
        let (turn, token) = asked(&daemon, backend).await;
        let yes = json!("accept");
        let own = answer(&daemon.web, &token, yes.clone()).await;
        assert_eq!(own, (403, json!("approver_needed")), "{backend}");
        let namesake = token_of(&["--name", "First Start"]);
        let refused = answer(&namesake, &token, yes.clone()).await;
        assert_eq!(refused, (403, json!("approver_needed")), "{backend}");
        let runner = token_of(&["--name", "ci", "--role", "run"]);
        assert_eq!(answer(&runner, &token, yes.clone()).await, (403, json!("role_missing")));
        let approver = token_of(&["--name", "ann", "--role", "answer"]);
        assert_eq!(approver.post("/v1/threads", json!({})).await.0, 403);
        assert_eq!(answer(&approver, &token, yes).await.0, 200, "{backend}");
        daemon.web.follow(&turn, 0).await.rest().await;
        assert!(daemon.stage.codex.project().join("approved").exists(), "{backend}");
    }
}

/// Tokens of parties of this name, of a tenant whose approvers must be somebody else.
fn party(daemon: &Daemon, name: &str) -> Web {
    daemon.web.with(&daemon.tenant(&["token", "default", "--name", name]))
}

/// Sue, who has had a part in the thread, may not say yes to its question; Ann, who has not, may.
async fn only_ann_approves(daemon: &Daemon, backend: &str, turn: &str) {
    let (sue, ann) = (party(daemon, "sue"), party(daemon, "ann"));
    let mut events = daemon.web.follow(turn, 0).await;
    let heard = events.until(|heard| heard.event == "interrupt").await;
    let token = heard.last().unwrap().data["token"].as_str().unwrap().to_owned();
    let refused = answer(&sue, &token, json!("accept")).await;
    assert_eq!(refused, (403, json!("approver_needed")), "{backend}");
    assert!(!daemon.stage.codex.project().join("approved").exists(), "{backend}");
    assert_eq!(answer(&ann, &token, json!("accept")).await.0, 200, "{backend}");
    events.until(|heard| heard.data["type"] == "tool-result").await;
    assert!(daemon.stage.codex.project().join("approved").exists(), "{backend}");
}

const APPROVER: &str = "[policy]\nfull_access = false\nescalation = 'approver'\n";

fn asks() -> Value {
    json!({ "sandbox": "read-only", "approvalPolicy": "on-request" })
}

#[tokio::test]
async fn whoever_steers_a_turn_has_a_part_in_its_thread() {
    for backend in BACKENDS {
        let daemon = Daemon::new(wants_out("touch approved"));
        daemon.set_tenant(APPROVER);
        let (turn, _) = asked(&daemon, backend).await;
        let steer = format!("/v1/turns/{turn}/steer");
        let body = json!({ "input": "and be quick" });
        let (status, told) = party(&daemon, "sue").post(&steer, body).await;
        assert_eq!(status, 202, "{backend}: {told}");
        only_ann_approves(&daemon, backend, &turn).await;
    }
}

#[tokio::test]
async fn whoever_asks_again_has_a_part_in_the_thread() {
    for backend in BACKENDS {
        let daemon = Daemon::new(wants_out("touch approved"));
        daemon.set_tenant(APPROVER);
        let (turn, token) = asked(&daemon, backend).await;
        let worker = rustix::process::Pid::from_raw(daemon.workers()[0]).unwrap();
        rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
        daemon.web.follow(&turn, 0).await.rest().await;
        let path = format!("/v1/interrupts/{token}/ask-again");
        let (status, again) = party(&daemon, "sue").post(&path, json!({})).await;
        assert_eq!(status, 201, "{backend}: {again}");
        only_ann_approves(&daemon, backend, again["id"].as_str().unwrap()).await;
    }
}

#[tokio::test]
async fn a_call_that_names_a_threads_session_is_a_part_in_the_thread() {
    for backend in BACKENDS {
        let mut daemon = Daemon::new(Script::new([]));
        let plain = Reply::text("plain").when_user("plain").always();
        daemon.stage.model.push([plain]);
        daemon.set_tenant(APPROVER);
        let thread = daemon.thread(json!({ "backend": backend, "settings": asks() })).await;
        let turn = daemon.say(&thread, "plain").await;
        daemon.web.follow(&turn, 0).await.rest().await;
        let (_, row) = daemon.web.get(&format!("/v1/threads/{thread}")).await;
        let session = row["sessionId"].as_str().unwrap();
        // A session has one worker at a time: that of the thread makes room for that of the call.
        daemon.kill();
        end_workers(&daemon.data());
        daemon.again();
        let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "plain" }] }]);
        let codex = json!({ "threadId": session });
        let body = json!({ "specification": "v3", "settings": { "backend": backend },
            "options": { "prompt": prompt, "providerOptions": { "codex": codex } } });
        let mut call = party(&daemon, "sue").call("/v1/language-model/stream", body).await;
        let all = call.until(|heard| heard.data["type"] == "finish").await;
        assert_eq!(text(&all), "plain", "{backend}");
        let of_thread =
            |heard: &Heard| heard.data["providerMetadata"]["codex"]["threadId"] == session;
        assert!(all.iter().any(of_thread), "{all:#?}");
        daemon.kill();
        daemon.again();
        let Script { replies, .. } = wants_out("touch approved");
        daemon.stage.model.push(replies);
        let turn = daemon.say(&thread, "go").await;
        only_ann_approves(&daemon, backend, &turn).await;
    }
}

#[tokio::test]
async fn full_access_that_is_taken_away_is_gone_from_homes_and_threads_that_had_it() {
    for backend in BACKENDS {
        let folder = outside();
        let mark = folder.path().join("mark");
        let daemon = Daemon::new(runs(&format!("touch {}", mark.display())));
        prepend(&daemon, "sandbox_mode = 'danger-full-access'");
        let thread = daemon.thread(json!({ "backend": backend })).await;
        let turn = daemon.say(&thread, "go").await;
        daemon.web.follow(&turn, 0).await.rest().await;
        assert!(mark.exists(), "{backend}: the home gives full access");
        std::fs::remove_file(&mark).unwrap();
        daemon.set_tenant("[policy]\nfull_access = false\nconfig = true\n");
        let turn = daemon.say(&thread, "again").await;
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(text(&all), "done", "{backend}");
        assert!(!mark.exists(), "{backend}: the thread that had it");
        let path = format!("/v1/threads/{thread}/turns");
        for settings in [
            json!({ "sandbox": "danger-full-access" }),
            json!({ "sandboxPolicy": { "type": "externalSandbox" } }),
            json!({ "config": { "sandbox_mode": "danger-full-access" } }),
            json!({ "turnExtra": { "permissions": ":danger-no-sandbox" } }),
        ] {
            let body = json!({ "input": "go", "settings": settings });
            let (status, told) = daemon.web.post(&path, body).await;
            assert_eq!((status, &told["code"]), (403, &json!("forbidden")), "{settings}");
        }
        let fork = daemon.web.post(&format!("/v1/threads/{thread}/fork"), json!({})).await.1;
        let turn = daemon.say(fork["id"].as_str().unwrap(), "go").await;
        daemon.web.follow(&turn, 0).await.rest().await;
        assert!(!mark.exists(), "{backend}: a fork");
    }
}

/// Asks the socket of every worker to let it in, and says how each answers.
const ATTACK: &str = r#"
import glob, socket, sys
for path in glob.glob(sys.argv[1] + '/workers/*/s'):
    try:
        link = socket.socket(socket.AF_UNIX)
        link.connect(path)
        link.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n'
                     b'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
                     b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
        print(link.recv(64).split(b'\r\n')[0].decode())
    except OSError as error:
        print('refused:', error)
print('tried')
"#;

#[tokio::test]
async fn a_command_with_network_does_not_get_into_its_workers_socket() {
    let mut daemon = Daemon::new(Script::new([]));
    let attack = daemon.stage.file("attack.py", ATTACK);
    let command = format!("python3 {} {}", attack.display(), daemon.data().display());
    // Landlock lets commands write files that are there, but make none beside `.git`.
    let told = daemon.stage.file("told", "");
    let call = Step::exec(&format!("{command} > {} 2>&1", told.display()), "call_in");
    let done = Reply::text("done").when_after_tool(true).always();
    daemon.stage.model.push([done, Reply::new([call]).when_user("attack").always()]);
    prepend(&daemon, "sandbox_mode = 'workspace-write'");
    let path = daemon.stage.codex.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let network = "[sandbox_workspace_write]\nnetwork_access = true\n";
    std::fs::write(&path, format!("{config}\n{network}")).unwrap();
    daemon.set_tenant("[policy]\nfull_access = false\n");
    let thread = daemon.thread(json!({ "backend": "engine" })).await;
    for round in 0..2 {
        let turn = daemon.say(&thread, "attack").await;
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        let said = std::fs::read_to_string(&told).unwrap_or_default();
        assert!(said.contains("tried"), "round {round}: the attack did not run: {said} {all:?}");
        assert!(!said.contains(" 101 "), "round {round}: it got in: {said}");
        std::fs::write(&told, "").unwrap();
        if round == 0 {
            // The next daemon is let in by the same worker, and nobody else is.
            let before = daemon.workers();
            daemon.kill();
            daemon.again();
            assert_eq!(daemon.workers(), before);
        }
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked_or_loses_its_role() {
    let daemon = Daemon::new(vec![Reply::new([Step::begin("Half"), Step::gate("never")]).always()]);
    let named = |name: &str| {
        let made = daemon.tenant(&["token", "default", "--name", name]);
        let list: Value = serde_json::from_str(&daemon.tenant(&["list", "--json"])).unwrap();
        let tokens = list["tenants"][0]["tokens"].as_array().unwrap();
        let row = tokens.iter().find(|token| token["name"] == name).unwrap();
        (daemon.web.with(&made), row["id"].as_str().unwrap().to_owned())
    };
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "go").await;
    let (reader, reader_id) = named("reader");
    let mut stream = reader.follow(&turn, 0).await;
    stream.until(|heard| heard.data["type"] == "text-delta").await;
    daemon.tenant(&["revoke", &reader_id]);
    stream.rest().await;
    assert_eq!(reader.get(&format!("/v1/turns/{turn}")).await.0, 401);
    let (_, row) = daemon.web.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(row["state"], "running", "the turn is the tenant's, not the reader's");

    let (caller, caller_id) = named("caller");
    let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] }]);
    let body = json!({ "specification": "v3", "options": { "prompt": prompt } });
    let mut call = caller.call("/v1/language-model/stream", body).await;
    call.until(|heard| heard.data["type"] == "text-delta").await;
    daemon.tenant(&["roles", &caller_id, "--role", "answer"]);
    call.rest().await;
    assert_eq!(caller.get(&format!("/v1/turns/{turn}")).await.0, 200, "it still reads");
}
