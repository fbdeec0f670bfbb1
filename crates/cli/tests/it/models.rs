//! `bindery models`, and what clients of the engine are told that there is.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use bindery_testkit::model::Script;
use serde_json::{Value, json};

use crate::stage::{Ran, Stage};

const CHAT: &str = "model_providers.scripted.wire_api=\"chat\"";

fn stage() -> Stage {
    let stage = Stage::free(Script::always("ok"));
    let row = |id: &str, window: u64| json!({ "id": id, "max_model_len": window });
    let embedding = json!({ "id": "embed", "type": "embedding", "max_model_len": 512 });
    let list = json!({ "data": [row("gpt-5.5", 272_000), row("qwen3:8b", 8192), embedding] });
    stage.model.serve_page("/v1/models", 200, list);
    stage
}

async fn models(stage: &Stage, args: &[&str]) -> Ran {
    let mut ran = stage.run(&[&["models"][..], args].concat()).await;
    let address = stage.model.base_url();
    ran.out = ran.out.replace(&address, "[address]");
    ran.err = ran.err.replace(&address, "[address]");
    ran
}

#[tokio::test]
async fn what_there_is_with_what_the_engine_assumes_of_it() {
    let ran = models(&stage(), &[]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ran.out);
}

#[tokio::test]
async fn as_json() {
    let ran = models(&stage(), &["--json", "-c", CHAT]).await;
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["wire_api"], "chat");
    assert_eq!(report["base_url"], "[address]");
    assert_eq!(
        report["models"][1],
        json!({
            "id": "qwen3:8b", "in_force": false, "context_window": 8192,
            "max_context_window": null, "assumed_context_window": 40960, "images": null,
            "tools": null, "chat": null, "loaded": null,
        })
    );
    assert_eq!(report["models"][0]["in_force"], true);
}

#[tokio::test]
async fn a_model_in_force_that_is_not_there_is_noted() {
    let ran = models(&stage(), &["-c", "model=\"gone\""]).await;
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("note: the model in force, `gone`, is not among them"), "{ran}");
    let stage = stage();
    let vllm = format!("model_providers.vllm.base_url=\"{}\"", stage.model.base_url());
    std::fs::write(stage.codex.home().join("config.toml"), "").unwrap();
    let ran = models(&stage, &["--provider", "vllm", "-c", &vllm]).await;
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.out.starts_with("vLLM at [address]\n  gpt-5.5 "), "{ran}");
    assert!(!ran.out.contains("unnamed"), "{ran}");
}

#[tokio::test]
async fn what_goes_wrong_says_what_to_do() {
    let stage = stage();
    let nowhere = "model_providers.ollama.base_url=\"http://127.0.0.1:9/v1\"";
    let ran = models(&stage, &["--provider", "ollama", "-c", nowhere]).await;
    insta::assert_snapshot!(ran);
    stage.model.serve_page("/v1/models", 401, json!({ "error": "no such key" }));
    let key = "model_providers.scripted.env_key=\"HOUSE_KEY\"";
    insta::assert_snapshot!(models(&stage, &["-c", key]).await);
    stage.model.serve_page("/v1/models", 200, json!("<html>"));
    insta::assert_snapshot!(models(&stage, &[]).await);
    insta::assert_snapshot!(models(&stage, &["--provider", "demo"]).await);
    let before = stage.run(&["-c", "model_provider=\"demo\"", "models"]).await;
    assert_eq!(before.code, Some(2), "{before}");
}

/// What `model/list` answers to a client of `bindery app-server`, and what it logs.
fn listed(stage: &Stage, args: &[&str], times: usize) -> (Vec<Vec<String>>, String) {
    let all = [args, &["app-server"]].concat();
    let mut command = stage.bindery(&all);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |id: usize, method: &str, params: Value| {
        writeln!(stdin, "{}", json!({ "id": id, "method": method, "params": params })).unwrap();
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["id"] == id {
                return line["result"].clone();
            }
        }
    };
    let client = json!({ "clientInfo": { "name": "test", "version": "1" } });
    ask(1, "initialize", client);
    let lists = (0..times).map(|number| {
        let list = ask(number + 2, "model/list", json!({ "limit": 200 }));
        let rows = list["data"].as_array().unwrap().iter();
        rows.map(|row| row["model"].as_str().unwrap().to_owned()).collect()
    });
    let lists = lists.collect();
    drop(stdin);
    let output = server.wait_with_output().unwrap();
    (lists, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn clients_are_told_what_a_chat_server_offers_and_it_is_asked_once() {
    let stage = stage();
    let (lists, log) = listed(&stage, &["-c", CHAT, "-c", "model=\"mine\""], 3);
    for list in lists {
        assert_eq!(list, ["mine", "gpt-5.5", "qwen3:8b"]);
    }
    assert_eq!((stage.model.visits().len(), log.as_str()), (1, ""));
}

#[test]
fn a_chat_server_that_tells_nothing_is_named_in_the_log_and_the_model_in_force_is_listed() {
    let stage = stage();
    stage.model.serve_page("/v1/models", 500, json!("broken"));
    let (lists, log) = listed(&stage, &["-c", CHAT], 2);
    assert_eq!(lists, [["gpt-5.5"], ["gpt-5.5"]]);
    assert_eq!(log.matches("the server's models cannot be listed").count(), 1, "{log}");
    assert!(log.contains("answers 500: broken"), "{log}");
}

#[test]
fn no_pattern_and_no_row_that_others_are_like_is_listed() {
    let stage = stage();
    let (lists, _) = listed(&stage, &[], 1);
    let wrong = |name: &&String| name.contains('*') || ["local", "demo"].contains(&name.as_str());
    assert_eq!(lists[0].iter().find(wrong), None);
    assert!(lists[0].len() > 3, "{lists:?}");
    assert_eq!(stage.model.visits(), vec![]);
}
