//! `bindery tenant` and `bindery serve --check`, as a person runs them.

use std::path::Path;
use std::process::Output;

use bindery_testkit::model::Script;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::stage::Stage;

/// A command's exit code and words, with the data folder called `DATA`.
fn told(output: &Output, data: &Path) -> (Option<i32>, String) {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    let text = String::from_utf8(text).unwrap().replace(data.to_str().unwrap(), "DATA");
    (output.status.code(), text)
}

fn tenant(stage: &Stage, data: &Path, args: &[&str]) -> (Option<i32>, String) {
    let all = [&["tenant", "--data", data.to_str().unwrap()], args].concat();
    told(&stage.bindery(&all).output().unwrap(), data)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

#[tokio::test]
async fn a_token_is_made_used_and_void_at_once() {
    let daemon = Daemon::new(Script::always("ok"));
    let added = json_of(&daemon.tenant(&["add", "acme", "--json"]));
    assert_eq!(added["tenant"]["name"], "acme");
    let first = daemon.web.with(added["token"].as_str().unwrap());
    assert_eq!(first.get("/v1/threads").await.0, 200);
    // Plain, it is the token alone: for a shell's variable.
    let second = daemon.tenant(&["token", "acme", "--name", "ci"]);
    assert!(second.starts_with("bnd_") && second.lines().count() == 1);
    assert_eq!(daemon.web.with(&second).get("/v1/threads").await.0, 200);
    let made = json_of(&daemon.tenant(&["token", "acme", "--admin", "--json"]));
    assert_eq!(made["tenant"], "acme");
    let third = daemon.web.with(made["token"].as_str().unwrap());
    assert_eq!(third.get("/v1/interrupts?all=true").await.0, 200);
    let list = json_of(&daemon.tenant(&["list", "--json"]));
    let names: Vec<&str> =
        list["tenants"].as_array().unwrap().iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["acme", "default"]);
    assert!(!daemon.data().join("token").exists(), "a token is shown and kept nowhere");
    let tokens = list["tenants"][0]["tokens"].as_array().unwrap();
    let names: Vec<&str> = tokens.iter().filter_map(|token| token["name"].as_str()).collect();
    assert_eq!(names, ["first token", "ci", "made by hand"]);
    assert_eq!((&tokens[1]["admin"], &tokens[2]["admin"]), (&json!(false), &json!(true)));
    let plain = daemon.tenant(&["list"]);
    for secret in [added["token"].as_str().unwrap(), second.trim()] {
        assert!(!list.to_string().contains(secret) && !plain.contains(secret));
    }
    let id = tokens[1]["id"].as_str().unwrap();
    assert_eq!(json_of(&daemon.tenant(&["revoke", id, "--json"])), json!({ "revoked": id }));
    assert_eq!(daemon.web.with(&second).get("/v1/threads").await.0, 401);
    assert_eq!(first.get("/v1/threads").await.0, 200);
    assert!(daemon.tenant(&["list"]).contains(&format!("{id}  ci  run answer  revoked")));
    let data = daemon.data();
    let again = tenant(&daemon.stage, &data, &["revoke", id]);
    assert_eq!(again.0, Some(1));
    assert!(again.1.starts_with(&format!("error: no token `{id}`\n")), "{}", again.1);
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let daemon = Daemon::new(Script::always("ok"));
    let (stage, data) = (&daemon.stage, daemon.data());
    let no_data = data.join("misspelt");
    let mut page = String::new();
    let wrong = [&["token", "nobody"][..], &["add", "default"], &["add", "../up"]];
    for args in wrong {
        let (code, said) = tenant(stage, &data, args);
        assert_eq!(code, Some(1), "{said}");
        page.push_str(&said);
    }
    let (code, said) = tenant(stage, &no_data, &["list"]);
    assert_eq!(code, Some(1));
    page.push_str(&said);
    assert!(!no_data.exists(), "looking makes nothing");
    let file = stage.file("acme.toml", "[[webhooks]]\nurl = 'ftp://x'\nsecret = 's'\n");
    let args = ["set", "default", "--settings", file.to_str().unwrap()];
    let (code, said) = tenant(stage, &data, &args);
    assert_eq!(code, Some(1));
    page.push_str(&said.replace(file.to_str().unwrap(), "FILE"));
    insta::assert_snapshot!(page);
}

