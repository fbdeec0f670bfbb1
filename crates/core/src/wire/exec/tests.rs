//! Each line of each vocabulary, and lines of none.

use super::*;

/// The line in a few words.
fn sketch(line: &str) -> String {
    match decode(line) {
        Line::ThreadStarted { thread_id } => format!("thread {}", thread_id.decode()),
        Line::TurnStarted => "turn".to_owned(),
        Line::TurnCompleted { usage } => {
            format!("turn done, {:?} in", usage.map(|usage| usage.input_tokens))
        }
        Line::TurnFailed { message } => format!("turn failed: {}", message.decode()),
        Line::Item(phase, item) => format!("{phase:?} {} {}", item.id.decode(), body(&item.body)),
        Line::Error { message } => format!("error {}", message.decode()),
        Line::SessionCreated { id, model } => {
            let [id, model] = [id, model].map(|text| text.map(|t| t.decode().into_owned()));
            format!("session {id:?} {model:?}")
        }
        Line::TextDelta(text) => format!("delta {}", text.decode()),
        Line::TextDone(text) => format!("text {}", text.decode()),
        Line::ResponseCompleted => "response".to_owned(),
        Line::Config { model, .. } => format!("config {}", model.decode()),
        Line::Prompt(text) => format!("prompt {}", text.decode()),
        Line::Msg(msg) => format!("{msg:?}").split([' ', '(']).next().unwrap().to_owned(),
        Line::Unknown { tag, why } => format!("? {tag}: {}", why.split(" at ").next().unwrap()),
    }
}

fn body(body: &ItemBody<'_>) -> String {
    match body {
        ItemBody::AgentMessage { text } => format!("says {}", text.decode()),
        ItemBody::WebSearch { call_id, query, .. } => {
            let call_id = call_id.as_ref().map(|id| id.decode().into_owned());
            format!("search {} as {call_id:?}", query.decode())
        }
        ItemBody::Command(command) => format!("command, exit {:?}", command.exit_code),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    }
}

#[test]
fn lines_read_as_they_should() {
    #[rustfmt::skip]
    let table = [
        // line                                                              reads as
        (r#"{"type":"thread.started","thread_id":"t"}"#,                      "thread t"),
        (r#"{"type":"turn.started"}"#,                                        "turn"),
        (r#"{"type":"turn.completed","usage":{"input_tokens":7}}"#,           "turn done, Some(7) in"),
        (r#"{"type":"turn.completed"}"#,                                      "turn done, None in"),
        (r#"{"type":"turn.failed","error":{"message":"no"}}"#,                "turn failed: no"),
        (r#"{"type":"error","message":"no"}"#,                                "error no"),
        (r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\nb"}}"#,
                                                                              "Completed i says a\nb"),
        (r#"{"type":"item.completed","item":{"id":"i","item_type":"assistant_message","text":"a"}}"#,
                                                                              "Completed i says a"),
        (r#"{"type":"item.started","item":{"id":"i","type":"web_search","id":"ws","query":"q"}}"#,
                                                                              "Started i search q as Some(\"ws\")"),
        (r#"{"type":"item.started","item":{"id":"i","type":"command_execution","command":"c","exit_code":null}}"#,
                                                                              "Started i command, exit None"),
        (r#"{"type":"session.created","id":"s","model":"m"}"#,                "session Some(\"s\") Some(\"m\")"),
        (r#"{"type":"session.created"}"#,                                     "session None None"),
        (r#"{"type":"message.output_text.delta","delta":"d"}"#,               "delta d"),
        (r#"{"type":"message.output_text.done","text":"t"}"#,                 "text t"),
        (r#"{"type":"response.completed","usage":{}}"#,                       "response"),
        (r#"{"model":"m","provider":"p","reasoning effort":"none"}"#,         "config m"),
        (r#"{"prompt":"p"}"#,                                                 "prompt p"),
        (r#"{"id":"0","msg":{"type":"task_started"}}"#,                       "TaskStarted"),
        (r#"{"id":"0","msg":{"type":"turn_diff","unified_diff":""}}"#,        "NotShown"),
        (r#"{"id":"0","msg":{"type":"token_count","info":null}}"#,            "TokensSoFar"),
        (r#"{"id":"0","msg":{"type":"token_count","input_tokens":1}}"#,       "TokensOfResponse"),
        (r#"{"type":"hologram"}"#,                                            "? hologram: a type of line that is new to us"),
        (r#"{"type":"item.completed","item":{"id":"i","type":"hologram"}}"#,  "? item.completed/hologram: a type of item that is new to us"),
        (r#"{"type":"item.completed","item":{"type":"reasoning","text":"t"}}"#,
                                                                              "? item.completed/reasoning: `id` is missing"),
        (r#"{"type":"item.completed","item":3}"#,                             "? : invalid type: integer `3`, expected an object"),
        (r#"{"id":"0","msg":{"type":"hologram"}}"#,                           "? hologram: a type of event that is new to us"),
        (r#"{"type":7}"#,                                                     "? : `type` is no text"),
        (r#"{"hue":7}"#,                                                      "? : the line has no `type`"),
        (r#"{"type":"item.updated","item":{"id":"i","type":"todo_list","items":[{"step":"a"}]}}"#,
                                                                              "? item.updated/todo_list: `items`: missing field `text`"),
        (r#"{"id":"0","msg":{"type":"plan_update","plan":7}}"#,               "? plan_update: `plan`: invalid type: integer `7`, expected a sequence"),
        (r#"{"type":"#,                                                       "? : EOF while parsing a value"),
        (r#"[1]"#,                                                            "? : invalid type: sequence, expected an object"),
        ("not json",                                                          "? : expected ident"),
    ];
    for (line, want) in table {
        assert_eq!(sketch(line), want, "line: {line}");
    }
}

#[test]
fn what_has_no_words_is_shown_as_its_json() {
    #[rustfmt::skip]
    let table = [
        // line                                                              reads as
        (r#"{"type":"error","message":["no"]}"#,                              "error {\"type\":\"error\",\"message\":[\"no\"]}"),
        (r#"{"type":"error","code":7}"#,                                      "error {\"type\":\"error\",\"code\":7}"),
        (r#"{"type":"turn.failed"}"#,                                         "turn failed: {\"type\":\"turn.failed\"}"),
        (r#"{"type":"turn.failed","error":null}"#,                            "turn failed: {\"type\":\"turn.failed\",\"error\":null}"),
        (r#"{"type":"turn.failed","error":{"code":7}}"#,                      "turn failed: {\"code\":7}"),
        (r#"{"type":"turn.failed","error":7}"#,                               "turn failed: 7"),
        (r#"{"type":"turn.failed","error":"no"}"#,                            "turn failed: no"),
        (r#"{"type":"session.created","id":7,"model":null}"#,                 "session Some(\"7\") None"),
        (r#"{"type":"message.output_text.delta"}"#,                           "delta "),
        (r#"{"type":"message.output_text.delta","delta":7}"#,                 "delta 7"),
        (r#"{"type":"message.output_text.done","text":null}"#,                "text "),
        (r#"{"id":"0","msg":{"type":"error"}}"#,                              "Error"),
        (r#"{"id":"0","msg":{"type":"stream_error","message":7}}"#,           "Notice"),
        (r#"{"type":"item.completed","item":{"id":"i","type":"error"}}"#,     "Completed i Error"),
        (r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"s","tool":"t","error":{}}}"#,
                                                                              "Completed i Mcp"),
    ];
    for (line, want) in table {
        assert_eq!(sketch(line), want, "line: {line}");
    }
}
