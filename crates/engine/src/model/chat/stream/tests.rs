//! Chunks of many servers, and the items they become.

use serde_json::{Value, json};

use super::super::super::classify::Again;
use super::super::super::dialect::Names;
use super::super::super::{Answered, Fault, ModelEvent};
use super::{Progress, Reader};

type Seen = (Fault, Again);

fn read(chunks: &[Value]) -> Result<(Vec<ModelEvent>, Answered), Seen> {
    let names = Names::default();
    let mut reader = Reader::new(&names);
    let mut told = Vec::new();
    let fault = |failure: super::Failure| (failure.error.kind, failure.again);
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        let (events, progress) = reader.read(&data).map_err(fault)?;
        told.extend(events);
        if progress == Progress::Done {
            break;
        }
    }
    let (events, answered) = reader.finish(0).map_err(fault)?;
    told.extend(events);
    Ok((told, answered))
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
    let (events, _) = read(chunks).unwrap();
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
        ("no reason",        vec![text.clone()],                         None),
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
