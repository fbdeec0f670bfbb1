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
                    [env]\nFRUIT = 'apple'\n\
                    [[webhooks]]\nurl = 'https://me:hush@h.example/T0/hush?key=hush'\nsecret = 's'\n";
    let file = daemon.stage.file("acme.toml", settings);
    let set = ["set", "acme", "--json", "--settings", file.to_str().unwrap()];
    let told = json_of(&daemon.tenant(&set));
    assert_eq!(told["tenant"]["limits"]["requestsPerMinute"], 2);
    assert_eq!(told["tenant"]["env"], json!(["FRUIT"]), "names, not values");
    assert_eq!(told["tenant"]["webhooks"], json!(["https://h.example"]), "no part that is secret");
    for args in [&["list", "--json"][..], &["list"]] {
        assert!(!daemon.tenant(args).contains("hush"), "{args:?}");
    }
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

/// `bindery tenant` in this folder, without the name of a data folder.
fn unnamed(stage: &Stage, folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = stage.bindery(&[&["tenant"], args].concat());
    told(&command.current_dir(folder).output().unwrap(), &stage.codex.user_home())
}

/// A server's data where a server that is started in this folder keeps them.
fn usual_data(stage: &Stage, name: &str) -> std::path::PathBuf {
    let root = stage.codex.user_home().join(name);
    std::fs::create_dir_all(&root).unwrap();
    let mut command = stage.bindery(&["serve"]);
    command.current_dir(&root);
    let (mut child, _) = crate::daemon::announced(command);
    child.kill().unwrap();
    child.wait().unwrap();
    root
}

#[tokio::test]
async fn a_tenant_is_added_to_the_only_server_there_is_or_to_none() {
    let stage = Stage::free(Script::always("ok"));
    let share = stage.codex.user_home().join(".local/share/bindery");
    let elsewhere = tempfile::tempdir().unwrap();
    let add = |name: &str| unnamed(&stage, elsewhere.path(), &["add", name]);
    let (code, said) = add("acme");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no server has kept anything yet"), "{said}");
    assert!(said.contains("--data DIR") && !share.exists(), "{said}");
    let first = usual_data(&stage, "first");
    let (code, said) = add("acme");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("using the server's data in DATA/.local/share/bindery/first-"), "{said}");
    assert!(unnamed(&stage, &first, &["list"]).1.contains("acme"));
    let second = usual_data(&stage, "second");
    let (code, said) = add("other");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("several servers") && said.contains("second-"), "{said}");
    // In a server's own folder it is that server's.
    let (code, said) = unnamed(&stage, &second, &["add", "other"]);
    assert_eq!((code, said.contains("bindery/second-")), (Some(0), true), "{said}");
    assert!(!unnamed(&stage, &first, &["list"]).1.contains("other"));
    assert_eq!(std::fs::read_dir(&share).unwrap().count(), 2, "no third one is made");
}

#[tokio::test]
async fn a_root_is_made_or_refused_with_the_cause() {
    let daemon = Daemon::new(Script::always("ok"));
    let (stage, data) = (&daemon.stage, daemon.data());
    let root = stage.codex.user_home().join("deep/acme");
    let (code, said) = tenant(stage, &data, &["add", "acme", "--root", root.to_str().unwrap()]);
    assert_eq!((code, root.is_dir()), (Some(0), true), "{said}");
    let file = stage.file("file", "");
    let (code, said) = tenant(stage, &data, &["add", "other", "--root", file.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it is no folder"), "{said}");
    let list = json_of(&daemon.tenant(&["list", "--json"])).to_string();
    assert!(list.contains("acme") && !list.contains("other"), "{list}");
    let settings = stage.file("acme.toml", &format!("root = '{}'\n", file.display()));
    let args = ["set", "acme", "--settings", settings.to_str().unwrap()];
    assert_eq!(tenant(stage, &data, &args).0, Some(1));
    // A root that is gone later is told by a check, and stops nobody else.
    std::fs::remove_dir_all(&root).unwrap();
    let check = ["serve", "--check", "--data", data.to_str().unwrap()];
    let (code, said) = told(&stage.bindery(&check).output().unwrap(), &data);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("problem: tenant `acme`: root `"), "{said}");
    let nowhere = stage.codex.user_home().join("nowhere");
    for more in [&["--check"][..], &[]] {
        let fresh = stage.codex.user_home().join("fresh");
        let mut command = stage.bindery(&["serve", "--listen", "127.0.0.1:0", "--root"]);
        command.arg(&nowhere).arg("--data").arg(&fresh).args(more);
        let (code, said) = told(&command.output().unwrap(), &data);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("nowhere") && said.contains("No such file"), "{said}");
    }
    assert!(!nowhere.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_check_looks_at_what_would_fail() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::free(Script::always("ok"));
    let folder = tempfile::tempdir().unwrap();
    let (data, config) = (folder.path().join("data"), folder.path().join("bindery.toml"));
    std::fs::write(&config, "listen = '127.0.0.1:0'\n").unwrap();
    let check = |more: &[&str]| {
        let mut command = stage.bindery(&["serve", "--check", "--data"]);
        command.arg(&data).arg("--config").arg(&config).args(more);
        let (code, said) = told(&command.output().unwrap(), folder.path());
        (code.unwrap(), said)
    };
    let program = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = program("old", "#!/bin/sh\necho codex-cli 0.50.0\n", 0o755);
    let silent = program("silent", "#!/bin/sh\nexit 3\n", 0o755);
    let broken = program("broken", "#!/nowhere/sh\n", 0o755);
    for (codex, why) in
        [(&old, "0.50.0"), (&silent, "does not say its version"), (&broken, "cannot be run")]
    {
        let (code, said) = check(&["--codex", codex]);
        assert!(code == 1 && said.contains(why), "{codex}: {said}");
    }
    let (code, said) = check(&["--backend", "engine"]);
    assert!(said.contains("sandbox  "), "{said}");
    assert_eq!(code, i32::from(said.contains("problem:")), "{said}");
    for key in [folder.path().join("key/in"), folder.path().to_owned()] {
        let settings = format!("listen = '127.0.0.1:0'\n[store]\nkey_file = '{}'\n", key.display());
        std::fs::write(&config, settings).unwrap();
        std::fs::write(folder.path().join("key"), "").unwrap();
        let (code, said) = check(&[]);
        assert!(code == 1 && said.contains("error: "), "{}: {said}", key.display());
    }
    assert!(!data.exists(), "looking makes nothing");
}
