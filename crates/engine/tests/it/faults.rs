//! Everything that goes wrong at a model, on both wires: no hang, the right fault in clear words,
//! and no more requests than help.

use std::time::Duration;

use bindery_engine::model::Fault::{
    self, Auth, BadRequest, ContextOverflow, Garbage, Idle, Incomplete, Overload, Quota, RateLimit,
    Transport,
};
use bindery_engine::model::{ModelEvent, Provider, Wire};
use bindery_testkit::model::{Model, Reply, Script, Step};
use bindery_testkit::tls::{self, Front};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::wires::{WIRES, ask, provider, request};

fn coded(status: u16, code: &str, message: &str) -> Step {
    let body = json!({ "error": { "code": code, "message": message } });
    Step::Status { status, body, headers: Default::default() }
}

fn plain(status: u16, text: &str) -> Step {
    Step::Status { status, body: Value::String(text.to_owned()), headers: Default::default() }
}

/// A name, what is said, how many posts that makes, and how it ends.
type Row = (&'static str, Vec<Step>, usize, Fault, Option<u16>);

#[tokio::test]
async fn every_fault_has_its_kind_and_its_number_of_requests() {
    let status = Step::status;
    let short = Step::Incomplete { reason: "max_output_tokens".to_owned() };
    let vllm = "This model's maximum context length is 4096 tokens.";
    #[rustfmt::skip]
    let table: Vec<Row> = vec![
        ("401",          vec![status(401, "auth", "no")],             1, Auth,            Some(401)),
        ("403",          vec![status(403, "auth", "no")],             1, Auth,            Some(403)),
        ("400",          vec![status(400, "bad", "no")],              1, BadRequest,      Some(400)),
        ("404",          vec![plain(404, "no such page")],            1, BadRequest,      Some(404)),
        ("400 long",     vec![status(400, "BadRequestError", vllm)],  1, ContextOverflow, Some(400)),
        ("429",          vec![status(429, "rate", "no")],             1, RateLimit,       Some(429)),
        ("429 later",    vec![Step::rate_limit(0)],                   3, RateLimit,       Some(429)),
        ("429 tomorrow", vec![Step::rate_limit(86_400)],              1, RateLimit,       Some(429)),
        ("429 limit",    vec![Step::usage_limit()],                   1, Quota,           Some(429)),
        ("429 quota",    vec![coded(429, "insufficient_quota", "x")], 1, Quota,           Some(429)),
        ("500",          vec![status(500, "server", "no")],           6, Transport,       Some(500)),
        ("503",          vec![plain(503, "")],                        6, Overload,        Some(503)),
        ("503 busy",     vec![coded(503, "slow_down", "x")],          2, Overload,        Some(503)),
        ("hang-up",      vec![Step::HangUp],                          6, Transport,       None),
        ("cut",          vec![Step::text("Half"), Step::Cut],         3, Transport,       None),
        ("cut at once",  vec![Step::begin("Ha"), Step::Cut],          3, Transport,       None),
        ("garbage",      vec![plain(200, "hello\nworld\n")],          3, Garbage,         None),
        ("not JSON",     vec![plain(200, "data: {bad\n\n")],          3, Garbage,         None),
        ("empty",        vec![plain(200, "")],                        3, Transport,       None),
        ("failed long",  vec![Step::failed("context_length_exceeded", "x")], 1, ContextOverflow, None),
        ("failed quota", vec![Step::failed("insufficient_quota", "x")],      1, Quota,    None),
        ("failed busy",  vec![Step::failed("server_is_overloaded", "x")],    1, Overload, None),
        ("failed bad",   vec![Step::failed("invalid_prompt", "x")],   1, BadRequest,      None),
        ("failed rate",  vec![Step::failed("rate_limit_exceeded", "try again in 10ms")],
                                                                      3, RateLimit,       None),
        ("failed other", vec![Step::failed("oops", "x")],             3, Transport,       None),
        ("short",        vec![Step::text("Half"), short],             1, Incomplete,      None),
    ];
    for (name, steps, posts, fault, status) in table {
        for wire in WIRES {
            let model = Model::start(Script::new([Reply::new(steps.clone()).always()]));
            let asked = ask(&provider(wire, &model), request("go")).await;
            let error = asked.ended.expect_err(name);
            // Servers of the Chat wire seldom say how long to wait, and are given time all the same.
            let posts = if (name, wire) == ("429", Wire::Chat) { 3 } else { posts };
            let got = (error.kind, error.status, model.count());
            assert_eq!(got, (fault, status, posts), "{name} on {wire:?}: {error}");
            let retries = asked.events.iter();
            let retries = retries.filter(|event| matches!(event, ModelEvent::Retrying { .. }));
            let told = if posts >= 3 { 2 } else { 0 };
            assert_eq!(retries.count(), told, "{name} on {wire:?}");
        }
    }
}

#[tokio::test]
async fn silence_ends() {
    let table = [
        ("before a word", vec![Step::Silence]),
        ("in the middle", vec![Step::begin("Once upon"), Step::Silence]),
        ("before the head", vec![Step::gate("never")]),
    ];
    for (name, steps) in table {
        for wire in WIRES {
            let model = Model::start(Script::new([Reply::new(steps.clone()).always()]));
            let provider = Provider {
                idle_timeout: Duration::from_millis(300),
                stream_max_retries: 1,
                ..provider(wire, &model)
            };
            let error = ask(&provider, request("go")).await.ended.expect_err("a fault");
            assert_eq!((error.kind, model.count()), (Idle, 2), "{name} on {wire:?}: {error}");
            let words = "the model's server said nothing for 0.3 s; asked twice";
            assert_eq!(error.message, words);
        }
    }
}

#[tokio::test]
async fn a_bad_line_costs_nothing() {
    let steps = [
        Step::bytes(b"data: {garbage\n\n"),
        Step::bytes(b"\xff\xfe no field\n\n: ping\n\n"),
        Step::text("Fine"),
    ];
    for wire in WIRES {
        let model = Model::start(vec![Reply::new(steps.clone())]);
        let asked = ask(&provider(wire, &model), request("go")).await;
        assert!(asked.ended.is_ok(), "{wire:?}: {:?}", asked.ended);
        assert_eq!((asked.text().as_str(), model.count()), ("Fine", 1));
    }
}

#[tokio::test]
async fn a_cut_answer_is_begun_anew() {
    for wire in WIRES {
        let cut = Reply::new([Step::begin("Half an ans"), Step::Cut]);
        let model = Model::start(vec![cut, Reply::text("Whole")]);
        let asked = ask(&provider(wire, &model), request("go")).await;
        assert!(asked.ended.is_ok(), "{:?}", asked.ended);
        let at = asked.events.iter().position(|e| matches!(e, ModelEvent::Retrying { .. }));
        let ModelEvent::Retrying { attempt, most, .. } = &asked.events[at.expect("an answer")]
        else {
            panic!("{wire:?}")
        };
        assert_eq!((*attempt, *most), (1, 2));
        assert_eq!(asked.items().len(), 1, "{wire:?}");
        assert_eq!(asked.text(), "Half an ansWhole");
    }
}

#[tokio::test]
async fn a_failure_is_acted_on_though_the_server_holds_the_line() {
    let failed = json!({ "type": "response.failed", "response": {
        "error": { "code": "invalid_prompt", "message": "no" } } });
    let chat = json!({ "error": { "code": "invalid_prompt", "message": "no" } });
    for (wire, event) in WIRES.into_iter().zip([failed, chat]) {
        let model = Model::start(vec![Reply::new([Step::Event { event }, Step::Silence])]);
        let error = ask(&provider(wire, &model), request("go")).await.ended.expect_err("a fault");
        assert_eq!(error.message, "the model's server does not take the request: no");
    }
}

#[tokio::test]
async fn an_answer_that_is_whole_needs_no_end_of_stream() {
    let reason = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let steps = [Step::text("Fine"), Step::Event { event: reason }, Step::Cut];
    let model = Model::start(vec![Reply::new(steps)]);
    let asked = ask(&provider(Wire::Chat, &model), request("go")).await;
    assert!(asked.ended.is_ok(), "{:?}", asked.ended);
    assert_eq!((asked.items().len(), model.count()), (1, 1));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("an answer");
    let address = listener.local_addr().expect("an answer");
    drop(listener);
    for wire in WIRES {
        let provider = Provider {
            request_max_retries: 0,
            stream_max_retries: 0,
            ..Provider::new(wire, format!("http://{address}/v1"))
        };
        let error = ask(&provider, request("go")).await.ended.expect_err("a fault");
        assert_eq!(error.kind, Transport);
        let begins = format!("cannot reach the model's server at `http://{address}`: ");
        assert!(error.message.starts_with(&begins), "{error}");
        assert!(error.message.ends_with("; is it running?"), "{error}");
    }
}

#[tokio::test]
async fn over_tls_a_server_is_asked_whose_authority_is_named() {
    for wire in WIRES {
        let model = Model::start(Script::always("Safe."));
        let front = Front::before(&model.base_url());
        let provider = Provider {
            base_url: front.base_url(),
            authority: Some(tls::file("ca.pem")),
            ..provider(wire, &model)
        };
        let asked = ask(&provider, request("go")).await;
        asked.ended.as_ref().expect("an answer");
        assert_eq!((asked.text().as_str(), front.connections()), ("Safe.", 1), "{wire:?}");
        assert_eq!(model.requests()[0].headers["authorization"], "Bearer sk-test");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_at_once() {
    let model = Model::start(Script::always("ok"));
    let front = Front::before(&model.base_url());
    let other = front.base_url().replace("localhost", "127.0.0.1");
    let untrusted = "no safe connection to the model's server at `https://localhost:";
    let misnamed = "no safe connection to the model's server at `https://127.0.0.1:";
    #[rustfmt::skip]
    let table = [
        // address           authority                          connections, words
        (front.base_url(),   None,                              1, untrusted),
        // An authority, but not the one that signed the server.
        (front.base_url(),   Some(tls::file("server.pem")),     1, untrusted),
        (other,              Some(tls::file("ca.pem")),         1, misnamed),
        (front.base_url(),   Some(tls::file("server.key")),     0, "cannot speak HTTP: cannot use"),
        (front.base_url(),   Some(tls::file("nowhere.pem")),    0, "cannot speak HTTP: cannot use"),
    ];
    for (base_url, authority, connections, words) in table {
        let name = format!("{base_url} {authority:?}");
        let before = front.connections();
        let provider = Provider { base_url, authority, ..provider(Wire::Chat, &model) };
        let asked = ask(&provider, request("go")).await;
        let error = asked.ended.expect_err(&name);
        assert_eq!((error.kind, model.count()), (Transport, 0), "{name}: {error}");
        assert_eq!(front.connections() - before, connections, "{name}: {error}");
        assert!(error.message.starts_with(words), "{name}: {error}");
        assert!(error.message.contains("CODEX_CA_CERTIFICATE"), "{name}: {error}");
        assert!(asked.events.is_empty(), "{name}: {:?}", asked.events);
    }
}

/// Answers whatever comes as a plain web server answers what it cannot read.
async fn plain_server(listener: TcpListener) {
    loop {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        let mut hello = [0; 1024];
        let _ = tcp.read(&mut hello).await;
        let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // The client hangs up; a server that does so first may lose its own words.
        let _ = tcp.read_to_end(&mut Vec::new()).await;
    }
}

#[tokio::test]
async fn a_secure_address_of_a_plain_server_is_told_at_once() {
    let model = Model::start(Script::always("ok"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("https://{}/v1", listener.local_addr().expect("an address"));
    let provider = Provider { base_url, ..provider(Wire::Responses, &model) };
    let asked = tokio::select! {
        asked = ask(&provider, request("go")) => asked,
        () = plain_server(listener) => unreachable!("it serves for ever"),
    };
    let error = asked.ended.expect_err("a fault");
    assert_eq!(error.kind, Transport, "{error}");
    assert!(error.message.ends_with("is it an http:// address?"), "{error}");
    assert!(asked.events.is_empty(), "{:?}", asked.events);
}

#[tokio::test]
async fn settings_that_lead_nowhere_are_told() {
    for wire in WIRES {
        let error =
            ask(&Provider::new(wire, "nowhere"), request("go")).await.ended.expect_err("a fault");
        assert_eq!(error.kind, BadRequest);
        assert!(error.message.ends_with("set `base_url`"), "{error}");
        let provider = Provider {
            key: Some("two\nlines".to_owned()),
            ..Provider::new(wire, "http://localhost")
        };
        let error = ask(&provider, request("go")).await.ended.expect_err("a fault");
        assert!(error.message.contains("`authorization`"), "{error}");
        assert!(!error.message.contains("lines"), "{error}");
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_told() {
    let words = "Incorrect API key provided: sk-secret-of-the-house";
    for wire in WIRES {
        let reply = Reply::new([Step::status(401, "auth", words)]).always();
        let model = Model::start(Script::new([reply]));
        let key = Some("sk-secret-of-the-house".to_owned());
        let provider = Provider { key, ..provider(wire, &model) };
        let error = ask(&provider, request("go")).await.ended.expect_err("refused");
        assert!(!error.message.contains("secret-of"), "{error}");
        assert!(error.message.contains("Incorrect API key provided: …"), "{error}");
    }
}
