//! `bindery doctor --model` on servers that can do everything, something and nothing.

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::{Ran, Stage};

const CHAT: &str = "model_providers.scripted.wire_api=\"chat\"";
const RESPONSES: &str = "model_providers.scripted.wire_api=\"responses\"";

fn call(key: &str, id: &str) -> Step {
    Step::call("lookup", json!({ "key": key }), id)
}

/// A server that can do everything.
fn able() -> Vec<Reply> {
    vec![
        Reply::text("ready").when_user("word: ready"),
        Reply::new([call("alpha", "c1")]).when_user("the key `alpha`").when_after_tool(false),
        Reply::text("It is 42.").when_output_of("c1"),
        Reply::new([call("alpha", "p1"), call("beta", "p2")])
            .when_user("twice")
            .when_after_tool(false),
        Reply::text("Both are 42.").when_output_of("p1").when_output_of("p2"),
        Reply::text("{\"colour\":\"red\",\"count\":3}").when_user("three red balls"),
        Reply::text("Red.").when_user("Which colour"),
        Reply::text("HELLO.").when_user("Say hello again"),
    ]
}

/// The same with one reply of another kind before it.
fn able_but(reply: Reply) -> Vec<Reply> {
    std::iter::once(reply).chain(able()).collect()
}

/// Told without the port, which is another each time.
async fn doctor(stage: &Stage, args: &[&str]) -> Ran {
    let all = [&["doctor", "--model", "gpt-5.5"][..], args].concat();
    let mut ran = stage.run(&all).await;
    let address = stage.model.base_url();
    let origin = address.trim_end_matches("/v1");
    ran.out = ran.out.replace(&address, "[address]").replace(origin, "[origin]");
    ran
}

async fn check(stage: &Stage, wire: &str, name: &str) -> Value {
    let ran = doctor(stage, &["--json", "-c", wire]).await;
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran}"));
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    let mut found = found.unwrap_or_else(|| panic!("no {name} in {report}")).clone();
    found.as_object_mut().unwrap().remove("ms");
    found["code"] = json!(ran.code);
    found
}

#[tokio::test]
async fn a_server_that_can_do_everything() {
    for (wire, name) in [(CHAT, "chat"), (RESPONSES, "responses")] {
        let stage = Stage::free(able());
        let ran = doctor(&stage, &["-c", wire]).await;
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran}");
        let told = ran.out.replace(&format!("{name} wire"), "[wire] wire");
        insta::assert_snapshot!("a_server_that_can_do_everything", told);
        assert_eq!(stage.model.unanswered(), vec![], "{name}");
        assert_eq!(stage.model.count(), 8, "{name}");
    }
}

#[tokio::test]
async fn what_is_sent_is_what_turns_send() {
    let stage = Stage::free(able());
    let ran = doctor(&stage, &["--json", "-c", CHAT]).await;
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["ok"], &report["wire_api"]), (&json!(true), &json!("chat")));
    assert_eq!((&report["model"], &report["provider"]), (&json!("gpt-5.5"), &json!("scripted")));
    let bodies = stage.model.bodies();
    let roles = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(&bodies[4]), ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(bodies[5]["response_format"]["type"], "json_schema");
    let picture = bodies[6].to_string();
    assert!(picture.contains("data:image/png;base64,iVBOR"), "{picture}");
    let middle = roles(&bodies[7]);
    assert_eq!(middle.len(), 5, "{middle:?}");
    assert!(bodies.iter().all(|body| body["stream"] == true));
}

#[tokio::test]
async fn a_server_that_calls_no_tool_is_of_no_use() {
    for wire in [CHAT, RESPONSES] {
        let stage = Stage::free(Script::always("lookup(key=alpha)"));
        let call = check(&stage, wire, "tool call").await;
        assert_eq!((&call["status"], &call["code"]), (&json!("error"), &json!(1)));
        assert_eq!(call["text"], "it answers with words and no call: “lookup(key=alpha)”");
        assert!(call["hint"].as_str().unwrap().contains("--enable-auto-tool-choice"));
        for name in ["tool result", "parallel calls"] {
            assert_eq!(check(&stage, wire, name).await["status"], "skipped");
        }
        let structured = check(&stage, wire, "structured").await;
        assert_eq!(structured["text"], "the answer is no JSON: “lookup(key=alpha)”");
        assert!(structured["hint"].as_str().unwrap().contains("structured_output"));
    }
}

