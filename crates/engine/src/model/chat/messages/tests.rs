//! Histories and the messages they become.

use serde_json::{Value, json};

use super::super::super::Placement;
use super::super::super::chat_profile::{
    ChatProfile, DeveloperRole, ReasoningScope, SystemPlacement,
};
use super::build_messages;
use crate::item::HistoryItem;

fn profile() -> ChatProfile {
    ChatProfile::default()
}

fn told_at(base: &str, items: &[Value], placement: Placement, profile: &ChatProfile) -> Vec<Value> {
    let items = items.iter().cloned().map(HistoryItem::from_value).collect();
    build_messages(base.to_owned(), items, placement, profile)
}

fn told(base: &str, items: &[Value], profile: &ChatProfile) -> Vec<Value> {
    told_at(base, items, Placement::Instructions, profile)
}

fn say(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": id })
}

fn output(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

fn think(text: &str) -> Value {
    let content = json!([{ "type": "reasoning_text", "text": text }]);
    json!({ "type": "reasoning", "summary": [], "content": content })
}

fn chat(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn calls(content: Value, ids: &[&str]) -> Value {
    let function = json!({ "name": "f", "arguments": "{}" });
    let call = |id: &&str| json!({ "id": id, "type": "function", "function": function });
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}

fn tool(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

#[test]
fn calls_made_at_once_are_one_message_and_their_outputs_follow() {
    let history = [
        say("user", "go"),
        say("assistant", "I look."),
        call("1"),
        call("2"),
        say("user", "meanwhile"),
        output("2", "two"),
        output("1", "one"),
        call("3"),
        output("3", "three"),
        call("4"),
        output("4", "four"),
        say("assistant", "Done."),
        say("assistant", "Done."),
    ];
    let want = [
        chat("user", "go"),
        calls(json!("I look."), &["1", "2"]),
        tool("1", "one"),
        tool("2", "two"),
        chat("user", "meanwhile"),
        calls(json!(""), &["3"]),
        tool("3", "three"),
        calls(json!(""), &["4"]),
        tool("4", "four"),
        chat("assistant", "Done."),
    ];
    assert_eq!(told("", &history, &profile()), want);
}

#[test]
fn ids_that_repeat_keep_their_own_outputs() {
    let history =
        [say("user", "go"), call("0"), output("0", "first"), call("0"), output("0", "second")];
    let want = [
        chat("user", "go"),
        calls(json!(""), &["0"]),
        tool("0", "first"),
        calls(json!(""), &["0"]),
        tool("0", "second"),
    ];
    assert_eq!(told("", &history, &profile()), want);
}

#[test]
fn the_developer_has_the_role_the_server_knows() {
    let history = [say("developer", "rules"), say("user", "hi"), say("developer", "more")];
    let all = |developer_role, system, placement| {
        let profile = ChatProfile { developer_role, system, ..profile() };
        told_at("base", &history, placement, &profile)
    };
    let (instructions, user) = (Placement::Instructions, chat("user", "hi"));
    assert_eq!(
        all(DeveloperRole::System, SystemPlacement::Anywhere, instructions),
        [chat("system", "base\n\nrules"), user.clone(), chat("system", "more")],
    );
    let later_as_user = [chat("system", "base\n\nrules"), user.clone(), chat("user", "more")];
    assert_eq!(all(DeveloperRole::User, SystemPlacement::Anywhere, instructions), later_as_user);
    assert_eq!(all(DeveloperRole::System, SystemPlacement::First, instructions), later_as_user);
    assert_eq!(
        all(DeveloperRole::Developer, SystemPlacement::First, Placement::Developer),
        [chat("developer", "base"), chat("developer", "rules"), user, chat("developer", "more")],
    );
}

#[test]
fn pictures_make_parts_and_thoughts_go_back() {
    let picture = json!({ "type": "input_image", "image_url": "data:,", "detail": "original" });
    let text = json!({ "type": "input_text", "text": "see" });
    let mut with_picture = say("user", "");
    with_picture["content"] = json!([picture, text]);
    let old = think("before the last user message");
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" });
    let mut seen = output("1", "");
    seen["output"] = json!([picture]);
    let history = [
        old,
        with_picture,
        think("first"),
        call("1"),
        seen,
        search,
        think("second"),
        say("assistant", "A cat."),
        think("third"),
    ];
    let part = json!({ "type": "image_url", "image_url": { "url": "data:," } });
    let mut first = calls(json!(""), &["1"]);
    first["reasoning"] = json!("first");
    let want = [
        json!({ "role": "user", "content": [part, { "type": "text", "text": "see" }] }),
        first,
        tool("1", ""),
        json!({ "role": "user", "content": [
            { "type": "text", "text": "Pictures from the tools' answers:" }, part,
        ] }),
        json!({ "role": "assistant", "content": "A cat.", "reasoning": "second\n\nthird" }),
    ];
    assert_eq!(told("", &history, &profile()), want);
    let mute = ChatProfile { reasoning_field: String::new(), ..profile() };
    assert_eq!(told("", &history, &mute)[4], chat("assistant", "A cat."));
    let mut asked = history.to_vec();
    asked.push(say("user", "and?"));
    assert_eq!(told("", &asked, &profile())[4], chat("assistant", "A cat."));
    let all = ChatProfile { reasoning_scope: ReasoningScope::All, ..profile() };
    assert_eq!(told("", &asked, &all)[4]["reasoning"], "second\n\nthird");
}

#[test]
fn shells_of_old_sessions_are_kept() {
    let shell = json!({ "type": "local_shell_call", "call_id": "s", "action": { "a": 1 } });
    let messages = told("", &[say("user", "go"), shell, output("s", "out")], &profile());
    let messages = &messages[1..];
    assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(messages[1], tool("s", "out"));
}

#[test]
fn arguments_that_are_no_object_are_sent_back_as_an_empty_one_with_the_original_in_the_answer() {
    for written in [r#"{"cmd": "ls"#, "[1]", "\"ls\"", "ls -l"] {
        let mut broken = call("1");
        broken["arguments"] = json!(written);
        let history = [say("user", "go"), broken, output("1", "invalid arguments")];
        let messages = told("", &history, &profile());
        assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{}", "{written}");
        let answer = format!("the arguments are no JSON object: {written}\ninvalid arguments");
        assert_eq!(messages[2]["content"], answer);
    }
}

#[test]
fn what_a_server_wants_back_with_a_call_is_kept() {
    let mut signed = call("1");
    let extra = json!({ "google": { "thought_signature": "sealed" } });
    signed["extra_content"] = extra.clone();
    let messages = told("", &[say("user", "go"), signed, output("1", "ok")], &profile());
    assert_eq!(messages[1]["tool_calls"][0]["extra_content"], extra);
}
