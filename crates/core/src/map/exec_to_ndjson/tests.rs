//! The documented cases by name, then what real streams and broken ones add to them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ndjson::Tokens;

fn compat() -> ExecMapper {
    ExecMapper::new(Options { dialect: Dialect::Compat, ..Options::default() })
}

fn full() -> ExecMapper {
    ExecMapper::new(Options::default())
}

fn events(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "a line without its end");
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn line(event: &Value) -> Vec<u8> {
    format!("{event}\n").into_bytes()
}

/// All events of a stream, the end with this exit code included.
fn run(options: Options, stream: &[u8], code: i32) -> Vec<Value> {
    let mut mapper = ExecMapper::new(options);
    let mut out = mapper.push(stream);
    mapper.flush_into(&Exit::code(code), &mut out);
    events(&out)
}

fn lines(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(line).collect()
}

mod documented {
    //! The mappings and cases of the original mapper, in the dialect of its readers.

    use super::*;

    fn push(event: &Value) -> Vec<Value> {
        events(&compat().push(&line(event)))
    }

    #[test]
    fn maps_session_created_to_init() {
        let got = push(&json!({ "type": "session.created", "id": "sess_123", "model": "o4-mini" }));
        let want = json!({ "type": "init", "session_id": "sess_123", "modelId": "o4-mini" });
        assert_eq!(got, [want]);
    }

    #[test]
    fn maps_message_output_text_delta_to_message_delta() {
        let got = push(&json!({ "type": "message.output_text.delta", "delta": "Hello" }));
        let want =
            json!({ "type": "message", "role": "assistant", "content": "Hello", "delta": true });
        assert_eq!(got, [want]);
    }

    #[test]
    fn maps_message_output_text_done_to_message_full() {
        let got = push(&json!({ "type": "message.output_text.done", "text": "Hello world" }));
        let want = json!({
            "type": "message", "role": "assistant", "content": "Hello world", "delta": false,
        });
        assert_eq!(got, [want]);
    }

    #[test]
    fn maps_error_to_stderr() {
        let got = push(&json!({ "type": "error", "message": "API rate limited" }));
        assert_eq!(got, [json!({ "type": "stderr", "content": "API rate limited" })]);
    }

    #[test]
    fn an_error_without_words_is_told_as_its_json() {
        for error in [
            json!({ "type": "error" }),
            json!({ "type": "error", "message": null }),
            json!({ "type": "error", "message": { "code": 7 } }),
            json!({ "type": "error", "error": { "message": "deep" } }),
        ] {
            let want = json!({ "type": "stderr", "content": error.to_string() });
            assert_eq!(push(&error), [want]);
        }
    }

    #[test]
    fn a_text_that_is_missing_is_empty() {
        let got = push(&json!({ "type": "message.output_text.delta" }));
        let want = json!({ "type": "message", "role": "assistant", "content": "", "delta": true });
        assert_eq!(got, [want]);
        let got = push(&json!({ "type": "message.output_text.done", "text": null }));
        let want = json!({ "type": "message", "role": "assistant", "content": "", "delta": false });
        assert_eq!(got, [want]);
    }

    #[test]
    fn space_around_a_line_and_a_byte_order_mark_do_not_matter() {
        let event = json!({ "type": "message.output_text.delta", "delta": "Hi" });
        for line in [format!("\u{feff}{event}\n"), format!(" \t{event}\u{a0}\u{2028} \r\n")] {
            assert_eq!(events(&compat().push(line.as_bytes())).len(), 1, "{line:?}");
        }
    }

    #[test]
    fn drops_response_completed_events() {
        assert_eq!(push(&json!({ "type": "response.completed", "usage": {} })), [] as [Value; 0]);
    }

    #[test]
    fn drops_unknown_events() {
        assert_eq!(push(&json!({ "type": "some.unknown.event" })), [] as [Value; 0]);
    }

    #[test]
    fn handles_multiple_events_in_one_chunk() {
        let chunk = lines(&[
            json!({ "type": "session.created", "id": "s1", "model": "o4-mini" }),
            json!({ "type": "message.output_text.delta", "delta": "Hi" }),
        ]);
        assert_eq!(events(&compat().push(&chunk)).len(), 2);
    }

