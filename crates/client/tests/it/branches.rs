//! Another answer to the same words, changed words, a retried turn: what the model is sent then.

use bindery_client::model::{LanguageModel, ModelSettings};
use bindery_core::call::CallOptions;
use bindery_core::content::Generated;
use bindery_core::ids::ThreadId;
use bindery_core::part::Warning;
use bindery_core::spec::{Spec, codex_of};
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::{Stage, heard};

fn model(stage: &Stage) -> LanguageModel {
    let cwd = Some(stage.codex.project().display().to_string());
    let thread = ThreadSettings { cwd, ..ThreadSettings::default() };
    LanguageModel::new(stage.server.clone(), ModelSettings { thread, ..ModelSettings::default() })
}

fn options(prompt: &[Value], more: &Value) -> CallOptions {
    let mut call = json!({ "prompt": prompt });
    for (name, value) in more.as_object().into_iter().flatten() {
        call[name] = value.clone();
    }
    serde_json::from_value(call).unwrap()
}

async fn call(model: &LanguageModel, prompt: &[Value]) -> Generated {
    call_with(model, prompt, &json!({})).await
}

async fn call_with(model: &LanguageModel, prompt: &[Value], more: &Value) -> Generated {
    model.generate(&options(prompt, more), Spec::V4).await.unwrap()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// An answer as the SDK keeps it in its history.
fn kept(generated: &Generated) -> Value {
    let kept = |part: &Value| {
        let mut part = part.clone();
        part["providerOptions"] = part["providerMetadata"].take();
        if let Some(input) = part["input"].as_str() {
            part["input"] = serde_json::from_str(input).unwrap();
        }
        part
    };
    let shown = |part: &&Value| ["text", "tool-call"].iter().any(|kind| part["type"] == *kind);
    let content: Vec<Value> = generated.content.iter().filter(shown).map(kept).collect();
    json!({ "role": "assistant", "content": content })
}

fn thread(generated: &Generated) -> ThreadId {
    codex_of(generated.provider_metadata.as_ref()).unwrap()["threadId"].as_str().unwrap().into()
}

fn text(generated: &Generated) -> String {
    let texts = generated.content.iter().filter_map(|part| part["text"].as_str());
    texts.collect()
}

/// What the newest request of the model says, Codex's own context left out.
fn said(stage: &Stage) -> Vec<String> {
    let lines = heard(stage.model.bodies().last().unwrap()).into_iter();
    lines.filter(|line| !line.contains("<environment_context>")).collect()
}

/// The user's words in a thread as Codex keeps it, oldest first.
async fn kept_in(stage: &Stage, thread: &ThreadId) -> Vec<String> {
    let params = json!({ "threadId": thread, "sortDirection": "asc" });
    let turns: Value = stage.server.request("thread/turns/list", &params).await.unwrap();
    let turns = turns["data"].as_array().unwrap().iter();
    turns.map(|turn| turn["items"][0]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

async fn another_answer_to_the_last_message_forgets_the_first_one() {
    let stage = Stage::free(["one", "two", "other", "third"].map(Reply::text).to_vec()).await;
    let model = model(&stage);
    let mut prompt = vec![user("u1")];
    let first = call(&model, &prompt).await;
    prompt.extend([kept(&first), user("u2")]);
    let second = call(&model, &prompt).await;
    assert_eq!(thread(&second), thread(&first));
    let again = call(&model, &prompt).await;
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: u2"]);
    assert_eq!(text(&again), "other");
    assert_ne!(thread(&again), thread(&first), "the first answer's thread is left as it is");
    assert_eq!(kept_in(&stage, &thread(&first)).await, ["u1", "u2"]);
    // It goes on from the new answer, in the new thread.
    prompt.extend([kept(&again), user("u3")]);
    let third = call(&model, &prompt).await;
    assert_eq!(thread(&third), thread(&again));
    let whole = ["user: u1", "assistant: one", "user: u2", "assistant: other", "user: u3"];
    assert_eq!(said(&stage), whole);
}

async fn a_message_changed_some_turns_back_goes_on_from_there() {
    let mut stage = Stage::free(["one", "two", "three", "new"].map(Reply::text).to_vec()).await;
    let first = call(&model(&stage), &[user("u1")]).await;
    let second = call(&model(&stage), &[user("u1"), kept(&first), user("u2")]).await;
    let so_far = [user("u1"), kept(&first), user("u2"), kept(&second)];
    call(&model(&stage), &[&so_far[..], &[user("u3")]].concat()).await;
    // Another process knows as much.
    stage.reopen().await;
    let edited = call(&model(&stage), &[user("u1"), kept(&first), user("changed")]).await;
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: changed"]);
    assert_ne!(thread(&edited), thread(&first));
    assert_eq!(kept_in(&stage, &thread(&first)).await, ["u1", "u2", "u3"]);
    assert_eq!(kept_in(&stage, &thread(&edited)).await, ["u1", "changed"]);
}

async fn a_failed_turn_tried_again_is_told_once() {
    let failed = Step::status(400, "invalid_request_error", "no");
    let stage =
        Stage::free(vec![Reply::text("one"), Reply::new([failed]), Reply::text("two")]).await;
    let model = model(&stage);
    let first = call(&model, &[user("u1")]).await;
    let prompt = [user("u1"), kept(&first), user("u2")];
    assert!(!call(&model, &prompt).await.errors.is_empty());
    assert_eq!(text(&call(&model, &prompt).await), "two");
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: u2"]);
}

async fn answers_asked_for_at_once_do_not_wait_for_each_other() {
    let held = |text: &str| Reply::new([Step::gate("go"), Step::text(text)]).when_user("u2");
    let stage = Stage::free(vec![Reply::text("one").when_user("u1"), held("a"), held("b")]).await;
    let model = model(&stage);
    let first = call(&model, &[user("u1")]).await;
    let prompt = [user("u1"), kept(&first), user("u2")];
    let release = async {
        stage.model.wait_for_requests(3).await;
        stage.model.open("go");
        stage.model.open("go");
    };
    let (a, b, ()) = tokio::join!(call(&model, &prompt), call(&model, &prompt), release);
    assert_ne!(thread(&a), thread(&b));
    let mut texts = [text(&a), text(&b)];
    texts.sort();
    assert_eq!(texts, ["a", "b"]);
    for body in &stage.model.bodies()[1..] {
        let words: Vec<String> = heard(body).into_iter().filter(|l| !l.contains('<')).collect();
        assert_eq!(words, ["user: u1", "assistant: one", "user: u2"]);
    }
}

async fn a_turn_that_was_stopped_unheard_is_left_out() {
    let stage = Stage::free(vec![
        Reply::text("one"),
        Reply::new([Step::Silence]).when_user("u2"),
        Reply::text("three"),
    ])
    .await;
    let model = model(&stage);
    let first = call(&model, &[user("u1")]).await;
    let mut prompt = vec![user("u1"), kept(&first), user("u2")];
    let stopped = model.stream(&options(&prompt, &json!({}))).await.unwrap();
    stage.model.wait_for_requests(2).await;
    drop(stopped);
    prompt[2] = user("u3");
    assert_eq!(text(&call(&model, &prompt).await), "three");
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: u3"]);
}

fn tool() -> Value {
    json!({ "tools": [{ "type": "function", "name": "now", "description": "now",
        "inputSchema": { "type": "object", "properties": {} } }] })
}

fn result(value: &str) -> Value {
    json!({ "role": "tool", "content": [{ "type": "tool-result", "toolCallId": "c1",
        "toolName": "now", "output": { "type": "text", "value": value } }] })
}

async fn another_answer_to_a_tools_result_has_the_result_and_not_the_first_answer() {
    let stage = Stage::free(vec![
        Reply::text("hi").when_user("u1"),
        Reply::new([Step::call("now", json!({}), "c1")]).when_user("u2").when_after_tool(false),
        Reply::text("noon"),
        Reply::text("twelve"),
        Reply::text("midday"),
    ])
    .await;
    let model = model(&stage);
    let first = call_with(&model, &[user("u1")], &tool()).await;
    let prompt = [user("u1"), kept(&first), user("u2")];
    let asked = call_with(&model, &prompt, &tool()).await;
    let prompt = [&prompt[..], &[kept(&asked), result("12:00")]].concat();
    assert_eq!(text(&call_with(&model, &prompt, &tool()).await), "noon");
    let told = [
        "user: u1",
        "assistant: hi",
        "user: u2",
        "call \"now\": \"{}\"",
        "output \"c1\": \"12:00\"",
    ];
    assert_eq!(said(&stage), told);
    // The same again: the turn that asked is over, and has the answer that is not wanted.
    let again = call_with(&model, &prompt, &tool()).await;
    assert_eq!(text(&again), "twelve");
    assert_eq!(said(&stage), told);
    assert_ne!(thread(&again), thread(&first));
    // And with more said after it.
    let prompt = [&prompt[..], &[user("u3")]].concat();
    assert_eq!(text(&call_with(&model, &prompt, &tool()).await), "midday");
    assert_eq!(said(&stage), [&told[..], &["user: u3"]].concat());
}

async fn a_thread_that_is_gone_is_made_again_from_the_history() {
    let stage = Stage::free(Script::always("ok")).await;
    let gone = json!({ "codex": { "threadId": "019a0000-0000-7000-8000-000000000000",
        "turnId": "019a0000-0000-7000-8000-000000000001" } });
    let answer = json!({ "role": "assistant",
        "content": [{ "type": "text", "text": "one", "providerOptions": gone }] });
    let prompt = [user("u1"), answer, user("u2")];
    let told = call(&model(&stage), &prompt).await;
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: u2"]);
    let named = told.warnings.iter().any(
        |warning| matches!(warning, Warning::Compatibility { feature, .. } if feature == "thread"),
    );
    assert!(named, "{:?}", told.warnings);
    // Who names it by an option is told that there is none.
    let asked = json!({ "providerOptions": gone_option(&gone) });
    let err = model(&stage).stream(&options(&prompt[2..], &asked)).await.unwrap_err();
    assert!(err.to_string().contains("no rollout found"), "{err}");
}

fn gone_option(gone: &Value) -> Value {
    json!({ "codex": { "threadId": gone["codex"]["threadId"] } })
}

async fn a_thread_that_keeps_no_file_is_made_again_from_the_history() {
    let stage = Stage::free(["one", "two", "other"].map(Reply::text).to_vec()).await;
    let model = model(&stage);
    let keep = json!({ "providerOptions": { "codex": { "ephemeral": true } } });
    let first = call_with(&model, &[user("u1")], &keep).await;
    let prompt = [user("u1"), kept(&first), user("u2")];
    call_with(&model, &prompt, &keep).await;
    assert_eq!(text(&call_with(&model, &prompt, &keep).await), "other");
    assert_eq!(said(&stage), ["user: u1", "assistant: one", "user: u2"]);
}

async fn a_compaction_in_between_is_kept() {
    let mut stage = Stage::free(vec![
        Reply::text("one").when_user("u1"),
        Reply::text("two").when_user("u2"),
        Reply::text("a summary").always(),
    ])
    .await;
    let first = call(&model(&stage), &[user("u1")]).await;
    bindery_client::compaction::compact(
        &stage.server,
        &thread(&first),
        std::time::Duration::from_secs(60),
    )
    .await
    .unwrap();
    stage.reopen().await;
    let second = call(&model(&stage), &[user("u1"), kept(&first), user("u2")]).await;
    assert_eq!(thread(&second), thread(&first));
    assert!(said(&stage).join(" ").contains("a summary"), "{:?}", said(&stage));
}

crate::backend::on_both! {
    another_answer_to_the_last_message_forgets_the_first_one,
    a_message_changed_some_turns_back_goes_on_from_there,
    a_failed_turn_tried_again_is_told_once,
    answers_asked_for_at_once_do_not_wait_for_each_other,
    a_turn_that_was_stopped_unheard_is_left_out,
    another_answer_to_a_tools_result_has_the_result_and_not_the_first_answer,
    a_thread_that_is_gone_is_made_again_from_the_history,
    a_compaction_in_between_is_kept,
}

mod ephemeral {
    #[tokio::test]
    async fn a_thread_that_keeps_no_file_is_made_again_from_the_history() {
        super::a_thread_that_keeps_no_file_is_made_again_from_the_history().await;
    }
}
