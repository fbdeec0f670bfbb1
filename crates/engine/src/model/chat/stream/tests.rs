//! Chunks of many servers, and the items they become.

use serde_json::{Value, json};

use super::super::super::classify::Again;
use super::super::super::dialect::Dialect;
use super::super::super::{Answered, Fault, ModelEvent, ToolSpec};
use super::{Progress, Reader};

type Seen = (Fault, Again);

fn read(chunks: &[Value]) -> Result<(Vec<ModelEvent>, Answered), Seen> {
    let (told, ended) = hear(chunks);
    ended.map(|answered| (told, answered))
}

/// What is told of the chunks, and how they end.
fn hear(chunks: &[Value]) -> (Vec<ModelEvent>, Result<Answered, Seen>) {
    let tool = |name: &str| ToolSpec::Function {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({}),
    };
    let dialect = Dialect { namespaces: false, freeform: false };
    let (_, names) = dialect.tools(vec![tool("f"), tool("g")]);
    let mut reader = Reader::new(&names, &[]);
    let mut told = Vec::new();
    let fault = |failure: super::Failure| (failure.error.kind, failure.again);
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        let (events, progress) = match reader.read(&data) {
            Ok(read) => read,
            Err(failure) => return (told, Err(fault(failure))),
        };
        told.extend(events);
        if progress == Progress::Done {
            break;
        }
    }
    let (events, answered) = reader.finish(0);
    told.extend(events);
    (told, answered.map_err(fault))
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// Items as JSON, with text for what is only a piece.
fn shown(events: &[ModelEvent]) -> Vec<Value> {
    let show = |event: &ModelEvent| match event {
        ModelEvent::ItemBegun(item) => json!({ "begun": item }),
        ModelEvent::ItemDone(item) => json!({ "done": item }),
        ModelEvent::Text(text) => json!({ "text": text }),
        ModelEvent::Thought(text) => json!({ "thought": text }),
        other => panic!("{other:?}"),
    };
    events.iter().map(show).collect()
}

fn calls(chunks: &[Value]) -> Vec<(String, String, String)> {
    let (events, _) = read(&[chunks, &[json!("[DONE]")]].concat()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let done = shown(&events).into_iter().map(|event| event["done"].clone());
    done.filter(|item| item["type"] == "function_call")
        .map(|item| (text(&item["name"]), text(&item["arguments"]), text(&item["call_id"])))
        .collect()
}

fn call(name: &str, arguments: &str, id: &str) -> (String, String, String) {
    (name.to_owned(), arguments.to_owned(), id.to_owned())
}

#[test]
fn thoughts_text_and_calls_become_items_in_order() {
    let usage = json!({ "choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": { "cached_tokens": 10 },
        "completion_tokens_details": { "reasoning_tokens": 5 },
    } });
    let function = json!({ "name": "f", "arguments": "{}" });
    let chunks = [
        json!({ "id": "x", "model": "m", "choices": [{ "delta": { "role": "assistant", "content": "" } }] }),
        delta(json!({ "reasoning_content": "Hm" })),
        delta(json!({ "reasoning": "m." })),
        delta(json!({ "reasoning": { "text": "So" } })),
        delta(json!({ "content": "\n" })),
        delta(json!({ "content": "I lo" })),
        delta(json!({ "content": [{ "type": "text", "text": "ok." }] })),
        delta(json!({ "tool_calls": [{ "index": 0, "id": "c", "function": function }] })),
        end("tool_calls"),
        usage,
        json!("[DONE]"),
    ];
    let (events, answered) = read(&chunks).unwrap();
    insta::assert_json_snapshot!(shown(&events));
    insta::assert_debug_snapshot!(answered);
}