#[tokio::test]
async fn what_a_server_refuses_is_told_in_its_own_words_and_does_not_hide_the_rest() {
    let refuses = |words: &str| Reply::new([Step::status(400, "invalid", words)]).times(9);
    let stage = Stage::free(able_but(refuses("roles must alternate").when_user("hello again")));
    let found = check(&stage, CHAT, "instructions").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("error"), &json!(0)));
    assert!(found["text"].as_str().unwrap().contains("roles must alternate"), "{found}");

    let stage = Stage::free(able_but(refuses("one call at a time").when_output_of("p2")));
    let found = check(&stage, CHAT, "parallel calls").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("error"), &json!(0)));
    assert!(found["text"].as_str().unwrap().contains("one call at a time"), "{found}");
    assert!(found["hint"].as_str().unwrap().contains("parallel_tool_calls = false"), "{found}");

    let stage = Stage::free(able_but(refuses("no pictures").when_user("Which colour")));
    let found = check(&stage, RESPONSES, "image").await;
    assert!(found["hint"].as_str().unwrap().contains("images = false"), "{found}");

    let stage = Stage::free(able_but(refuses("tool_call_id is odd").when_output_of("c1")));
    let found = check(&stage, CHAT, "tool result").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("error"), &json!(1)));
}

#[tokio::test]
async fn what_a_model_does_less_well_is_a_warning() {
    let one = Reply::new([call("alpha", "p1")]).when_user("twice").when_after_tool(false);
    let stage = Stage::free(able_but(one));
    let found = check(&stage, CHAT, "parallel calls").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("warning"), &json!(0)));

    let stage = Stage::free(able_but(Reply::text("A cat.").when_user("Which colour")));
    let found = check(&stage, CHAT, "image").await;
    assert_eq!(found["text"], "a red square was called “A cat.”");
    assert_eq!(found["status"], "warning");

    let bare = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\
                 \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let stage = Stage::free(able_but(Reply::new([Step::bytes(bare)]).when_user("word: ready")));
    let found = check(&stage, CHAT, "usage").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("warning"), &json!(0)), "{found}");
}

#[tokio::test]
async fn what_works_only_after_the_request_was_mended_names_the_setting() {
    let words = "Conversation roles must alternate user/assistant/user/assistant/...";
    let once = Reply::new([Step::status(400, "invalid", words)]).when_user("hello again");
    let stage = Stage::free(able_but(once));
    let found = check(&stage, CHAT, "instructions").await;
    assert_eq!((&found["status"], &found["code"]), (&json!("warning"), &json!(0)), "{found}");
    assert_eq!(found["text"], "“HELLO.”");
    let hint = found["hint"].as_str().unwrap();
    assert!(hint.contains("alternate_roles") && hint.contains("[model_providers.scripted.chat]"));
}

#[tokio::test]
async fn a_model_that_sees_no_pictures_is_shown_none() {
    let stage = Stage::free(able());
    let args = ["doctor", "--model", "qwen3:8b", "--json", "-c", CHAT];
    let report: Value = serde_json::from_str(&stage.run(&args).await.out).unwrap();
    let image = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "image");
    assert_eq!(image.unwrap()["status"], "skipped");
    assert!(stage.model.bodies().iter().all(|body| !body.to_string().contains("data:image")));
}

#[tokio::test]
async fn no_key_is_ever_shown() {
    let echo = Reply::new([Step::status(401, "auth", "the key sk-secret-1 is wrong")]).always();
    let stage = Stage::free(vec![echo]);
    for wire in [CHAT, RESPONSES] {
        let mut command = stage.bindery(&["doctor", "--model", "gpt-5.5"]);
        command.args(["-c", wire, "-c", "model_providers.scripted.env_key=\"HOUSE_KEY\""]);
        let output = command.env("HOUSE_KEY", "sk-secret-1").output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{out}");
        assert!(out.contains("the key … is wrong"), "{out}");
        assert!(out.contains("hint: set `HOUSE_KEY` to a key that the server takes"), "{out}");
        assert!(!out.contains("sk-secret"), "{out}");
        assert_eq!(stage.model.requests()[0].headers["authorization"], "Bearer sk-secret-1");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_says_nothing_holds_nobody_up() {
    let stage = Stage::free(vec![Reply::new([Step::Silence]).always()]);
    let ran = doctor(&stage, &["--timeout", "1", "-c", CHAT]).await;
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.out.contains("✗ text            does not work: "), "{ran}");
    assert!(ran.out.contains("hint: give it longer with `--timeout SECONDS`"), "{ran}");
    assert!(ran.out.ends_with("does not work: text\n"), "{ran}");
    // Nobody listens on the port of discarding.
    let nowhere = "model_providers.ollama.base_url=\"http://127.0.0.1:9/v1\"";
    let ran = doctor(&stage, &["--provider", "ollama", "-c", nowhere]).await;
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.out.contains("hint: start it with `ollama serve`"), "{ran}");
}

#[tokio::test]
async fn flags_of_a_model_need_a_model() {
    let stage = Stage::free(vec![]);
    let ran = stage.run(&["doctor", "--provider", "ollama"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran}");
    assert!(ran.err.contains("go with `--model`"), "{ran}");
    let ran = stage.run(&["-c", "model_provider=\"demo\"", "doctor", "--model", "demo"]).await;
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.err.contains("the demo model has no server"), "{ran}");
}
