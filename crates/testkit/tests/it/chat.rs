//! The same script as chat completions, streamed and whole.

use std::io::{Read, Write};
use std::net::TcpStream;

use bindery_testkit::model::{Model, Reply, Step};
use serde_json::{Value, json};

/// Posts by hand; the answer closes its connection.
fn post(model: &Model, body: &Value) -> String {
    let base = model.base_url();
    let host = base.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(host).expect("the model listens");
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len(),
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn reply() -> Reply {
    Reply::new([
        Step::reasoning(["Hm"]),
        Step::text("I look."),
        Step::exec("ls", "call_1"),
        Step::call_in("mcp__docs", "find", json!({}), "call_2"),
        Step::patch("*** Begin Patch", "call_3"),
    ])
}

#[test]
fn a_completion_can_be_had_whole() {
    let model = Model::start(vec![reply()]);
    let user = json!({ "role": "user", "content": "hi" });
    let answer = post(&model, &json!({ "model": "m", "messages": [user] }));
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let completion: Value = serde_json::from_str(body).expect("JSON");
    let call = |id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    let message = json!({
        "role": "assistant", "content": "I look.", "reasoning_content": "Hm",
        "tool_calls": [
            call("call_1", "exec_command", r#"{"cmd":"ls"}"#),
            call("call_2", "mcp__docs__find", "{}"),
            call("call_3", "apply_patch", r#"{"input":"*** Begin Patch"}"#),
        ],
    });
    let want = json!({ "index": 0, "message": message, "finish_reason": "tool_calls" });
    assert_eq!(completion["choices"], json!([want]));
    assert_eq!(completion["usage"]["total_tokens"], 120);
}

#[test]
fn a_stream_ends_as_openai_ends_it() {
    let model = Model::start(vec![reply()]);
    let options = json!({ "include_usage": true });
    let answer =
        post(&model, &json!({ "messages": [], "stream": true, "stream_options": options }));
    let data: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.last(), Some(&"[DONE]"));
    let chunk =
        |back: usize| -> Value { serde_json::from_str(data[data.len() - back]).expect("a chunk") };
    assert_eq!(chunk(2)["usage"]["prompt_tokens"], 100);
    assert_eq!(chunk(3)["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn replies_are_chosen_by_messages_too() {
    let model = Model::start(vec![
        Reply::text("after").when_output_of("call_1").when_after_tool(true),
        Reply::text("other").when_input("needle").when_user("needle"),
    ]);
    let tool = json!({ "role": "tool", "tool_call_id": "call_1", "content": "x" });
    let user = json!({ "role": "user", "content": [{ "type": "text", "text": "a needle" }] });
    let system = json!({ "role": "system", "content": "s" });
    assert!(post(&model, &json!({ "messages": [user] })).contains("other"));
    assert!(post(&model, &json!({ "messages": [tool, system] })).contains("after"));
    assert!(model.unanswered().is_empty());
}