#[test]
fn pieces_of_calls_are_merged_as_servers_cut_them() {
    let piece = |piece: Value| delta(json!({ "tool_calls": [piece] }));
    let f = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let args = |arguments: &str| json!({ "arguments": arguments });
    let openai = [
        piece(json!({ "index": 0, "id": "a", "function": f("one", "") })),
        piece(json!({ "index": 1, "id": "b", "function": f("two", "{\"x\"") })),
        piece(json!({ "index": 0, "function": args("{}") })),
        piece(json!({ "index": 1, "function": args(":1}") })),
        end("tool_calls"),
    ];
    assert_eq!(calls(&openai), [call("one", "{}", "a"), call("two", "{\"x\":1}", "b")]);
    let by_id = [
        piece(json!({ "id": "a", "function": f("one", "{") })),
        piece(json!({ "id": "b", "function": f("two", "") })),
        piece(json!({ "id": "a", "function": args("}") })),
    ];
    assert_eq!(calls(&by_id), [call("one", "{}", "a"), call("two", "{}", "b")]);
    let last =
        [piece(json!({ "function": f("one", "{") })), piece(json!({ "function": args("}") }))];
    let merged = calls(&last);
    assert_eq!((merged.len(), merged[0].1.as_str()), (1, "{}"));
    assert!(merged[0].2.starts_with("call_"), "{merged:?}");
    let all_zero = [
        piece(json!({ "index": 0, "id": "a", "function": f("one", "{}") })),
        piece(json!({ "index": 0, "id": "b", "function": f("two", "{}") })),
    ];
    assert_eq!(calls(&all_zero), [call("one", "{}", "a"), call("two", "{}", "b")]);
    let object = [piece(json!({ "index": 0, "id": "a", "function": {
        "name": "one", "arguments": { "x": 1 } } }))];
    assert_eq!(calls(&object), [call("one", "{\"x\":1}", "a")]);
    let named_again = [
        piece(json!({ "index": 0, "id": "a", "function": f("one", "{") })),
        piece(json!({ "index": 0, "id": "a", "function": f("one", "}") })),
    ];
    assert_eq!(calls(&named_again), [call("one", "{}", "a")]);
    let twins = [
        piece(json!({ "index": 0, "id": "a", "function": f("one", "{}") })),
        piece(json!({ "index": 1, "id": "a", "function": f("two", "{}") })),
    ];
    let twins = calls(&twins);
    assert!(twins[0].2 == "a" && twins[1].2 != "a", "{twins:?}");
}

#[test]
fn a_whole_message_is_taken_too() {
    let message = json!({ "role": "assistant", "content": "Hi", "reasoning_content": "Hm" });
    let whole = json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
    let (events, _) = read(&[whole]).unwrap();
    assert_eq!(events.iter().filter(|e| matches!(e, ModelEvent::ItemDone(_))).count(), 2);
}

#[test]
fn ends_are_told_apart() {
    let text = delta(json!({ "content": "Hi" }));
    let thought = delta(json!({ "reasoning": "Hm" }));
    let half = json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x" } });
    let half = delta(json!({ "tool_calls": [half] }));
    let error = json!({ "error": { "message": "boom", "code": "server_error" } });
    let ollama = json!({ "error": "the input length exceeds the context length" });
    let router = json!({ "choices": [{ "error": { "code": 401, "message": "key" } }] });
    let (never, again) = (Again::Never, Again::Stream);
    #[rustfmt::skip]
    let table: Vec<(&str, Vec<Value>, Option<Seen>)> = vec![
        ("stop",             vec![text.clone(), end("stop")],            None),
        ("no reason",        vec![text.clone()],                         Some((Fault::Transport, again))),
        ("done, no reason",  vec![text.clone(), json!("DONE")],          None),
        ("odd reason",       vec![text.clone(), end("eos")],             None),
        ("bad line",         vec![json!("{bad"), text.clone(), end("stop")], None),
        ("nothing",          vec![],                                     Some((Fault::Transport, again))),
        ("garbage",          vec![json!("{bad"), json!("5")],            Some((Fault::Garbage, again))),
        ("no chunk",         vec![json!({ "hello": 1 })],                Some((Fault::Garbage, again))),
        ("half a call",      vec![half.clone()],                         Some((Fault::Transport, again))),
        ("long with text",   vec![text.clone(), end("length")],          Some((Fault::Incomplete, never))),
        ("long with call",   vec![half, end("length")],                  Some((Fault::Incomplete, never))),
        ("long with nothing", vec![thought, end("length")],              Some((Fault::ContextOverflow, never))),
        ("filter",           vec![text.clone(), end("content_filter")],  Some((Fault::Incomplete, never))),
        ("error",            vec![text.clone(), error],                  Some((Fault::Transport, again))),
        ("ollama",           vec![ollama],                               Some((Fault::ContextOverflow, never))),
        ("router",           vec![router],                               Some((Fault::Auth, never))),
    ];
    for (name, chunks, want) in table {
        assert_eq!(read(&chunks).err(), want, "{name}");
    }
}

/// Pieces of calls, as a server sends them in one chunk each.
fn pieces(pieces: &[Value]) -> Vec<Value> {
    let chunk = |piece: &Value| delta(json!({ "tool_calls": [piece] }));
    pieces.iter().map(chunk).chain([end("tool_calls")]).collect()
}

fn names_and_arguments(chunks: &[Value]) -> Vec<(String, String)> {
    calls(chunks).into_iter().map(|(name, arguments, _)| (name, arguments)).collect()
}