    #[test]
    fn buffers_partial_lines_across_chunks() {
        let whole = line(&json!({ "type": "message.output_text.delta", "delta": "Hi" }));
        let (first, second) = whole.split_at(10);
        let mut mapper = compat();
        assert_eq!(mapper.push(first), b"");
        let got = events(&mapper.push(second));
        assert_eq!(got.len(), 1);
        assert_eq!(got[0]["content"], "Hi");
    }

    #[test]
    fn flush_processes_remaining_buffer() {
        let mut mapper = compat();
        let event = json!({ "type": "message.output_text.delta", "delta": "end" });
        mapper.push(event.to_string().as_bytes());
        let got = events(&mapper.flush(&Exit::code(0)));
        assert_eq!(got.len(), 1);
        assert_eq!(got[0]["content"], "end");
    }

    #[test]
    fn flush_returns_empty_when_buffer_is_empty() {
        assert_eq!(compat().flush(&Exit::code(0)), b"");
    }

    #[test]
    fn skips_malformed_json_lines() {
        assert_eq!(compat().push(b"not json\n"), b"");
    }

    #[test]
    fn thread_started_and_agent_messages_map_as_later_versions_did() {
        let stream = lines(&[
            json!({ "type": "thread.started", "thread_id": "t" }),
            json!({ "type": "item.completed",
                "item": { "id": "item_0", "type": "agent_message", "text": "Hi" } }),
        ]);
        let want = [
            json!({ "type": "init", "session_id": "t" }),
            json!({ "type": "message", "role": "assistant", "content": "Hi", "delta": false }),
        ];
        assert_eq!(events(&compat().push(&stream)), want);
    }
}

fn usage(input: u64) -> Value {
    json!({ "input_tokens": input, "cached_input_tokens": input / 10, "output_tokens": input / 5 })
}

fn result_of(events: &[Value]) -> &Value {
    let (last, before) = events.split_last().unwrap();
    assert!(before.iter().all(|event| event["type"] != "result"), "{events:?}");
    last
}

#[test]
fn a_stream_of_nothing_ends_with_a_result() {
    let got = run(Options::default(), b"", 1);
    let message = "the process ended with exit code 1 before the turn did";
    let want = [
        json!({ "type": "error", "message": message, "fatal": true }),
        json!({ "type": "result", "status": "error", "reason": "exit", "exit_code": 1,
            "error": message }),
    ];
    assert_eq!(got, want);
    let mut mapper = full();
    mapper.flush(&Exit::code(0));
    assert_eq!(mapper.flush(&Exit::code(0)), b"");
    assert_eq!(mapper.push(b"{\"type\":\"turn.started\"}\n"), b"");
}

#[test]
fn status_follows_the_turn_and_then_the_exit() {
    let done = json!({ "type": "turn.completed", "usage": usage(100) });
    let failed = json!({ "type": "turn.failed", "error": { "message": "no" } });
    let signal = |name: &str| Exit { signal: Some(name.to_owned()), ..Exit::default() };
    let cause = |cause| Exit { cause: Some(cause), ..Exit::code(1) };
    #[rustfmt::skip]
    let table = [
        // lines                   exit                     status     reason
        (vec![done.clone()],       Exit::code(0),           "success", "completed"),
        (vec![done.clone()],       Exit::code(1),           "success", "completed"),
        (vec![done.clone()],       Exit::default(),         "success", "completed"),
        (vec![failed.clone()],     Exit::code(1),           "error",   "failed"),
        (vec![failed.clone()],     Exit::code(0),           "error",   "failed"),
        (vec![],                   Exit::code(0),           "success", "completed"),
        (vec![],                   Exit::code(1),           "error",   "exit"),
        (vec![],                   Exit::default(),         "error",   "cut"),
        (vec![],                   signal("SIGTERM"),       "error",   "signal"),
        (vec![],                   cause(Cause::Aborted),   "error",   "aborted"),
        (vec![],                   cause(Cause::Deadline),  "error",   "deadline"),
        (vec![],                   cause(Cause::Limit),     "error",   "limit"),
    ];
    for (stream, exit, status, reason) in table {
        let mut mapper = full();
        let mut out = mapper.push(&lines(&stream));
        mapper.flush_into(&exit, &mut out);
        let got = events(&out);
        let result = result_of(&got);
        assert_eq!((&result["status"], &result["reason"]), (&json!(status), &json!(reason)));
    }
}

