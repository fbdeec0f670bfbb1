//! Passes over messages, each switched on by its field.

use serde_json::{Value, json};

use super::super::super::chat_profile::{ChatProfile, EmptyContent, SystemPlacement, ToolCallIds};
use super::shape_messages;

fn say(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn call(text: Value, ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "function": { "name": "f", "arguments": "{}" } });
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": text, "tool_calls": calls })
}

fn answer(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "name": "f", "content": "out" })
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn neighbours_of_one_role_are_merged_and_an_interrupted_call_is_bridged() {
    let profile =
        ChatProfile { alternate_roles: true, bridge_tool_to_user: true, ..ChatProfile::default() };
    let history = vec![
        say("system", "base"),
        say("user", "context"),
        say("user", "go"),
        say("assistant", "I look."),
        call(Value::Null, &["1"]),
        answer("1"),
        say("user", "stop that"),
        say("developer", "new rules"),
        say("assistant", "a"),
        say("assistant", "b"),
    ];
    let shaped = shape_messages(history, &profile);
    assert_eq!(
        roles(&shaped),
        ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    );
    assert_eq!(shaped[1]["content"], "context\n\ngo");
    assert_eq!(shaped[2]["content"], "I look.");
    assert_eq!(shaped[2]["tool_calls"][0]["id"], "1");
    assert_eq!(shaped[5]["content"], "stop that\n\nnew rules");
    assert_eq!(shaped[6]["content"], "a\n\nb");
}

#[test]
fn pictures_survive_a_merge() {
    let profile = ChatProfile { alternate_roles: true, ..ChatProfile::default() };
    let picture = json!({ "type": "image_url", "image_url": { "url": "data:," } });
    let history =
        vec![say("user", "see"), json!({ "role": "user", "content": [picture] }), say("user", "?")];
    let shaped = shape_messages(history, &profile);
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(shaped, [json!({ "role": "user", "content": [text("see"), picture, text("?")] })]);
}

#[test]
fn without_a_system_role_the_first_user_message_has_the_prompt() {
    let profile = ChatProfile { system: SystemPlacement::Unsupported, ..ChatProfile::default() };
    let shaped = shape_messages(vec![say("system", "base"), say("user", "go")], &profile);
    assert_eq!(shaped, [say("user", "base\n\ngo")]);
    let shaped = shape_messages(vec![say("system", "base"), say("assistant", "hi")], &profile);
    assert_eq!(shaped, [say("user", "base"), say("assistant", "hi")]);
}

#[test]
fn a_history_without_a_user_gets_one() {
    let shaped = shape_messages(
        vec![say("system", "base"), say("assistant", "hi")],
        &ChatProfile::default(),
    );
    assert_eq!(roles(&shaped), ["system", "user", "assistant"]);
}

#[test]
fn parallel_calls_become_single_ones_with_their_answers() {
    let profile = ChatProfile { single_tool_calls: true, ..ChatProfile::default() };
    let history =
        vec![say("user", "go"), call(json!("text"), &["1", "2"]), answer("1"), answer("2")];
    let shaped = shape_messages(history, &profile);
    assert_eq!(roles(&shaped), ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(shaped[1]["content"], "text");
    assert_eq!(shaped[3]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&shaped[2]["tool_call_id"], &shaped[4]["tool_call_id"]),
        (&json!("1"), &json!("2"))
    );
}

#[test]
fn ids_of_nine_letters_stay_apart_and_the_same() {
    let profile = ChatProfile { tool_call_ids: ToolCallIds::Alnum9, ..ChatProfile::default() };
    let history = vec![
        say("user", "go"),
        call(Value::Null, &["call_aaaaaaaaaaaa", "abcdefgh1"]),
        answer("call_aaaaaaaaaaaa"),
        answer("abcdefgh1"),
    ];
    let shaped = shape_messages(history, &profile);
    let id = |at: usize| shaped[1]["tool_calls"][at]["id"].as_str().unwrap();
    assert_eq!((id(0).len(), id(1)), (9, "abcdefgh1"));
    assert!(id(0).bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(
        (&shaped[2]["tool_call_id"], &shaped[3]["tool_call_id"]),
        (&json!(id(0)), &json!(id(1)))
    );
}

#[test]
fn a_text_that_is_not_there_is_told_as_the_profile_says() {
    let history = vec![say("user", "go"), call(json!(""), &["1"]), answer("1")];
    let shaped = |empty_content| {
        let profile = ChatProfile { empty_content, ..ChatProfile::default() };
        shape_messages(history.clone(), &profile)[1].get("content").cloned()
    };
    assert_eq!(shaped(EmptyContent::Null), Some(Value::Null));
    assert_eq!(shaped(EmptyContent::Empty), Some(json!("")));
    assert_eq!(shaped(EmptyContent::Omit), None);
    let profile = ChatProfile { non_empty_text: true, ..ChatProfile::default() };
    let mut silent = answer("1");
    silent["content"] = json!("");
    let shaped = shape_messages(vec![say("user", "go"), call(json!(""), &["1"]), silent], &profile);
    assert_eq!(shaped[2]["content"], "-");
}

#[test]
fn tools_can_be_told_in_text() {
    let profile =
        ChatProfile { tools_as_text: true, alternate_roles: true, ..ChatProfile::default() };
    let history =
        vec![say("user", "go"), call(json!("I look."), &["1", "2"]), answer("1"), answer("2")];
    let shaped = shape_messages(history, &profile);
    assert_eq!(roles(&shaped), ["user", "assistant", "user"]);
    let text = shaped[1]["content"].as_str().unwrap();
    assert_eq!(text.matches("<tool_call>").count(), 2);
    assert_eq!(shaped[2]["content"], "Result of `f`:\nout\n\nResult of `f`:\nout");
    assert!(shaped.iter().all(|message| message.get("tool_calls").is_none()));
}
