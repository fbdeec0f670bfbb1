//! The table of faults, row by row.

use std::time::Duration;

use serde_json::json;

use super::super::Fault::{
    Auth, BadRequest, ContextOverflow, Overload, Quota, RateLimit, Transport,
};
use super::Again::{After, Never, Request, RequestOnly, Stream, Unspecified};
use super::{Told, failed, status};

#[test]
fn statuses_are_classified() {
    let two = Some(Duration::from_secs(2));
    let hour = Some(Duration::from_secs(3600));
    let after = After(Duration::from_secs(2));
    let openai = |code: &str| json!({ "error": { "code": code, "message": "m" } }).to_string();
    let kind = |kind: &str| json!({ "error": { "type": kind, "message": "m" } }).to_string();
    let vllm = json!({ "object": "error", "type": "BadRequestError", "code": 400,
        "message": "This model's maximum context length is 4096 tokens." })
    .to_string();
    let llama = json!({ "error": { "code": 500, "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size" } })
    .to_string();
    let wait = json!({ "error": { "message": "Please try again in 2s" } }).to_string();
    #[rustfmt::skip]
    let table = [
        (401, None, openai("invalid_api_key"),          Auth,            Never),
        (403, two,  "<html>no</html>".to_owned(),       Auth,            Never),
        (402, None, String::new(),                      Quota,           Never),
        (429, two,  openai("rate_limit_exceeded"),      RateLimit,       after),
        (429, hour, openai("rate_limit_exceeded"),      RateLimit,       Never),
        (429, None, openai("rate_limit_exceeded"),      RateLimit,       Unspecified),
        (429, None, wait,                               RateLimit,       after),
        (429, two,  openai("insufficient_quota"),       Quota,           Never),
        (429, None, kind("usage_limit_reached"),        Quota,           Never),
        (400, None, openai("context_length_exceeded"),  ContextOverflow, Never),
        (400, None, vllm,                               ContextOverflow, Never),
        (500, None, llama,                              ContextOverflow, Never),
        (413, None, String::new(),                      ContextOverflow, Never),
        (400, None, kind("invalid_request_error"),      BadRequest,      Never),
        (404, None, r#"{"error":"model not found"}"#.to_owned(), BadRequest, Never),
        (422, None, r#"{"detail":[{"msg":"x"}]}"#.to_owned(),    BadRequest, Never),
        (307, None, String::new(),                      BadRequest,      Never),
        (408, None, String::new(),                      Transport,       Stream),
        (500, None, String::new(),                      Transport,       Request),
        (502, None, "<html>".to_owned(),                Transport,       Request),
        (503, None, String::new(),                      Overload,        Request),
        (503, None, openai("server_is_overloaded"),     Overload,        RequestOnly),
        (503, None, openai("slow_down"),                Overload,        RequestOnly),
        (529, None, kind("overloaded_error"),           Overload,        RequestOnly),
    ];
    for (code, retry_after, body, fault, again) in table {
        let failure = status(code, retry_after, &Told::read(&body));
        let got = (failure.error.kind, failure.again, failure.error.status);
        assert_eq!(got, (fault, again, Some(code)), "{code} {body}");
    }
}

#[test]
fn errors_in_a_stream_are_classified() {
    #[rustfmt::skip]
    let table = [
        ("rate_limit_exceeded",     "try again in 1.5s", RateLimit, After(Duration::from_millis(1500))),
        ("rate_limit_exceeded",     "try again in 2h",   RateLimit, Never),
        ("rate_limit_exceeded",     "slow",  RateLimit,       Stream),
        ("context_length_exceeded", "long",  ContextOverflow, Never),
        ("insufficient_quota",      "none",  Quota,           Never),
        ("usage_not_included",      "none",  Quota,           Never),
        ("invalid_prompt",          "bad",   BadRequest,      Never),
        ("cyber_policy",            "bad",   BadRequest,      Never),
        ("bio_policy",              "bad",   BadRequest,      Never),
        ("server_is_overloaded",    "busy",  Overload,        Never),
        ("server_error",            "oops",  Transport,       Stream),
        ("",                        "oops",  Transport,       Stream),
        ("502",                     "proxy", Transport,       Stream),
        ("401",                     "key",   Auth,            Never),
        ("400",                     "prompt is too long: 9 > 8", ContextOverflow, Never),
    ];
    for (code, message, fault, again) in table {
        let told = Told::from_value(&json!({ "code": code, "message": message }));
        let failure = failed(&told);
        assert_eq!((failure.error.kind, failure.again), (fault, again), "{code}: {message}");
    }
}

#[test]
fn the_words_say_what_to_do() {
    let limit = json!({ "error": { "type": "usage_limit_reached",
        "message": "The usage limit has been reached", "resets_in_seconds": 7300 } });
    #[rustfmt::skip]
    let table = [
        (429, limit.to_string(),
         "the use you paid for is spent: The usage limit has been reached; come back in 3 hours"),
        (401, r#"[{"error":{"message":"API key not valid"}}]"#.to_owned(),
         "the model's server refuses the key (401): API key not valid"),
        (404, r#"{"error":"model 'x' not found"}"#.to_owned(),
         "the model's server has no such model or address (404): model 'x' not found"),
        (500, String::new(), "the model's server answers 500: no reason given"),
    ];
    for (code, body, want) in table {
        assert_eq!(status(code, None, &Told::read(&body)).error.message, want);
    }
    let page = status(500, None, &Told::read(&"ä".repeat(100_000))).error.message;
    assert_eq!(page.chars().count(), 2033);
}