#[test]
fn a_turn_that_failed_without_words_has_failed() {
    for failed in [
        json!({ "type": "turn.failed" }),
        json!({ "type": "turn.failed", "error": { "code": 7 } }),
        json!({ "id": "0", "msg": { "type": "error", "message": ["no"] } }),
    ] {
        let got = run(Options::default(), &lines(std::slice::from_ref(&failed)), 0);
        assert_eq!(got[0]["type"], "error", "{failed}");
        assert_eq!(result_of(&got)["status"], "error", "{failed}");
        assert_eq!(result_of(&got)["error"], got[0]["message"]);
    }
}

#[test]
fn a_call_stands_as_the_one_table_says() {
    #[rustfmt::skip]
    let table = [
        // status               exit code    state         status
        (json!("completed"),    json!(0),    "completed",  "success"),
        (json!("completed"),    json!(3),    "failed",     "error"),
        (json!("ok"),           json!(null), "completed",  "success"),
        (json!(null),           json!(0),    "completed",  "success"),
        (json!(null),           json!(1),    "failed",     "error"),
        (json!("failed"),       json!(0),    "failed",     "error"),
        (json!("errored"),      json!(null), "failed",     "error"),
        (json!("declined"),     json!(null), "declined",   "error"),
        (json!("interrupted"),  json!(null), "aborted",    "error"),
        (json!("in_progress"),  json!(null), "incomplete", "error"),
        (json!("inProgress"),   json!(null), "incomplete", "error"),
        (json!("superseded"),   json!(null), "unknown",    "unknown"),
        (json!("superseded"),   json!(0),    "unknown",    "unknown"),
        (json!("superseded"),   json!(1),    "failed",     "error"),
    ];
    for (word, code, state, status) in table {
        let item = json!({ "id": "item_0", "type": "command_execution", "command": "x",
            "status": word, "exit_code": code });
        let stream = lines(&[json!({ "type": "item.completed", "item": item })]);
        let got = run(Options::default(), &stream, 0);
        assert_eq!((&got[1]["state"], &got[1]["status"]), (&json!(state), &json!(status)));
        let options = Options { dialect: Dialect::Compat, ..Options::default() };
        assert_eq!(run(options, &stream, 0)[1]["status"], status, "{word} {code}");
    }
}

#[test]
fn an_error_said_twice_is_told_once() {
    let error = json!({ "type": "error", "message": "no" });
    let failed = json!({ "type": "turn.failed", "error": { "message": "no" } });
    let got = run(Options::default(), &lines(&[error.clone(), failed.clone()]), 1);
    assert_eq!(got[0], json!({ "type": "error", "message": "no", "fatal": true }));
    assert_eq!(got.len(), 2);
    let options = Options { dialect: Dialect::Compat, ..Options::default() };
    let got = run(options, &lines(&[error, failed]), 1);
    assert_eq!(got, [json!({ "type": "stderr", "content": "no" })]);
}

#[test]
fn a_retry_is_a_warning() {
    for message in ["Reconnecting... 1/2 (high demand)", "Re-connecting... 1/1"] {
        let retry = json!({ "type": "error", "message": message });
        let done = json!({ "type": "turn.completed", "usage": usage(100) });
        let got = run(Options::default(), &lines(&[retry, done]), 0);
        let want = json!({ "type": "stderr", "content": message, "severity": "warning",
            "topic": "retry" });
        assert_eq!(got[0], want);
        assert_eq!(result_of(&got)["status"], "success");
    }
}

