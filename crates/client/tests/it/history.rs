//! Calls of the AI SDK on the real Codex: history, continuation, warnings.

use bindery_client::model::{LanguageModel, ModelSettings};
use bindery_core::call::CallOptions;
use bindery_core::content::Generated;
use bindery_core::part::Warning;
use bindery_core::spec::{Spec, codex_of};
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::model::{Reply, Script};
use serde_json::{Value, json};

use crate::stage::{Stage, heard};

fn model(stage: &Stage) -> LanguageModel {
    let cwd = Some(stage.codex.project().display().to_string());
    let thread = ThreadSettings { cwd, ..ThreadSettings::default() };
    LanguageModel::new(stage.server.clone(), ModelSettings { thread, ..ModelSettings::default() })
}

async fn call(model: &LanguageModel, options: Value) -> Generated {
    let options: CallOptions = serde_json::from_value(options).unwrap();
    model.generate(&options, Spec::V4).await.unwrap()
}

/// What a request says, Codex's own context left out.
fn said(body: &Value) -> Vec<String> {
    heard(body).into_iter().filter(|line| !line.contains("<environment_context>")).collect()
}

async fn history_with_tool_results_reaches_the_model_with_roles_and_order() {
    let stage = Stage::free(Script::always("5 it is")).await;
    let generated = call(&model(&stage), json!({ "prompt": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "add 2 and 3"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "let me see"},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": {"a": 2, "b": 3}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "add",
            "output": {"type": "json", "value": {"sum": 5}}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "5"}]},
        {"role": "user", "content": [{"type": "text", "text": "are you sure"}]}] }))
    .await;
    assert_eq!(generated.content.last().unwrap()["text"], "5 it is");
    let body = &stage.model.bodies()[0];
    insta::assert_snapshot!(said(body).join("\n"), @r#"
    user: add 2 and 3
    assistant: let me see
    call "add": "{\"a\":2,\"b\":3}"
    output "c1": "{\"sum\":5}"
    assistant: 5
    user: are you sure
    "#);
    assert!(body["input"].to_string().contains("be brief"));
}

async fn a_conversation_goes_on_through_its_metadata_and_sends_only_what_is_new() {
    let mut stage = Stage::free(vec![Reply::text("one"), Reply::text("two")]).await;
    let first =
        call(&model(&stage), json!({ "prompt": [{"role": "user", "content": "first"}] })).await;
    let thread = codex_of(first.provider_metadata.as_ref()).unwrap()["threadId"].clone();
    assert!(thread.is_string());
    stage.reopen().await;
    let second = call(
        &model(&stage),
        json!({ "prompt": [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [{"type": "text", "text": "one",
            "providerOptions": first.content[0]["providerMetadata"]}]},
        {"role": "user", "content": "second"}] }),
    )
    .await;
    assert_eq!(codex_of(second.provider_metadata.as_ref()).unwrap()["threadId"], thread);
    assert_eq!(said(&stage.model.bodies()[1]), ["user: first", "assistant: one", "user: second"]);
}

async fn every_setting_that_cannot_be_carried_is_named() {
    let stage = Stage::free(Script::always("ok")).await;
    let generated = call(
        &model(&stage),
        json!({
        "temperature": 0.5, "stopSequences": ["x"], "seed": 1,
        "prompt": [{"role": "user", "content": [
            {"type": "text", "text": "read it"},
            {"type": "file", "mediaType": "application/pdf", "data": "JVBERi0=",
             "filename": "a.pdf"}]}] }),
    )
    .await;
    let named: Vec<String> = (generated.warnings.iter())
        .filter_map(|warning| match warning {
            Warning::Unsupported { feature, .. } => Some(feature.clone()),
            _ => None,
        })
        .collect();
    for feature in ["temperature", "stopSequences", "seed", "pdf"] {
        assert!(named.iter().any(|name| name.contains(feature)), "{feature}: {named:?}");
    }
}

async fn a_prompt_with_nothing_to_say_is_an_error_with_a_hint() {
    let stage = Stage::free(Script::always("ok")).await;
    let err = model(&stage).stream(&CallOptions::default()).await.unwrap_err();
    assert_eq!((err.code(), err.hint().is_some()), ("empty_prompt", true));
}

crate::backend::on_both! {
    history_with_tool_results_reaches_the_model_with_roles_and_order,
    a_conversation_goes_on_through_its_metadata_and_sends_only_what_is_new,
    every_setting_that_cannot_be_carried_is_named,
    a_prompt_with_nothing_to_say_is_an_error_with_a_hint,
}

#[tokio::test]
async fn skills_that_are_named_reach_codex_with_their_path() {
    let stage = Stage::free(Script::always("deployed")).await;
    let folder = stage.codex.project().join(".agents/skills/deploy");
    std::fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: deploy\ndescription: how we deploy\n---\nAlways press the green key.\n";
    std::fs::write(folder.join("SKILL.md"), skill).unwrap();
    let by_option = json!({ "codex": { "skills": ["deploy", "nowhere"] } });
    let table = [
        (
            json!([{ "role": "user", "content": "ship it", "providerOptions": by_option }]),
            json!({}),
            1,
        ),
        (
            json!([{ "role": "user", "content": "use $deploy." }]),
            json!({ "parseMentions": true }),
            0,
        ),
    ];
    for (at, (prompt, own, warnings)) in table.into_iter().enumerate() {
        let options = json!({ "prompt": prompt, "providerOptions": { "codex": own } });
        let generated = call(&model(&stage), options).await;
        let bodies = stage.model.bodies();
        let input = bodies[at]["input"].to_string();
        assert!(input.contains("Always press the green key."), "{input}");
        assert_eq!(generated.warnings.len(), warnings, "{:?}", generated.warnings);
    }
}
