//! What goes wrong at the model, as Codex 0.166 reports it.

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::run;

#[tokio::test]
async fn a_stream_cut_once_is_asked_for_again() {
    let cut = Reply::new([Step::text("Half an ans"), Step::Cut]);
    let ran = run(vec![cut, Reply::text("Whole")], &Options::default()).await;
    assert_eq!(ran.turn["status"], "completed", "{}", ran.turn);
    assert_eq!(ran.model.count(), 2);
    let error = &ran.lines.received("error")[0]["params"];
    assert_eq!(error["willRetry"], true, "{error}");
}

#[tokio::test]
async fn faults_have_their_codes_and_their_number_of_requests() {
    let status = Step::status;
    let cut = vec![Step::text("Half"), Step::Cut];
    let garbage = vec![Step::bytes(b"data: {garbage\n\n"), Step::text("Fine")];
    let not_text = vec![Step::bytes(b"\xff\xfe garbage\n\n"), Step::text("Fine")];
    let http = |kind: &str, code: u16| json!({ kind: { "httpStatusCode": code } });
    #[rustfmt::skip]
    let table: Vec<(&str, Vec<Step>, usize, Value)> = vec![
        ("400", vec![status(400, "bad", "no")], 1, json!("other")),
        ("401", vec![status(401, "auth", "no")], 3, http("httpConnectionFailed", 401)),
        ("429", vec![status(429, "rate", "no")], 1, http("responseTooManyFailedAttempts", 429)),
        ("429 later", vec![Step::rate_limit(0)], 3, http("responseTooManyFailedAttempts", 429)),
        ("429 limit", vec![Step::usage_limit()], 1, json!("usageLimitExceeded")),
        ("500", vec![status(500, "server", "no")], 6, json!("internalServerError")),
        ("long", vec![Step::failed("context_length_exceeded", "x")], 1, json!("contextWindowExceeded")),
        ("busy", vec![Step::failed("server_is_overloaded", "x")], 1, json!("serverOverloaded")),
        ("short", vec![Step::Incomplete { reason: "max_output_tokens".to_owned() }], 1, json!("other")),
        ("cut", cut, 3, json!("other")),
        ("garbage", garbage, 1, Value::Null),
        ("not text", not_text, 3, json!("other")),
    ];
    for (name, steps, posts, want) in table {
        let script = Script::new([Reply::new(steps).always()]);
        let ran = run(script, &Options::default()).await;
        let info = ran.turn["error"]["codexErrorInfo"].clone();
        assert_eq!((info, ran.model.count()), (want, posts), "{name}: {}", ran.turn);
    }
}

#[tokio::test]
async fn a_script_without_a_fitting_reply_says_so() {
    let ran = run(vec![Reply::text("x").when_user("something else")], &Options::default()).await;
    assert_eq!(ran.turn["status"], "failed");
    let message = ran.turn["error"]["message"].to_string();
    assert!(message.contains("no reply of the script applies"), "{message}");
    assert_eq!(ran.model.unanswered().len(), 1);
}