#[test]
fn open_items_are_closed_at_the_end_of_the_turn_and_of_the_stream() {
    let begun = json!({ "type": "item.started", "item": { "id": "item_0",
        "type": "command_execution", "command": "sleep 9", "status": "in_progress" } });
    let ended = json!({ "type": "item.completed", "item": { "id": "item_0",
        "type": "command_execution", "command": "sleep 9", "aggregated_output": "late",
        "exit_code": 0, "status": "completed" } });
    let done = json!({ "type": "turn.completed" });
    let state = |stream: &[Value], exit: Exit| {
        let mut mapper = full();
        let mut out = mapper.push(&lines(stream));
        mapper.flush_into(&exit, &mut out);
        let got = events(&out);
        let mut results = got.iter().filter(|event| event["type"] == "tool_result");
        let state = results.next().unwrap()["state"].clone();
        assert_eq!(results.count(), 0, "{got:?}");
        state
    };
    let signal = Exit { signal: Some("SIGINT".to_owned()), ..Exit::default() };
    assert_eq!(state(&[begun.clone(), done.clone()], Exit::code(0)), "incomplete");
    assert_eq!(state(&[begun.clone(), done, ended.clone()], Exit::code(0)), "incomplete");
    assert_eq!(state(std::slice::from_ref(&begun), signal), "aborted");
    assert_eq!(state(&[begun, ended.clone()], Exit::code(0)), "completed");
    assert_eq!(state(&[ended], Exit::code(0)), "completed");
}

#[test]
fn tokens_of_a_turn_are_the_difference_to_the_baseline() {
    let turn = |input| json!({ "type": "turn.completed", "usage": usage(input) });
    let known = Tokens {
        input_tokens: 200,
        cached_input_tokens: 20,
        output_tokens: 40,
        ..Tokens::default()
    };
    #[rustfmt::skip]
    let table = [
        // baseline                   totals of turns   tokens read by each
        (Baseline::New,               vec![100, 250],   vec![json!(100), json!(150)]),
        (Baseline::Known(known),      vec![300],        vec![json!(100)]),
        (Baseline::Unknown,           vec![300, 350],   vec![Value::Null, json!(50)]),
        // 0.58 counts anew in a process that resumes.
        (Baseline::Known(known),      vec![200],        vec![json!(200)]),
    ];
    for (baseline, totals, want) in table {
        let stream: Vec<_> = totals.iter().copied().map(turn).collect();
        let got = run(Options { baseline, ..Options::default() }, &lines(&stream), 0);
        let usages: Vec<_> = got.iter().filter(|event| event["type"] == "usage").collect();
        let turns: Vec<_> =
            usages.iter().map(|usage| usage["turn"]["input_tokens"].clone()).collect();
        assert_eq!(turns, want);
        let sums: Vec<_> =
            usages.iter().map(|usage| usage["total"]["input_tokens"].clone()).collect();
        assert_eq!(json!(sums), json!(totals));
    }
}

