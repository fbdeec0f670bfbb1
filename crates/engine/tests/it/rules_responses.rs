//! The rules of the Responses wire that we keep as Codex 0.166 has them, one by one.

use std::time::Duration;

use bindery_engine::item::HistoryItem;
use bindery_engine::model::{Fault, ModelEvent, ModelRequest, Provider, Wire};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::stage::Setting;
use crate::wires::{Asked, LIMIT, WIRES, ask, opened, provider, request};

fn event(kind: &str, mut fields: Value) -> Step {
    fields["type"] = json!(kind);
    Step::Event { event: fields }
}

fn bare(kind: &str) -> Step {
    event(kind, json!({}))
}

fn delta(kind: &str, text: &str) -> Step {
    event(kind, json!({ "delta": text, "item_id": "x" }))
}

fn item(kind: &str, item: Value) -> Step {
    event(&format!("response.output_item.{kind}"), json!({ "item": item }))
}

fn said(text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text }]);
    json!({ "type": "message", "role": "assistant", "id": "msg_1", "content": content })
}

/// What is told of a stream, a line each.
fn told(asked: &Asked) -> Vec<String> {
    let line = |event: &ModelEvent| match event {
        ModelEvent::ItemBegun(item) => format!("begun {}", kind(item)),
        ModelEvent::ItemDone(item) => format!("done {}", kind(item)),
        ModelEvent::Text(text) => format!("text {text}"),
        ModelEvent::SummaryPart => "summary part".to_owned(),
        ModelEvent::Summary(text) => format!("summary {text}"),
        ModelEvent::Thought(text) => format!("thought {text}"),
        ModelEvent::ToolInput { call_id, text } => format!("input of {call_id} {text}"),
        ModelEvent::Notice(text) => format!("notice {text}"),
        ModelEvent::Retrying { attempt, .. } => format!("retry {attempt}"),
    };
    asked.events.iter().map(line).collect()
}

fn kind(item: &HistoryItem) -> String {
    json!(item)["type"].as_str().unwrap_or_default().to_owned()
}

async fn heard(steps: Vec<Step>) -> Asked {
    let model = Model::start(vec![Reply::new(steps)]);
    let asked = ask(&provider(Wire::Responses, &model), request("go")).await;
    assert!(asked.ended.is_ok(), "{:?}", asked.ended);
    assert_eq!(model.count(), 1);
    asked
}

#[tokio::test]
async fn each_event_is_told_as_what_it_is() {
    let thoughts = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let patch = json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "c9",
        "name": "apply_patch", "input": "" });
    let input = |text: &str| {
        let fields = json!({ "delta": text, "item_id": "ctc_1" });
        event("response.custom_tool_call_input.delta", fields)
    };
    let asked = heard(vec![
        bare("response.created"),
        item("added", thoughts.clone()),
        bare("response.reasoning_summary_part.added"),
        delta("response.reasoning_summary_text.delta", "Look"),
        event("response.reasoning_summary_text.done", json!({ "text": "Look" })),
        delta("response.reasoning_text.delta", "raw"),
        item("done", thoughts),
        item("added", said("")),
        delta("response.output_text.delta", "He"),
        delta("response.output_text.delta", "llo"),
        item("done", said("Hello")),
        item("added", patch.clone()),
        input("*** Be"),
        input("gin"),
        item("done", patch),
    ])
    .await;
    insta::assert_snapshot!(told(&asked).join("\n"), @r"
    begun reasoning
    summary part
    summary Look
    thought raw
    done reasoning
    begun message
    text He
    text llo
    done message
    begun custom_tool_call
    input of c9 *** Be
    input of c9 gin
    done custom_tool_call
    ");
}

