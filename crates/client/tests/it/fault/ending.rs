//! Death, a closed pipe and silence at every step: each ends, with the text, in time.

use std::sync::Arc;
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::transport::stdio::Launch;
use bindery_client::turn::{Deadlines, TurnRequest};
use bindery_core::interrupt::{Answer, Decision, Interrupt};
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_testkit::app_server::{Script, Step, initialize, program, start_thread};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{HANG, connect, turn};
use crate::stage::Told;

/// A whole session with a question in it.
fn session() -> Vec<Step> {
    let turn = turn();
    let answered = vec![Step::ExpectAnswer { id: json!(5) }];
    let groups = [
        initialize(),
        start_thread("thread-1"),
        turn.begin(),
        turn.begin_to_say("m", "Hel"),
        turn.ask_for_command(5, "c", "ls"),
        answered,
        turn.complete(),
    ];
    groups.concat()
}

/// The session up to a step, and what happens instead of it.
fn until(step: usize, then: Step) -> Script {
    let mut steps = session();
    steps.truncate(step);
    steps.push(then);
    Script::new([steps])
}

const DEADLINES: Deadlines = Deadlines {
    taken: Duration::ZERO,
    start: Duration::from_secs(5),
    idle: Duration::from_secs(7),
    whole: None,
    interrupt: Duration::from_secs(3),
    answer: Duration::from_secs(3600),
    settle: None,
};

/// Lives through the session.
async fn live(client: Result<AppServer, Error>) -> Result<Told, Error> {
    let client = client?;
    let thread = client.start_thread(&ThreadStart::default()).await?.thread.id;
    let mut request = TurnRequest::new(thread, "go");
    request.deadlines = DEADLINES;
    request.answerer = Arc::new(async |_: Interrupt| Some(Answer::decision(Decision::Accept)));
    Ok(Told::of(client.start_turn(request).await?).await)
}

/// An error with its kind, or a turn that told it and finished; or all was over before.
fn check(step: usize, kind: &str, lived: Result<Told, Error>) {
    match lived {
        Err(err) => {
            assert_eq!(err.code(), kind, "step {step}");
            assert!(!err.to_string().is_empty());
        }
        Ok(told) if step == session().len() => assert_eq!(told.end(), Unified::Stop),
        Ok(told) => {
            assert_eq!(told.end(), Unified::Error, "step {step}: {:?}", told.parts);
            assert_eq!(told.errors().len(), 1, "step {step}");
            assert_eq!(told.errors()[0]["kind"], kind, "step {step}");
            assert_ne!(told.errors()[0]["message"], "", "step {step}");
            let open = told.parts.iter().filter(|part| matches!(part, Part::TextStart(_))).count();
            let ended =
                told.parts.iter().filter(|part| matches!(part, Part::TextEnd { .. })).count();
            assert_eq!(open, ended, "step {step}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_at_any_step_ends_what_runs() {
    for step in 0..=session().len() {
        for then in [Step::crash(3), Step::CloseOutput] {
            let lived = async {
                let (client, _scripted) = connect(until(step, then)).await;
                live(client).await
            };
            check(step, "closed", timeout(HANG, lived).await.expect("it hangs"));
        }
    }
}

#[tokio::test]
async fn a_process_that_dies_at_any_step_ends_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    for step in 0..=session().len() {
        let path = folder.path().join(format!("{step}.json"));
        until(step, Step::crash(3)).write(&path);
        let mut launch = Launch::new(program());
        launch.args = vec![path.into(), "app-server".into()];
        let lived =
            async { live(AppServer::spawn(&launch, &ConnectOptions::default()).await).await };
        let lived = timeout(HANG, lived).await.expect("it hangs");
        let text = match &lived {
            Err(err) => err.to_string(),
            Ok(told) => {
                told.errors().first().map(|error| error["message"].to_string()).unwrap_or_default()
            }
        };
        let over = step == session().len();
        assert!(over || text.contains("exit code 3"), "step {step}: {text}");
        check(step, "closed", lived);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_at_any_step_ends_at_our_deadlines() {
    for step in 0..session().len() {
        for then in [Step::Silence, Step::Hang] {
            let begin = Instant::now();
            let lived = async {
                let (client, _scripted) = connect(until(step, then)).await;
                live(client).await
            };
            check(step, "timeout", timeout(HANG, lived).await.expect("it hangs"));
            // The longest is the request's own; no reader waits for the interrupt as well.
            assert!(begin.elapsed() <= super::SOON + Duration::from_secs(1), "step {step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_ends_with_its_finish() {
    let steps = [turn().begin(), turn().begin_to_say("m", "Hel"), vec![Step::Silence]];
    let scene = super::Scene::open(steps).await;
    let mut request = scene.request();
    request.deadlines = DEADLINES;
    let mut turn = scene.client.start_turn(request).await.unwrap();
    while !matches!(turn.next().await, Some(Part::Finish { .. })) {}
    let finished = Instant::now();
    assert!(turn.next().await.is_none());
    assert_eq!(finished.elapsed(), Duration::ZERO, "the reader waits for the interrupt");
    // Codex may still run the turn; until it says that it does not, the next one waits.
    let early = timeout(DEADLINES.interrupt / 2, scene.client.start_turn(scene.request())).await;
    assert!(early.is_err(), "the thread is free before the turn is over");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_asked_again() {
    let turn = turn();
    let refuse = || vec![Step::expect("turn/start"), Step::overload()];
    let steps = [refuse(), refuse(), refuse(), turn.begin(), turn.say("m", "Hi"), turn.complete()];
    let scene = super::Scene::open(steps).await;
    assert_eq!(scene.run(scene.request()).await.text(), "Hi");
    assert_eq!(super::count(&scene.close().await, "turn/start"), 4);
}

#[tokio::test(start_paused = true)]
async fn overload_for_ever_is_an_error_and_frees_the_thread() {
    let refuse = vec![Step::expect("turn/start"), Step::overload()];
    let scene = super::Scene::open([vec![Step::Repeat { times: None, steps: refuse }]]).await;
    for _ in 0..2 {
        let err = scene.client.start_turn(scene.request()).await.unwrap_err();
        assert_eq!(err.code(), "overloaded");
    }
}