#[tokio::test]
async fn settings_of_a_tenant_count_from_the_next_request_on() {
    let daemon = Daemon::new(Script::always("ok"));
    let added = json_of(&daemon.tenant(&["add", "acme", "--json"]));
    let web = daemon.web.with(added["token"].as_str().unwrap());
    let full = json!({ "settings": { "sandbox": "danger-full-access" } });
    assert_eq!(web.post("/v1/threads", full.clone()).await.0, 403);
    let settings = "[limits]\nrequests_per_minute = 2\n[policy]\nfull_access = true\n\
                    [env]\nFRUIT = 'apple'\n";
    let file = daemon.stage.file("acme.toml", settings);
    let set = ["set", "acme", "--json", "--settings", file.to_str().unwrap()];
    let told = json_of(&daemon.tenant(&set));
    assert_eq!(told["tenant"]["limits"]["requestsPerMinute"], 2);
    assert_eq!(told["tenant"]["env"], json!(["FRUIT"]), "names, not values");
    assert_eq!(web.post("/v1/threads", full).await.0, 201);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(web.get("/v1/threads").await.0);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn a_check_says_what_there_is_and_makes_nothing() {
    let stage = Stage::free(Script::always("ok"));
    let folder = tempfile::tempdir().unwrap();
    let (data, config) = (folder.path().join("data"), folder.path().join("bindery.toml"));
    std::fs::write(&config, "listen = '127.0.0.1:0'\n").unwrap();
    let check = |more: &[&str]| {
        let mut command = stage.bindery(&["serve", "--check", "--data"]);
        command.arg(&data).arg("--config").arg(&config).args(more);
        told(&command.output().unwrap(), folder.path())
    };
    let (code, said) = check(&[]);
    assert_eq!(code, Some(0), "{said}");
    let mut page = said;
    assert!(!data.exists(), "looking makes nothing");
    std::fs::write(&config, "listen = '127.0.0.1:0'\n[workers]\nturnz = 4\n").unwrap();
    let (code, said) = check(&[]);
    assert_eq!(code, Some(1));
    page.push_str(&said);
    std::fs::write(&config, "").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = check(&["--listen", &address]);
    assert_eq!(code, Some(1));
    page.push_str(&said.replace(&address, "ADDRESS"));
    let (code, said) = check(&["--listen", "127.0.0.1:0", "--codex", "/nowhere/codex"]);
    assert_eq!(code, Some(1), "{said}");
    page.push_str(&said);
    insta::assert_snapshot!(page);
}

#[tokio::test]
async fn without_a_token_others_cannot_be_let_in() {
    let mut daemon = Daemon::new(Script::always("ok"));
    let data = daemon.data();
    let run = |daemon: &Daemon, args: &[&str]| {
        let all = [&["serve", "--data", data.to_str().unwrap()], args].concat();
        told(&daemon.stage.bindery(&all).output().unwrap(), &data)
    };
    // While a daemon runs its address is its own affair.
    let (code, said) = run(&daemon, &["--check", "--listen", &daemon.web.address.to_string()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("in use by a daemon that runs"), "{said}");
    let list = json_of(&daemon.tenant(&["list", "--json"]));
    let id = list["tenants"][0]["tokens"][0]["id"].as_str().unwrap();
    daemon.tenant(&["revoke", id]);
    assert_eq!(daemon.web.get("/v1/threads").await.0, 401);
    assert_eq!(daemon.terminate(), Some(0));
    for args in [&["--listen", "0.0.0.0:0"][..], &["--check", "--listen", "0.0.0.0:0"]] {
        let (code, said) = run(&daemon, args);
        assert_eq!(code, Some(1));
        let why = "others could reach it there, and there is no valid token; \
                   `bindery tenant token default --data DATA` makes one";
        assert_eq!(said, format!("error: listen on 0.0.0.0:0: {why}\n"));
    }
    let (code, said) = run(&daemon, &["--check", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(0), "{said}");
}
