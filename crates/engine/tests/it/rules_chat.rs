//! The rules of the Chat wire, which Codex 0.94 was the last to speak.

use bindery_engine::item::HistoryItem;
use bindery_engine::model::{ModelRequest, Wire};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

use crate::wires::{ask, provider, request};

/// The messages that a history becomes, after the base prompt.
async fn messages(items: &[Value]) -> Vec<Value> {
    let model = Model::start(Script::always("ok"));
    let input = items.iter().cloned().map(HistoryItem::from_value).collect();
    ask(&provider(Wire::Chat, &model), ModelRequest { input, ..request("") }).await.ended.unwrap();
    let body = model.bodies().remove(0);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0], json!({ "role": "system", "content": "Be brief." }));
    messages[1..].to_vec()
}

fn say(role: &str, parts: Value) -> Value {
    json!({ "type": "message", "role": role, "content": parts })
}

fn user(text: &str) -> Value {
    say("user", json!([{ "type": "input_text", "text": text }]))
}

fn assistant(text: &str) -> Value {
    say("assistant", json!([{ "type": "output_text", "text": text }]))
}

fn think(text: &str) -> Value {
    json!({ "type": "reasoning", "summary": [],
        "content": [{ "type": "reasoning_text", "text": text }] })
}

#[tokio::test]
async fn what_the_wire_has_no_place_for_is_left_out() {
    let history = [
        user("go"),
        json!({ "type": "reasoning", "summary": [], "encrypted_content": "sealed" }),
        json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" }),
        json!({ "type": "compaction", "encrypted_content": "sealed" }),
        json!({ "type": "ghost_snapshot", "ghost_commit": {} }),
        assistant("Done."),
        user("and?"),
    ];
    let want = [
        json!({ "role": "user", "content": "go" }),
        json!({ "role": "assistant", "content": "Done." }),
        json!({ "role": "user", "content": "and?" }),
    ];
    assert_eq!(messages(&history).await, want);
}

#[tokio::test]
async fn the_model_s_own_words_are_always_a_string() {
    let picture = json!({ "type": "input_image", "image_url": "data:," });
    let words = json!({ "type": "output_text", "text": "Look:" });
    let history = [user("go"), say("assistant", json!([words, picture]))];
    let want = json!({ "role": "assistant", "content": "Look:" });
    assert_eq!(messages(&history).await[1], want);
}

#[tokio::test]
async fn equal_words_of_the_model_are_said_once_where_nothing_is_between_them() {
    let (same, other) = (assistant("Same."), assistant("Other."));
    let history = [user("a"), same.clone(), same.clone(), other, same.clone(), user("b"), same];
    let said: Vec<String> = messages(&history)
        .await
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["a", "Same.", "Other.", "Same.", "b", "Same."]);
}

#[tokio::test]
async fn thoughts_go_back_only_behind_the_last_words_of_the_user() {
    let call = json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1" });
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "out" });
    let turn = [user("go"), think("before"), call, output, think("after"), assistant("Done.")];
    let sent = messages(&turn).await;
    assert_eq!((&sent[1]["reasoning"], &sent[3]["reasoning"]), (&json!("before"), &json!("after")));
    let asked = [&turn[..], &[user("and?")]].concat();
    let sent = messages(&asked).await;
    assert!(sent.iter().all(|message| message.get("reasoning").is_none()), "{sent:#?}");
}

fn chunk(delta: Value) -> Step {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    Step::Event { event: json!({ "choices": [choice] }) }
}

fn finish(reason: &str) -> Step {
    let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
    Step::Event { event: json!({ "choices": [choice] }) }
}

/// The items that a stream becomes, each as its kind and its words.
async fn items(steps: Vec<Step>) -> Vec<String> {
    let model = Model::start(vec![Reply::new(steps)]);
    let asked = ask(&provider(Wire::Chat, &model), request("go")).await;
    assert!(asked.ended.is_ok(), "{:?}", asked.ended);
    let line = |item: &Value| match item["type"].as_str().unwrap() {
        "function_call" => format!("call {} {}", item["name"], item["arguments"]),
        kind => format!("{kind} {}", item["content"][0]["text"]),
    };
    asked.items().iter().map(line).collect()
}

#[tokio::test]
async fn thoughts_are_read_wherever_a_server_puts_them() {
    let places = [
        json!({ "reasoning": "Hm" }),
        json!({ "reasoning": { "text": "Hm" } }),
        json!({ "reasoning": { "content": "Hm" } }),
        json!({ "reasoning_content": "Hm" }),
    ];
    for place in places {
        let steps = vec![chunk(place.clone()), chunk(json!({ "content": "Hi" })), finish("stop")];
        assert_eq!(items(steps).await, ["reasoning \"Hm\"", "message \"Hi\""], "{place}");
    }
}

#[tokio::test]
async fn words_before_calls_are_kept_however_the_stream_ends() {
    let function = json!({ "name": "f", "arguments": "{}" });
    let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
    let begun = [
        chunk(json!({ "reasoning": "Hm" })),
        chunk(json!({ "content": "I look." })),
        chunk(json!({ "tool_calls": calls })),
    ];
    let want = ["reasoning \"Hm\"", "message \"I look.\"", r#"call "f" "{}""#];
    let done = Step::bytes(b"data: [DONE]\n\n");
    for end in [vec![finish("tool_calls")], vec![finish("stop")], vec![done]] {
        assert_eq!(items([&begun[..], &end[..]].concat()).await, want, "{end:?}");
    }
}
