//! Histories and the messages they become.

use serde_json::{Value, json};

use super::super::super::{DeveloperRole, Placement, Provider, Wire};
use super::messages;
use crate::item::HistoryItem;

fn provider() -> Provider {
    Provider::new(Wire::Chat, "http://localhost")
}

fn told(base: &str, items: &[Value], provider: &Provider) -> Vec<Value> {
    let items = items.iter().cloned().map(HistoryItem::from_value).collect();
    messages(base.to_owned(), items, provider)
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
        calls(Value::Null, &["3"]),
        tool("3", "three"),
        calls(Value::Null, &["4"]),
        tool("4", "four"),
        chat("assistant", "Done."),
    ];
    assert_eq!(told("", &history, &provider()), want);
}

#[test]
fn ids_that_repeat_keep_their_own_outputs() {
    let history = [call("0"), output("0", "first"), call("0"), output("0", "second")];
    let want = [
        calls(Value::Null, &["0"]),
        tool("0", "first"),
        calls(Value::Null, &["0"]),
        tool("0", "second"),
    ];
    assert_eq!(told("", &history, &provider()), want);
}

#[test]
fn the_developer_has_the_role_the_server_knows() {
    let history = [say("developer", "rules"), say("user", "hi"), say("developer", "more")];
    let all = |developer, placement| {
        let provider = Provider { developer, placement, ..provider() };
        told("base", &history, &provider)
    };
    let (instructions, user) = (Placement::Instructions, chat("user", "hi"));
    assert_eq!(
        all(DeveloperRole::System, instructions),
        [chat("system", "base\n\nrules"), user.clone(), chat("system", "more")],
    );
    assert_eq!(
        all(DeveloperRole::User, instructions),
        [chat("system", "base\n\nrules"), user.clone(), chat("user", "more")],
    );
    assert_eq!(
        all(DeveloperRole::Developer, Placement::Developer),
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
    let mut first = calls(Value::Null, &["1"]);
    first["reasoning"] = json!("first");
    let want = [
        json!({ "role": "user", "content": [part, { "type": "text", "text": "see" }] }),
        first,
        json!({ "role": "tool", "tool_call_id": "1", "content": [part] }),
        json!({ "role": "assistant", "content": "A cat.", "reasoning": "second\n\nthird" }),
    ];
    assert_eq!(told("", &history, &provider()), want);
    let mute = Provider { thoughts: None, ..provider() };
    assert_eq!(told("", &history, &mute)[3], chat("assistant", "A cat."));
    let mut asked = history.to_vec();
    asked.push(say("user", "and?"));
    assert_eq!(told("", &asked, &provider())[3], chat("assistant", "A cat."));
}

#[test]
fn shells_of_old_sessions_are_kept() {
    let shell = json!({ "type": "local_shell_call", "call_id": "s", "action": { "a": 1 } });
    let messages = told("", &[shell, output("s", "out")], &provider());
    assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(messages[1], tool("s", "out"));
}