#[tokio::test]
async fn other_events_say_nothing_and_calls_come_whole_or_not_at_all() {
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
        "arguments": "" });
    let part = json!({ "part": { "type": "output_text", "text": "x" } });
    let asked = heard(vec![
        bare("response.queued"),
        bare("response.in_progress"),
        event("response.content_part.added", part.clone()),
        event("response.content_part.done", part),
        event("response.output_text.done", json!({ "text": "x" })),
        event("response.output_text.annotation.added", json!({ "annotation": {} })),
        delta("response.refusal.delta", "no"),
        event("response.refusal.done", json!({ "refusal": "no" })),
        item("added", call),
        delta("response.function_call_arguments.delta", "{\"a\":1}"),
        event("response.function_call_arguments.done", json!({ "arguments": "{\"a\":1}" })),
        event("response.metadata", json!({ "headers": { "a": "b" } })),
        event("codex.rate_limits", json!({ "rate_limits": { "allowed": true } })),
        event("response.something_new", json!({ "delta": { "deep": [1] }, "item": 7 })),
        delta("response.custom_tool_call_input.delta", "of a call nobody began"),
    ])
    .await;
    assert_eq!(told(&asked), ["begun function_call"]);
}

#[tokio::test]
async fn lines_and_items_that_cannot_be_read_are_skipped() {
    let asked = heard(vec![
        Step::bytes(b"data: {half\n\n"),
        Step::bytes(b"data: [1, 2]\n\n"),
        Step::bytes(b"data: \n\n"),
        item("done", json!({ "type": "function_call", "call_id": "c1" })),
        item("done", json!({ "type": "message", "role": "narrator", "content": [] })),
        item("done", json!({ "type": "custom_tool_call_output", "output": 7 })),
        item("done", json!({ "no": "type" })),
        item("done", json!("words")),
        item("done", Value::Null),
        // Of a kind that we do not know: kept, and sent back as it came.
        item("done", json!({ "type": "hologram", "hue": 7 })),
        item("done", said("Fine.")),
    ])
    .await;
    assert_eq!(told(&asked), ["done hologram", "done message"]);
}

#[tokio::test]
async fn an_item_that_was_skipped_is_never_sent_back() {
    let broken = json!({ "type": "function_call", "id": "fc_1", "call_id": "c1" });
    let model = Model::start(Script::new([
        Reply::new([Step::Item { item: broken }, Step::text("First.")]),
        Reply::text("Second."),
    ]));
    let stage = Setting::on(opened(&provider(Wire::Responses, &model))).open();
    stage.turn("one").await;
    assert_eq!(stage.turn("two").await["status"], "completed");
    let sent = model.bodies()[1]["input"].clone();
    let kinds: Vec<&str> =
        sent.as_array().unwrap().iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "user"], "{sent:#}");
}

#[tokio::test]
async fn the_end_carries_id_model_usage_and_whether_it_is_one() {
    let usage = json!({
        "input_tokens": 100, "output_tokens": 20, "total_tokens": 121,
        "input_tokens_details": { "cached_tokens": 10, "cache_write_tokens": 30 },
        "output_tokens_details": { "reasoning_tokens": 5 },
    });
    let response = json!({ "id": "resp_7", "model": "m-2", "usage": usage, "end_turn": false });
    let done = event("response.completed", json!({ "response": response }));
    let asked = heard(vec![done, Step::Silence]).await;
    insta::assert_debug_snapshot!(asked.ended.unwrap(), @r#"
    Answered {
        id: Some(
            "resp_7",
        ),
        usage: Some(
            TokenCount {
                input_tokens: 100,
                cached_input_tokens: 10,
                cache_write_input_tokens: 30,
                output_tokens: 20,
                reasoning_output_tokens: 5,
                total_tokens: 121,
            },
        ),
        end_turn: Some(
            false,
        ),
        model: Some(
            "m-2",
        ),
        counts_old_thoughts: false,
    }
    "#);
}

#[tokio::test]
async fn the_model_that_answered_is_the_one_the_header_names() {
    let completed = json!({ "type": "response.completed", "response": { "model": "asked" } });
    let whole = Step::Status {
        status: 200,
        body: json!(format!("data: {completed}\n\n")),
        headers: [("openai-model".to_owned(), "answered".to_owned())].into(),
    };
    let asked = heard(vec![whole]).await;
    assert_eq!(asked.ended.unwrap().model.as_deref(), Some("answered"));
}

#[tokio::test]
async fn ids_that_no_server_gave_are_left_out() {
    let text = |id: &str| {
        let content = json!([{ "type": "input_text", "text": "hi" }]);
        json!({ "type": "message", "role": "user", "id": id, "content": content })
    };
    let call = |id: &str, call_id: &str| {
        json!({ "type": "custom_tool_call", "id": id, "call_id": call_id, "name": "p",
            "input": "" })
    };
    let output = |id: &str, call_id: &str| {
        let kind = "custom_tool_call_output";
        json!({ "type": kind, "id": id, "call_id": call_id, "output": "" })
    };
    #[rustfmt::skip]
    let items = [
        (text("msg_1"), true),        (text("item-1"), false),
        (call("ctc_1", "a"), true),   (output("ctco_1", "a"), true),
        (call("x_1", "b"), false),    (output("y_1", "b"), false),
        (json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "s" }),
            false),
        (json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "s" }), true),
    ];
    let input = items.iter().map(|(item, _)| HistoryItem::from_value(item.clone())).collect();
    let model = Model::start(Script::always("ok"));
    let asking = ModelRequest { input, base: String::new(), ..request("") };
    ask(&provider(Wire::Responses, &model), asking).await.ended.unwrap();
    let sent = model.bodies()[0]["input"].clone();
    assert_eq!(sent.as_array().unwrap().len(), items.len());
    for ((item, kept), sent) in items.iter().zip(sent.as_array().unwrap()) {
        let want = if *kept { item["id"].clone() } else { Value::Null };
        assert_eq!(sent["id"], want, "{item}");
    }
}

