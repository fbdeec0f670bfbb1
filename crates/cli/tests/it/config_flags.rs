//! Settings of one command: `-c`, `-p`, `--provider`, `--add-dir`, and the sandbox of a thread that
//! goes on, on every backend.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

const BACKENDS: [&str; 3] = ["engine", "codex", "exec"];

/// The effort that the model was asked for last.
fn effort(stage: &Stage) -> Value {
    stage.model.bodies().pop().unwrap()["reasoning"]["effort"].clone()
}

#[tokio::test]
async fn a_setting_of_the_command_line_reaches_the_model_on_every_backend() {
    let stage = Stage::free(Script::always("ok"));
    let setting = "model_reasoning_effort=\"high\"";
    for backend in BACKENDS {
        let ran = stage.run(&["run", "--backend", backend, "-c", setting, "go"]).await;
        assert_eq!((ran.code, effort(&stage)), (Some(0), json!("high")), "{backend}: {ran}");
        let before = stage.run(&["-c", setting, "run", "--backend", backend, "go"]).await;
        assert_eq!((before.code, effort(&stage)), (Some(0), json!("high")), "{backend}: {before}");
    }
    let near = ["-c", "model_reasoning_effort=\"low\"", "exec", "-c", setting, "go"];
    assert_eq!(stage.run(&near).await.code, Some(0));
    assert_eq!(effort(&stage), json!("high"));
}

#[tokio::test]
async fn a_profile_is_laid_over_the_settings_on_every_backend() {
    let stage = Stage::free(Script::always("ok"));
    let profile = "model_reasoning_effort = \"high\"\n[features]\nunified_exec = true\n";
    std::fs::write(stage.codex.home().join("deep.config.toml"), profile).unwrap();
    for backend in BACKENDS {
        let ran = stage.run(&["run", "--backend", backend, "-p", "deep", "go"]).await;
        assert_eq!((ran.code, effort(&stage)), (Some(0), json!("high")), "{backend}: {ran}");
        let over = ["-p", "deep", "-c", "model_reasoning_effort=\"low\"", "go"];
        let ran = stage.run(&[&["run", "--backend", backend][..], &over].concat()).await;
        assert_eq!((ran.code, effort(&stage)), (Some(0), json!("low")), "{backend}: {ran}");
    }
    for backend in ["engine", "codex"] {
        let none = stage.run(&["run", "--backend", backend, "-p", "none", "go"]).await;
        assert_eq!(none.code, Some(1), "{none}");
        assert!(none.err.contains("no profile `none`"), "{none}");
    }
}

#[tokio::test]
async fn another_provider_is_asked_on_every_backend() {
    let stage = Stage::free(Script::always("never asked"));
    let other = bindery_testkit::model::Model::start(Script::always("other"));
    let provider = format!(
        "\n[model_providers.other]\nname = \"Other\"\nbase_url = \"{}\"\nwire_api = \"responses\"\n",
        other.base_url(),
    );
    let path = stage.codex.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap() + &provider;
    std::fs::write(&path, config).unwrap();
    for backend in BACKENDS {
        let ran = stage.run(&["run", "--backend", backend, "--provider", "other", "go"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "other\n"), "{backend}: {ran}");
    }
    let ran = stage.run(&["exec", "--provider", "other", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "other\n"), "{ran}");
    assert_eq!((stage.model.count(), other.count()), (0, 4));
}

#[tokio::test]
async fn an_added_folder_may_be_written_and_a_read_only_sandbox_says_that_it_has_no_effect() {
    for backend in ["engine", "codex"] {
        let beside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let beside = beside.path().canonicalize().unwrap();
        let write = format!("echo hi > {}/made", beside.display());
        let script = vec![Reply::new([Step::exec(&write, "c1")]), Reply::text("done")];
        let settings = "approval_policy = \"never\"\n".to_owned();
        let stage = Stage::with(script, &Options { settings, ..Options::default() });
        let folder = beside.to_str().unwrap();
        let sandbox = ["--sandbox", "workspace-write", "--add-dir", folder, "go"];
        let ran = stage.run(&[&["run", "--backend", backend][..], &sandbox].concat()).await;
        assert_eq!(ran.code, Some(0), "{backend}: {ran}");
        assert!(beside.join("made").exists(), "{backend}: {ran}");
        let sandbox = ["--sandbox", "read-only", "--add-dir", folder, "go"];
        let none = stage.run(&[&["run", "--backend", backend][..], &sandbox].concat()).await;
        assert_eq!(none.code, Some(2), "{backend}: {none}");
        assert!(none.err.contains("`--add-dir` has no effect"), "{none}");
    }
}

/// The home's own sandbox is none at all; the thread's was narrower.
#[tokio::test]
async fn a_thread_that_goes_on_keeps_its_sandbox() {
    for backend in ["engine", "codex"] {
        let script = vec![
            Reply::text("one"),
            Reply::new([Step::exec("echo hi > made", "c1")]),
            Reply::text("two"),
            Reply::new([Step::exec("echo hi > made", "c2")]),
            Reply::text("three"),
        ];
        let stage = Stage::free(script);
        let run = ["run", "--backend", backend];
        let first = stage.run(&[&run[..], &["--sandbox", "read-only", "go"]].concat()).await;
        assert_eq!(first.code, Some(0), "{first}");
        let second = stage.run(&[&run[..], &["--resume", "last", "write"]].concat()).await;
        assert_eq!(second.code, Some(0), "{second}");
        assert!(second.err.contains("read-only"), "{backend}: {second}");
        let made = stage.codex.project().join("made");
        assert!(!made.exists(), "{backend}: {second}");
        let full = ["--resume", "last", "--sandbox", "danger-full-access", "write"];
        let third = stage.run(&[&run[..], &full].concat()).await;
        assert_eq!(third.code, Some(0), "{third}");
        assert!(made.exists(), "{backend}: {third}");
    }
}

#[tokio::test]
async fn settings_before_a_command_that_has_none_are_refused() {
    let stage = Stage::free(Script::always("ok"));
    let ran = stage.run(&["-c", "model=\"m\"", "doctor"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran}");
    assert!(ran.err.contains("`--config` before the command goes with"), "{ran}");
    let agent = ["run", "--agent", "gemini", "--format", "ndjson", "-p", "x", "go"];
    let ran = stage.run(&agent).await;
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.err.contains("`--profile` cannot be had from a command-line agent"), "{ran}");
}

/// As clients that are made for Codex start it.
#[test]
fn the_server_takes_settings_before_its_name_and_lists_models_and_no_patterns() {
    let stage = Stage::free(Script::always("ok"));
    let mut command = stage.bindery(&["--config", "model=\"gpt-5.6-sol\"", "app-server"]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |request: Value| {
        writeln!(stdin, "{request}").unwrap();
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["id"] == request["id"] {
                return line["result"].clone();
            }
        }
    };
    let client = json!({ "clientInfo": { "name": "test", "version": "1" } });
    ask(json!({ "id": 1, "method": "initialize", "params": client }));
    let models = ask(json!({ "id": 2, "method": "model/list", "params": { "limit": 200 } }));
    let models = models["data"].as_array().unwrap();
    let standard: Vec<&Value> = models.iter().filter(|model| model["isDefault"] == true).collect();
    assert_eq!(standard.len(), 1);
    assert_eq!(standard[0]["model"], "gpt-5.6-sol");
    let pattern = models.iter().find(|model| model["model"].as_str().unwrap().contains('*'));
    assert_eq!(pattern, None);
    assert!(models.len() > 3, "{models:?}");
    drop(stdin);
    assert!(server.wait().unwrap().success());
}
