//! Models that fail, and a Codex that dies: every turn ends, with the text.

use std::time::{Duration, Instant};

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::transport::stdio::Launch;
use bindery_client::turn::TurnRequest;
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step};

use crate::stage::{Stage, Told};

async fn fail(step: Step) -> Told {
    let told = Stage::free(vec![Reply::new([step]).always()]).await.say("go").await;
    assert_eq!(told.errors().len(), 1, "{:?}", told.errors());
    told
}

async fn a_400_keeps_its_text() {
    let told = fail(Step::status(400, "invalid_request_error", "no such field")).await;
    assert_eq!(told.end(), Unified::Error);
    assert!(told.errors()[0]["message"].as_str().unwrap().contains("no such field"));
}

async fn a_401_keeps_its_status() {
    let told = fail(Step::status(401, "auth", "bad key")).await;
    let error = &told.errors()[0];
    assert_eq!(
        (error["kind"].as_str(), error["httpStatus"].as_u64()),
        (Some("httpConnectionFailed"), Some(401)),
        "{error}"
    );
}

async fn a_429_keeps_its_status() {
    let told = fail(Step::rate_limit(0)).await;
    let error = &told.errors()[0];
    assert_eq!((told.end(), error["httpStatus"].as_u64()), (Unified::Error, Some(429)), "{error}");
    assert!(!told.customs("codex.retry").is_empty());
}

async fn a_used_up_plan_is_told_as_such() {
    let told = fail(Step::usage_limit()).await;
    assert_eq!(told.errors()[0]["kind"], "usageLimitExceeded");
}

async fn a_500_is_an_error() {
    let told = fail(Step::status(500, "server_error", "oops")).await;
    assert_eq!(
        (told.end(), &told.errors()[0]["kind"]),
        (Unified::Error, &"internalServerError".into())
    );
}

async fn a_full_window_is_a_matter_of_length() {
    let told = fail(Step::failed("context_length_exceeded", "too long")).await;
    assert_eq!(told.end(), Unified::Length);
}

async fn a_stream_cut_once_does_not_double_its_text() {
    let stage = Stage::free(vec![
        Reply::new([Step::begin("Hello, "), Step::Cut]),
        Reply::text("Hello, world."),
    ])
    .await;
    let told = stage.say("greet").await;
    assert_eq!((told.text().as_str(), told.end()), ("Hello, world.", Unified::Stop));
    assert_eq!(told.streamed(), "Hello, world.");
    assert_eq!(told.customs("codex.retry").len(), 1);
}

async fn what_was_complete_before_a_cut_stays_said() {
    let stage = Stage::free(vec![
        Reply::new([Step::text("First."), Step::begin("Sec"), Step::Cut]),
        Reply::text("Second."),
    ])
    .await;
    let told = stage.say("two things").await;
    assert_eq!((told.text().as_str(), told.end()), ("First.|Second.", Unified::Stop));
    // Codex keeps completed items: the second attempt is asked with the first message.
    let heard = crate::stage::heard(&stage.model.bodies()[1]);
    assert_eq!(heard.last().map(String::as_str), Some("assistant: First."));
}

/// On Codex only: the words are Codex's.
#[tokio::test]
async fn a_stream_cut_always_ends_with_an_error() {
    let told = Stage::free(vec![Reply::new([Step::begin("Hello, "), Step::Cut]).always()])
        .await
        .say("greet")
        .await;
    assert_eq!(told.end(), Unified::Error);
    assert_eq!(told.streamed(), "Hello, ");
    assert!(told.errors()[0]["message"].as_str().unwrap().contains("disconnected"));
}

async fn a_killed_codex_ends_the_turn_within_a_second() {
    let stage = Stage::free(vec![Reply::new([Step::text("one "), Step::Silence])]).await;
    let thread = stage.thread().await;
    let mut turn = stage.server.start_turn(TurnRequest::new(thread, "go")).await.unwrap();
    let mut parts = Vec::new();
    let mut killed = None;
    while let Some(part) = turn.next().await {
        if matches!(part, Part::TextDelta(_)) {
            let process = stage.server.process().unwrap().to_string();
            std::process::Command::new("kill").args(["-9", &process]).status().unwrap();
            killed = Some(Instant::now());
        }
        parts.push(part);
    }
    assert!(killed.unwrap().elapsed() < Duration::from_secs(1), "{:?}", killed.unwrap().elapsed());
    let told = Told { parts };
    assert_eq!((told.end(), &told.errors()[0]["kind"]), (Unified::Error, &"closed".into()));
    assert!(told.errors()[0]["message"].as_str().unwrap().contains("SIGKILL"));
    let dead = stage.server.start_turn(TurnRequest::new("t".into(), "x")).await.unwrap_err();
    assert_eq!(dead.code(), "closed");
}

#[tokio::test]
async fn a_missing_codex_is_an_error_with_a_hint() {
    let launch = Launch::new("/nowhere/codex");
    let err = AppServer::spawn(&launch, &ConnectOptions::default()).await.unwrap_err();
    assert_eq!(err.code(), "spawn");
    assert!(err.hint().is_some());
}

/// On Codex only: the engine gives up by itself.
#[tokio::test]
async fn an_unreachable_provider_ends_by_our_own_deadline() {
    let options =
        Options { base_url: Some("http://127.0.0.1:9/v1".into()), ..Options::unrestricted() };
    let stage = Stage::with(vec![], &options).await;
    let mut request = TurnRequest::new(stage.thread().await, "go");
    request.deadlines.idle = Duration::from_secs(3);
    let told = stage.run(request).await;
    let error = &told.errors()[0];
    assert_eq!(error["kind"], "timeout");
    let words = error["message"].as_str().unwrap();
    assert!(words.starts_with("Codex made no progress for 3s: Reconnecting..."), "{words}");
    assert!(words.ends_with(')'), "without the reason: {words}");
}

async fn a_silent_model_ends_by_the_deadline_of_the_turn() {
    let stage = Stage::free(vec![Reply::new([Step::Silence])]).await;
    let mut request = TurnRequest::new(stage.thread().await, "go");
    request.deadlines.whole = Some(Duration::from_secs(3));
    let told = stage.run(request).await;
    assert_eq!((told.end(), &told.errors()[0]["kind"]), (Unified::Error, &"timeout".into()));
}

crate::backend::on_both! {
    what_was_complete_before_a_cut_stays_said,
    a_401_keeps_its_status,
    a_400_keeps_its_text,
    a_429_keeps_its_status,
    a_used_up_plan_is_told_as_such,
    a_500_is_an_error,
    a_full_window_is_a_matter_of_length,
    a_stream_cut_once_does_not_double_its_text,
    a_killed_codex_ends_the_turn_within_a_second,
    a_silent_model_ends_by_the_deadline_of_the_turn,
}
