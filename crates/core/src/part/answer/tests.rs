//! The answer, told from what is said on the way to it.

use serde_json::{Value, json};

use super::*;

/// `text` of this phase, in two deltas.
fn message(id: &str, words: [&str; 2], phase: Option<&str>) -> Vec<Value> {
    let metadata = json!({ "codex": { "itemId": id, "phase": phase } });
    let mut parts = vec![json!({ "type": "text-start", "id": id, "providerMetadata": metadata })];
    parts.extend(words.map(|delta| json!({ "type": "text-delta", "id": id, "delta": delta })));
    parts.push(json!({ "type": "text-end", "id": id, "providerMetadata": metadata }));
    parts
}

fn call() -> Vec<Value> {
    vec![json!({ "type": "tool-call", "toolCallId": "c", "toolName": "x", "input": "{}" })]
}

fn finish() -> Vec<Value> {
    vec![json!({ "type": "finish", "usage": { "inputTokens": {}, "outputTokens": {} },
        "finishReason": { "unified": "stop", "raw": "completed" } })]
}

/// What is told, one line a part.
fn told(undeclared: Undeclared, parts: Vec<Vec<Value>>) -> Vec<String> {
    let mut filter = AnswerFilter::new(undeclared);
    let parts = parts.into_iter().flatten().map(|part| serde_json::from_value(part).unwrap());
    let told: Vec<Part> = parts.flat_map(|part| filter.push(part)).collect();
    let line = |part: &Part| {
        let part = serde_json::to_value(part).unwrap();
        let words = part["delta"].as_str().map(|delta| format!(" {delta:?}"));
        format!("{}{}", part["type"].as_str().unwrap(), words.unwrap_or_default())
    };
    told.iter().map(line).collect()
}

const LOOK: [&str; 2] = ["I'll ", "look."];
const DONE: [&str; 2] = ["Do", "ne."];

#[test]
fn a_declared_answer_streams_and_commentary_is_reasoning() {
    let parts = || {
        let commentary = message("1", LOOK, Some("commentary"));
        vec![commentary, call(), message("2", DONE, Some("final_answer")), finish()]
    };
    let want = [
        "reasoning-start",
        "reasoning-delta \"I'll \"",
        "reasoning-delta \"look.\"",
        "reasoning-end",
        "tool-call",
        "text-start",
        "text-delta \"Do\"",
        "text-delta \"ne.\"",
        "text-end",
        "finish",
    ];
    for undeclared in [Undeclared::AtOnce, Undeclared::WhenKnown] {
        assert_eq!(told(undeclared, parts()), want);
    }
}

#[test]
fn messages_of_unknown_purpose_are_set_off_from_each_other() {
    let parts = vec![message("1", LOOK, None), call(), message("2", DONE, None), finish()];
    let want = [
        "text-start",
        "text-delta \"I'll \"",
        "text-delta \"look.\"",
        "text-end",
        "tool-call",
        "text-start",
        "text-delta \"\\n\\n\"",
        "text-end",
        "text-start",
        "text-delta \"Do\"",
        "text-delta \"ne.\"",
        "text-end",
        "finish",
    ];
    assert_eq!(told(Undeclared::AtOnce, parts), want);
}

#[test]
fn where_the_text_is_one_value_only_the_last_message_is_text() {
    let parts = vec![message("1", LOOK, None), call(), message("2", DONE, None), finish()];
    let want = [
        "tool-call",
        "reasoning-start",
        "reasoning-delta \"I'll look.\"",
        "reasoning-end",
        "text-start",
        "text-delta \"Done.\"",
        "text-end",
        "finish",
    ];
    assert_eq!(told(Undeclared::WhenKnown, parts), want);
    // A turn may end with a tool; the last message is its answer all the same.
    let parts = vec![message("1", DONE, None), call(), finish()];
    let want = ["tool-call", "text-start", "text-delta \"Done.\"", "text-end", "finish"];
    assert_eq!(told(Undeclared::WhenKnown, parts), want);
}

#[test]
fn what_stands_in_the_end_is_the_value_and_a_discarded_attempt_is_none() {
    let mut wrong = message("1", ["{\"a\"", ":1"], None);
    wrong[3]["providerMetadata"]["codex"]["text"] = json!("{\"a\":2}");
    let want = ["text-start", "text-delta \"{\\\"a\\\":2}\"", "text-end", "finish"];
    assert_eq!(told(Undeclared::WhenKnown, vec![wrong, finish()]), want);
    let mut discarded = message("1", DONE, None);
    discarded[3]["providerMetadata"]["codex"]["discarded"] = json!(true);
    let parts = told(Undeclared::WhenKnown, vec![discarded, message("2", DONE, None), finish()]);
    assert_eq!(parts.iter().filter(|part| part.starts_with("text-delta")).count(), 1);
    assert_eq!(parts[0], "reasoning-start");
}

#[test]
fn a_message_cut_off_is_told() {
    let mut cut = message("1", DONE, None);
    cut.pop();
    let parts = told(Undeclared::WhenKnown, vec![cut, finish()]);
    assert_eq!(parts, ["text-start", "text-delta \"Done.\"", "finish"]);
}
