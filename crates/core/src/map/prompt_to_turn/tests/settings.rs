//! Settings, instructions and tools.

use serde_json::{Value, json};

use super::*;

fn with(settings: Value) -> TurnPlan {
    let mut options = settings;
    if options.get("prompt").is_none() {
        options["prompt"] = json!([user("q")]);
    }
    planned(options)
}

fn codex(options: Value) -> TurnPlan {
    with(json!({ "providerOptions": { "codex": options } }))
}

#[test]
fn settings_that_codex_lacks_are_named_once_each() {
    let plan = with(json!({
        "temperature": 0.5, "topP": 1, "topK": 2, "stopSequences": ["x"], "maxOutputTokens": 9,
        "seed": 1, "presencePenalty": 0, "frequencyPenalty": 0, "mood": "calm",
        "maxRetries": null, "abortSignal": {}, "includeRawChunks": true,
        "headers": { "User-Agent": "ai/6", "authorization": "secret" },
        "toolChoice": { "type": "required" },
        "responseFormat": { "type": "json" },
        "reasoning": "ludicrous",
        "tools": [
            { "type": "provider", "id": "openai.web_search", "name": "web", "args": {} },
            { "type": "function", "name": "add", "inputSchema": {}, "strict": true,
              "inputExamples": [{ "input": {} }] },
            { "type": "spell", "name": "abracadabra" }],
        "providerOptions": { "openai": { "store": true }, "codex": {
            "summary": "long", "sandbox": "none", "ephemeral": "yes", "model": "", "colour": 1,
            "turnExtra": { "input": [], "serviceTier": "fast" }, "effort": null } },
    }));
    insta::assert_snapshot!(warned(&plan).join("\n"), @r#"
    no providerOptions.codex.model
    no providerOptions.codex.sandbox
    no providerOptions.codex.ephemeral
    no providerOptions.codex.summary
    no providerOptions.codex.colour
    no provider tool `openai.web_search` (`web`)
    no strict of tool `add`
    no inputExamples of tool `add`
    no tool `abracadabra`
    no frequencyPenalty
    no maxOutputTokens
    no mood
    no presencePenalty
    no seed
    no stopSequences
    no temperature
    no topK
    no topP
    no headers
    no toolChoice
    no reasoning
    no responseFormat
    no providerOptions.codex.turnExtra.input
    "#);
    assert!(!serde_json::to_string(&plan.warnings).unwrap().contains("secret"));
    assert_eq!(json!(plan.turn_settings), json!({ "serviceTier": "fast" }));
    let add = json!({ "type": "function", "name": "add", "description": "", "inputSchema": {} });
    assert_eq!(plan.dynamic_tools, [add]);
}

#[test]
fn effort_and_summary() {
    #[rustfmt::skip]
    let table = [
        (json!({"reasoning": "provider-default"}),                                  json!({})),
        (json!({"reasoning": "none"}),                                json!({"effort": "none"})),
        (json!({"reasoning": "max"}),                                 json!({"effort": "max"})),
        (json!({"reasoning": "low", "providerOptions": {"codex": {"effort": "ultra"}}}),
            json!({"effort": "ultra"})),
        (json!({"providerOptions": {"bindery": {"reasoningEffort": "high", "reasoningSummary": "auto"}}}),
            json!({"effort": "high", "summary": "auto"})),
        (json!({"providerOptions": {"codex": {"summary": "none"}}}),  json!({"summary": "none"})),
    ];
    for (settings, want) in table {
        let plan = with(settings.clone());
        assert_eq!(json!(plan.turn_settings), want, "{settings}");
        assert_eq!(plan.warnings, [], "{settings}");
    }
}

#[test]
fn a_schema_is_the_turns_output_schema() {
    let schema = json!({ "type": "object" });
    let plan = with(json!({ "responseFormat": { "type": "json", "schema": schema } }));
    assert_eq!((plan.turn_settings.output_schema, plan.warnings), (Some(schema.clone()), vec![]));
    let named = json!({ "type": "json", "schema": schema, "name": "x" });
    let plan = with(json!({ "responseFormat": named }));
    assert_eq!(warned(&plan), ["no responseFormat.name, responseFormat.description"]);
    assert_eq!(with(json!({ "responseFormat": { "type": "text" } })).warnings, []);
}

#[test]
fn system_messages_are_instructions_in_order() {
    let system = |text: &str| json!({ "role": "system", "content": text });
    let prompt = json!([system("one"), user("q"), system(" "), system("two"), user("r")]);
    #[rustfmt::skip]
    let table = [
        (json!({}),                                   json!({"developerInstructions": "one\n\ntwo"})),
        (json!({"instructions": "developer"}),        json!({"developerInstructions": "one\n\ntwo"})),
        (json!({"instructions": "base"}),             json!({"baseInstructions": "one\n\ntwo"})),
        (json!({"developerInstructions": "zero"}),    json!({"developerInstructions": "zero\n\none\n\ntwo"})),
        (json!({"baseInstructions": "zero"}),
            json!({"baseInstructions": "zero", "developerInstructions": "one\n\ntwo"})),
    ];
    for (options, want) in table {
        let call = json!({ "prompt": prompt, "providerOptions": { "codex": options } });
        let plan = planned(call);
        assert_eq!(json!(plan.thread_settings), want, "{options}");
        assert_eq!(plan.input.len(), 2);
    }
}

#[test]
fn options_reach_the_thread_and_an_open_thread_by_the_turn() {
    let options = json!({
        "model": "m", "modelProvider": "p", "cwd": "/p", "approvalPolicy": { "granular": {} },
        "approvalsReviewer": "user", "sandbox": "read-only", "sandboxPolicy": { "type": "readOnly" },
        "ephemeral": true, "config": { "a.b": 1 }, "threadExtra": { "personality": "friendly" },
    });
    let fresh = codex(options.clone());
    assert_eq!((fresh.ephemeral, fresh.warnings), (Some(true), vec![]));
    assert_eq!(json!(fresh.turn_settings), json!({ "sandboxPolicy": { "type": "readOnly" } }));
    assert_eq!(
        json!(fresh.thread_settings),
        json!({
            "model": "m", "modelProvider": "p", "cwd": "/p", "approvalPolicy": { "granular": {} },
            "approvalsReviewer": "user", "sandbox": "read-only", "config": { "a.b": 1 },
            "personality": "friendly",
        })
    );
    let mut options = options;
    options["threadId"] = json!("t1");
    assert_eq!(
        json!(codex(options).turn_settings),
        json!({
            "model": "m", "cwd": "/p", "approvalPolicy": { "granular": {} },
            "approvalsReviewer": "user", "sandboxPolicy": { "type": "readOnly" },
        })
    );
}

#[test]
fn options_that_are_no_object_are_named() {
    assert_eq!(warned(&codex(json!("fast"))), ["no providerOptions.codex"]);
    assert_eq!(warned(&codex(Value::Null)), [""; 0]);
}