#[tokio::test]
async fn a_request_has_these_headers_and_no_others() {
    for (wire, path) in WIRES.into_iter().zip(["/v1/responses", "/v1/chat/completions"]) {
        let model = Model::start(Script::always("ok"));
        let asking = ModelRequest { purpose: Some("compact"), ..request("go") };
        ask(&provider(wire, &model), asking).await.ended.unwrap();
        let got = model.requests().remove(0);
        assert_eq!((got.method.as_str(), got.path.as_str()), ("POST", path));
        let ours = |name: &&String| !["host", "content-length"].contains(&name.as_str());
        let names: Vec<&String> = got.headers.keys().filter(ours).collect();
        let want = [
            "accept",
            "authorization",
            "content-type",
            "originator",
            "session-id",
            "thread-id",
            "user-agent",
            "x-client-request-id",
            "x-openai-subagent",
        ];
        assert_eq!(names, want, "{wire:?}");
        let id = &got.headers["x-client-request-id"];
        assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
        assert_eq!(got.headers["x-openai-subagent"], "compact");
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let agent = format!("bindery/{} ({os}; {arch})", env!("CARGO_PKG_VERSION"));
        assert_eq!(got.headers["user-agent"], agent);
    }
}

#[tokio::test]
async fn silence_is_counted_from_event_to_event() {
    let pause = Step::Delay { ms: 1_000 };
    let spoken = [Step::begin("a"), pause.clone(), Step::begin("b"), pause.clone()];
    let slow = [&spoken[..], &spoken[..], &[Step::text("Done")]].concat();
    let ping = [Step::bytes(b": ping\n\n"), Step::Delay { ms: 100 }];
    let pings: Vec<Step> = std::iter::repeat_n(ping, 50).flatten().collect();
    for wire in WIRES {
        let model = Model::start(vec![Reply::new(slow.clone())]);
        let patient =
            Provider { idle_timeout: Duration::from_millis(3_500), ..provider(wire, &model) };
        let asked = ask(&patient, request("go")).await;
        assert!(asked.ended.is_ok(), "{wire:?}: {:?}", asked.ended);
        // What is no event is no word.
        let model = Model::start(vec![Reply::new(pings.clone())]);
        let strict = Provider {
            idle_timeout: Duration::from_millis(300),
            stream_max_retries: 0,
            ..provider(wire, &model)
        };
        let error = ask(&strict, request("go")).await.ended.unwrap_err();
        assert_eq!(error.kind, Fault::Idle, "{wire:?}: {error}");
    }
}