fn pair(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn reasons_that_mean_failure_are_asked_again_and_unknown_ones_are_no_success() {
    let text = delta(json!({ "content": "Half" }));
    // vLLM and SGLang; DeepSeek; Gemini; OpenRouter.
    for reason in ["abort", "insufficient_system_resource", "MALFORMED_FUNCTION_CALL", "error"] {
        let (_, ended) = hear(&[text.clone(), end(reason)]);
        assert_eq!(ended, Err((Fault::Transport, Again::Stream)), "{reason}");
    }
    let (_, ended) = hear(&[text.clone(), end("brand_new_reason")]);
    assert_eq!(ended, Err((Fault::Incomplete, Again::Never)));
    for reason in ["stop", "eos_token", "COMPLETE", "end_turn", "STOP"] {
        assert!(hear(&[text.clone(), end(reason)]).1.is_ok(), "{reason}");
    }
}

#[test]
fn text_is_kept_where_the_model_stops_at_a_limit() {
    for reason in ["length", "max_tokens", "content_filter", "brand_new_reason"] {
        let (told, ended) = hear(&[delta(json!({ "content": "Half of it" })), end(reason)]);
        assert_eq!(ended, Err((Fault::Incomplete, Again::Never)), "{reason}");
        let done = shown(&told).pop().unwrap();
        assert_eq!(done["done"]["content"][0]["text"], "Half of it", "{reason}");
    }
}

#[test]
fn names_with_marks_of_a_template_name_the_tool() {
    // Kimi's prefix and number, gpt-oss's channel marks, Gemini's namespace.
    for name in ["functions.f", "functions.f:0", "f<|channel|>commentary", "default_api.f"] {
        let call =
            json!({ "index": 0, "id": "1", "function": { "name": name, "arguments": "{}" } });
        assert_eq!(names_and_arguments(&pieces(&[call])), [pair("f", "{}")], "{name}");
    }
    let call = json!({ "index": 0, "id": "1", "function": { "name": "x.y", "arguments": "{}" } });
    assert_eq!(names_and_arguments(&pieces(&[call])), [pair("x.y", "{}")]);
}

#[test]
fn a_repeated_index_without_ids_is_another_call() {
    let call = |name: &str, n: u32| {
        let arguments = format!("{{\"n\":{n}}}");
        json!({ "index": 0, "function": { "name": name, "arguments": arguments } })
    };
    let chunks = pieces(&[call("f", 1), call("f", 2), call("g", 3)]);
    let want = [pair("f", "{\"n\":1}"), pair("f", "{\"n\":2}"), pair("g", "{\"n\":3}")];
    assert_eq!(names_and_arguments(&chunks), want);
    // A server that sends the name with every piece means one call.
    let piece = |text: &str| json!({ "index": 0, "function": { "name": "f", "arguments": text } });
    let chunks = pieces(&[piece("{\"a\""), piece(":1}")]);
    assert_eq!(names_and_arguments(&chunks), [pair("f", "{\"a\":1}")]);
}

#[test]
fn arguments_that_are_encoded_twice_are_decoded_once_more() {
    let twice = json!("{\"a\":1}").to_string();
    let call = json!({ "index": 0, "id": "1", "function": { "name": "f", "arguments": twice } });
    assert_eq!(names_and_arguments(&pieces(&[call])), [pair("f", "{\"a\":1}")]);
    let text = json!("just text").to_string();
    let call = json!({ "index": 0, "id": "1", "function": { "name": "f", "arguments": text } });
    assert_eq!(names_and_arguments(&pieces(&[call])), [pair("f", "\"just text\"")]);
}

#[test]
fn the_legacy_function_call_is_a_call() {
    let chunks = [
        delta(json!({ "function_call": { "name": "f", "arguments": "{\"a\"" } })),
        delta(json!({ "function_call": { "arguments": ":1}" } })),
        end("function_call"),
    ];
    assert_eq!(names_and_arguments(&chunks), [pair("f", "{\"a\":1}")]);
}

#[test]
fn thoughts_and_calls_in_plain_text_are_recognised() {
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    let text = format!("<think>Hm.</think>\n\nI look.{call}");
    let (told, ended) = hear(&[delta(json!({ "content": text })), end("stop")]);
    assert!(ended.is_ok());
    let done: Vec<Value> = shown(&told)
        .into_iter()
        .map(|event| event["done"].clone())
        .filter(|d| !d.is_null())
        .collect();
    assert_eq!(done[0]["content"][0]["text"], "Hm.");
    assert_eq!(done[1]["content"][0]["text"].as_str().unwrap().trim(), "I look.");
    assert_eq!((&done[2]["name"], &done[2]["arguments"]), (&json!("f"), &json!("{\"a\":1}")));
    // A tool that was not offered is text: somebody writes about calls.
    let text = "<tool_call>{\"name\": \"rm\"}</tool_call>";
    let (told, _) = hear(&[delta(json!({ "content": text })), end("stop")]);
    assert_eq!(shown(&told).pop().unwrap()["done"]["content"][0]["text"], text);
}

#[test]
fn signatures_of_thoughts_stay_with_their_calls() {
    let extra = json!({ "google": { "thought_signature": "sealed" } });
    let function = json!({ "name": "f", "arguments": "{}" });
    let call = json!({ "index": 0, "id": "1", "function": function, "extra_content": extra });
    let (told, _) = hear(&pieces(&[call]));
    assert_eq!(shown(&told).pop().unwrap()["done"]["extra_content"], extra);
}
