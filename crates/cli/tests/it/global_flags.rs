//! Flags before the command, in the orders in which clients of Codex write them.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use bindery_testkit::model::Script;
use serde_json::{Value, json};

use crate::stage::Stage;

/// What `config/read` of a server that was started so answers.
fn config_of(stage: &Stage, args: &[&str]) -> Value {
    let mut command = stage.bindery(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let client = json!({ "clientInfo": { "name": "test", "version": "1" } });
    writeln!(stdin, "{}", json!({ "id": 1, "method": "initialize", "params": client })).unwrap();
    writeln!(stdin, "{}", json!({ "id": 2, "method": "config/read", "params": {} })).unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let read = lines.find(|line| line["id"] == 2);
    let read = read.unwrap_or_else(|| panic!("{args:?} answers nothing"));
    drop(stdin);
    assert!(server.wait().unwrap().success(), "{args:?}");
    read["result"]["config"].clone()
}

#[test]
fn a_server_is_started_in_every_order_that_clients_use() {
    let stage = Stage::free(Script::always("ok"));
    let model = "model=\"gpt-5.6-sol\"";
    let orders: [&[&str]; 9] = [
        &["--config", model, "app-server", "--listen", "stdio://"],
        &["--config=model=gpt-5.6-sol", "app-server"],
        &["-c", model, "app-server", "--stdio"],
        &["-cmodel=gpt-5.6-sol", "app-server", "--analytics-default-enabled"],
        &["app-server", "-c", model],
        &["app-server", "--listen", "stdio://", "--config", "model=gpt-5.6-sol"],
        &["--model", "gpt-5.6-sol", "app-server", "--listen", "stdio://"],
        &["-c", "model=far", "app-server", "-c", "model=gpt-5.6-sol"],
        &["-c", "model=far", "-m", "gpt-5.6-sol", "app-server"],
    ];
    for args in orders {
        assert_eq!(config_of(&stage, args)["model"], "gpt-5.6-sol", "{args:?}");
    }
}

/// `--config` of the daemon's commands is a file, wherever it stands behind them.
#[test]
fn the_settings_file_of_the_daemon_is_no_setting_of_codex() {
    let stage = Stage::free(Script::always("ok"));
    let home = stage.codex.home();
    let (file, data) = (home.join("bindery.toml"), home.join("data"));
    std::fs::write(&file, format!("data = {:?}\n", data.display().to_string())).unwrap();
    let (file, root) = (file.to_str().unwrap(), home.to_str().unwrap());
    let added = stage.bindery(&["tenant", "add", "acme", "--root", root, "--config", file]);
    for mut command in [added, stage.bindery(&["tenant", "--config", file, "list"])] {
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn values_are_toml_and_else_text_wherever_they_stand() {
    let stage = Stage::free(Script::always("ok"));
    let provider = "model_providers.mine={name=\"Mine\",base_url=\"http://localhost:1/v1\",\
                    wire_api=\"chat\"}";
    let settings = [
        "-c",
        provider,
        "-c",
        "model_provider=mine",
        "-c",
        "model=m:1",
        "-c",
        "model_context_window=4096",
        "-c",
        "approval_policy=never",
        "-c",
        "sandbox_workspace_write.network_access=true",
        "--enable",
        "one",
        "--disable",
        "two",
    ];
    for before in [true, false] {
        let args = match before {
            true => [&settings[..], &["app-server"]].concat(),
            false => [&["app-server"], &settings[..]].concat(),
        };
        let config = config_of(&stage, &args);
        let read = ["model", "model_provider", "model_context_window", "approval_policy"];
        let read = read.map(|key| config[key].clone());
        assert_eq!(read, [json!("m:1"), json!("mine"), json!(4096), json!("never")], "{args:?}");
        assert_eq!(config["sandbox_workspace_write"]["network_access"], true, "{args:?}");
        let features = (&config["features"]["one"], &config["features"]["two"]);
        assert_eq!(features, (&json!(true), &json!(false)), "{args:?}");
    }
}

#[tokio::test]
async fn commands_that_run_turns_take_them_too_and_what_is_nearer_wins() {
    let stage = Stage::free(Script::always("{\"findings\":[]}"));
    std::fs::write(
        stage.codex.home().join("deep.config.toml"),
        "model_reasoning_effort = \"high\"\n",
    )
    .unwrap();
    let commands: [&[&str]; 4] = [
        &["exec", "--skip-git-repo-check", "go"],
        &["exec", "--experimental-json", "--skip-git-repo-check", "go"],
        &["run", "--backend", "engine", "go"],
        &["review", "--backend", "engine", "look hard"],
    ];
    for command in commands {
        let before = ["-m", "gpt-5.6-sol", "-p", "deep", "-c", "model_verbosity=\"high\""];
        let ran = stage.run(&[&before[..], command].concat()).await;
        assert_eq!(ran.code, Some(0), "{command:?}: {ran}");
        let body = stage.model.bodies().pop().unwrap();
        assert_eq!(body["model"], "gpt-5.6-sol", "{command:?}");
        assert_eq!(body["reasoning"]["effort"], "high", "{command:?}");
        assert_eq!(body["text"]["verbosity"], "high", "{command:?}");
    }
    let near = ["-m", "far", "exec", "-m", "gpt-5.6-sol", "--skip-git-repo-check", "go"];
    assert_eq!(stage.run(&near).await.code, Some(0));
    assert_eq!(stage.model.bodies().pop().unwrap()["model"], "gpt-5.6-sol");
}

#[tokio::test]
async fn what_a_command_cannot_take_is_refused_and_not_dropped() {
    let stage = Stage::free(Script::always("ok"));
    for args in [
        &["-m", "x", "sessions", "list"][..],
        &["-p", "x", "app-server"],
        &["--enable", "x", "doctor"],
        &["-c", "model=x", "map"],
    ] {
        let ran = stage.run(args).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {ran}");
        assert!(ran.err.contains("before the command goes with"), "{args:?}: {ran}");
    }
    let ran = stage.run(&["app-server", "--stdio", "--listen", "ws://127.0.0.1:0"]).await;
    assert_eq!(ran.code, Some(2), "{ran}");
}