/// How long is waited before the first repeat.
async fn wait_before_repeat(step: Step) -> Duration {
    let model = Model::start(Script::new([Reply::new([step]).always()]));
    let opened = opened(&provider(Wire::Responses, &model));
    let (sender, mut heard) = mpsc::channel(64);
    let repeat = async {
        loop {
            if let Some(ModelEvent::Retrying { delay, .. }) = heard.recv().await {
                return delay;
            }
        }
    };
    let waited = async {
        tokio::select! {
            ended = opened.answer(request("go"), sender) => panic!("{ended:?}"),
            delay = repeat => delay,
        }
    };
    tokio::time::timeout(LIMIT, waited).await.expect("a repeat")
}

#[tokio::test]
async fn a_server_says_how_long_to_wait() {
    let millis = Duration::from_millis;
    assert_eq!(wait_before_repeat(Step::rate_limit(2)).await, millis(2_000));
    let failed = |words: &str| Step::failed("rate_limit_exceeded", words);
    assert_eq!(wait_before_repeat(failed("try again in 1.5s.")).await, millis(1_500));
    assert_eq!(wait_before_repeat(failed("Please try again in 28ms")).await, millis(28));
    assert_eq!(wait_before_repeat(failed("try again in 3 seconds")).await, millis(3_000));
    for step in [failed("slow down"), Step::failed("oops", "x"), Step::Cut] {
        let delay = wait_before_repeat(step.clone()).await;
        assert!((millis(180)..=millis(220)).contains(&delay), "{step:?}: {delay:?}");
    }
}

#[tokio::test]
async fn the_words_of_a_refusal_are_the_servers() {
    let plain = |status, text: &str| Step::Status {
        status,
        body: Value::String(text.to_owned()),
        headers: Default::default(),
    };
    let limit = |kind: &str, at: u64| {
        let error = json!({ "type": kind, "message": "Spent", "resets_at": at });
        Step::Status { status: 429, body: json!({ "error": error }), headers: Default::default() }
    };
    let now = jiff::Timestamp::now().as_second().unsigned_abs();
    #[rustfmt::skip]
    let table = [
        (Step::status(400, "bad", "Unknown parameter: 'x'"),
            "the model's server answers 400: Unknown parameter: 'x'"),
        (plain(400, "go away"), "the model's server answers 400: go away"),
        (limit("usage_limit_reached", now + 7_190),
            "the use you paid for is spent: Spent; come back in 120 minutes"),
        (limit("usage_not_included", now + 200_000),
            "the use you paid for is spent: Spent; come back in 3 days"),
        (Step::Incomplete { reason: "content_filter".to_owned() },
            "the model's server ended its answer early: content_filter"),
    ];
    for (step, words) in table {
        let model = Model::start(Script::new([Reply::new([step.clone()]).always()]));
        let error = ask(&provider(Wire::Responses, &model), request("go")).await.ended.unwrap_err();
        assert_eq!((error.message.as_str(), model.count()), (words, 1), "{step:?}");
    }
}

#[tokio::test]
async fn a_repeat_is_told_with_its_number_and_its_cause() {
    let model = Model::start(Script::new([
        Reply::new([Step::begin("Ha"), Step::Cut]).times(2),
        Reply::text("Whole."),
    ]));
    let stage = Setting::on(opened(&provider(Wire::Responses, &model))).open();
    assert_eq!(stage.turn("go").await["status"], "completed");
    for (at, message) in ["Reconnecting... 1/2", "Reconnecting... 2/2"].into_iter().enumerate() {
        let told = stage.wait("error", at).await;
        assert_eq!(
            (&told["willRetry"], &told["error"]["message"]),
            (&json!(true), &json!(message))
        );
        let cause = told["error"]["additionalDetails"].as_str().unwrap();
        assert!(cause.starts_with("the model's server cut its answer: "), "{cause}");
    }
    let bodies = model.bodies();
    assert!(bodies.iter().all(|body| body == &bodies[0]), "the whole request is sent again");
}