#[test]
fn names_stay_unique_over_runs_of_one_stream() {
    let item = json!({ "type": "item.completed",
        "item": { "id": "item_0", "type": "reasoning", "text": "hm" } });
    let started = json!({ "type": "thread.started", "thread_id": "t" });
    let stream = lines(&[started.clone(), item.clone(), started, item]);
    let ids = |run_name: Option<&str>| {
        let options = Options { run: run_name.map(str::to_owned), ..Options::default() };
        let got = run(options, &stream, 0);
        let ids = got.iter().filter(|event| event["type"] == "reasoning");
        ids.map(|event| event["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), ["item_0", "2:item_0"]);
    assert_eq!(ids(Some("r7")), ["r7:item_0", "r7:2:item_0"]);
}

#[test]
fn a_line_over_the_limit_is_told_and_the_next_one_read() {
    let long = format!("{{\"type\":\"error\",\"message\":\"{}\"}}\n", "x".repeat(200));
    let stream = [long.as_bytes(), b"{\"type\":\"turn.completed\"}\n"].concat();
    let got = run(Options { line_limit: 100, ..Options::default() }, &stream, 0);
    assert_eq!(got[0]["type"], "unknown");
    assert_eq!(got[0]["why"], "the line is longer than 100 bytes");
    assert_eq!(got[0]["bytes"], json!(long.len() - 1));
    assert_eq!(result_of(&got)["status"], "success");
}

#[test]
fn no_more_than_a_bound_of_calls_is_open() {
    let begun = |n: usize| {
        let item = json!({ "id": n.to_string(), "type": "command_execution", "command": "x" });
        line(&json!({ "type": "item.started", "item": item }))
    };
    let stream: Vec<u8> = (0..5000).flat_map(begun).collect();
    let got = run(Options::default(), &stream, 0);
    let count = |kind: &str| got.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("tool_use"), count("tool_result")), (5000, 5000));
}

#[test]
fn output_of_a_command_that_never_ended_is_kept() {
    let begin = json!({ "id": "0", "msg": { "type": "exec_command_begin", "call_id": "c",
        "command": ["bash", "-lc", "echo 'hi'"] } });
    let base64 = json!({ "id": "0", "msg": { "type": "exec_command_output_delta", "call_id": "c",
        "chunk": "b25lCg==" } });
    let numbers = json!({ "id": "0", "msg": { "type": "exec_command_output_delta",
        "call_id": "c", "chunk": [116, 119, 111] } });
    let got = run(Options::default(), &lines(&[begin, base64, numbers]), 1);
    let command = r"bash -lc 'echo '\''hi'\'''";
    assert_eq!(got[0]["parameters"], json!({ "command": command }));
    assert_eq!(got[1]["output"], "one\ntwo");
    assert_eq!(got[1]["state"], "incomplete");
}

#[test]
fn broken_text_never_gets_out() {
    let stream = b"warning: \"half a quote\n\xff\xfe{\n{\"type\":\"item.completed\",\"item\":\
        {\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"\xff \\ud83d \xe2\x80\xa8\"}}\r\n\r\n \n";
    let got = run(Options::default(), stream, 0);
    let kinds: Vec<_> = got.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["unknown", "unknown", "message", "result"]);
    assert_eq!(got[2]["content"], "\u{fffd} \u{fffd} \u{2028}");
}

proptest! {
    #[test]
    fn anything_at_all_gives_objects_and_one_result(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..30),
            Just(b"\n".to_vec()),
            Just(b"{\"type\":\"item.started\",\"item\":{\"id\":\"a\",\"type\":\"web_search\",\"query\":\"\"}}\n".to_vec()),
            Just(b"{\"type\":\"item.completed\",\"item\":{\"id\":\"a\",\"type\":\"mcp_tool_call\",\"server\":\"\\ud800\",\"tool\":\"t\",\"arguments\":[[1e999]]}}\n".to_vec()),
            Just(b"{\"id\":\"1\",\"msg\":{\"type\":\"exec_command_begin\",\"call_id\":\"a\",\"command\":7}}\n".to_vec()),
            Just(b"{\"type\":\"error\",\"message\":\"\\".to_vec()),
        ], 0..20),
        size in 1..40_usize,
        limit in prop_oneof![Just(60_usize), Just(1000)],
    ) {
        let bytes = pieces.concat();
        let mapped = |size: usize| {
            let mut mapper = ExecMapper::new(Options { line_limit: limit, ..Options::default() });
            let mut out = Vec::new();
            bytes.chunks(size).for_each(|chunk| mapper.push_into(chunk, &mut out));
            mapper.flush_into(&Exit::default(), &mut out);
            out
        };
        let whole = mapped(usize::MAX);
        prop_assert_eq!(&mapped(size), &whole);
        let lines = whole.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        // A number too large for us is still good JSON, so only the shape is checked.
        for line in lines.clone() {
            prop_assert!(serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok());
            let is_event = line.starts_with(b"{\"type\":");
            prop_assert!(is_event);
        }
        let results = lines.filter(|line| line.starts_with(b"{\"type\":\"result\""));
        prop_assert_eq!(results.count(), 1);
    }
}
