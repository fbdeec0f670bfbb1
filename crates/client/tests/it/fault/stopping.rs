//! Interrupts: one request, whatever happens around it, and an end in time.

use std::time::Duration;

use bindery_client::turn::Turn;
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_testkit::app_server::Step;
use serde_json::json;
use tokio::time::Instant;

use super::{Scene, count, turn};
use crate::stage::Told;

/// A turn that has said something.
async fn speaking(scene: &Scene) -> (Turn, Vec<Part>) {
    let mut turn = scene.client.start_turn(scene.request()).await.unwrap();
    let mut parts = Vec::new();
    while !matches!(parts.last(), Some(Part::TextDelta(_))) {
        parts.push(turn.next().await.expect("a part"));
    }
    (turn, parts)
}

/// The scripted turn up to its first words.
fn begun() -> Vec<Step> {
    [turn().begin(), turn().begin_to_say("m", "one ")].concat()
}

#[tokio::test]
async fn asking_twice_is_asking_once() {
    let scene = Scene::open([begun(), turn().interrupt()]).await;
    let (turn, _) = speaking(&scene).await;
    let control = turn.control();
    control.interrupt();
    control.clone().interrupt();
    let told = Told::of(turn).await;
    control.interrupt();
    assert_eq!(told.end(), Unified::Interrupted);
    assert_eq!(count(&scene.close().await, "turn/interrupt"), 1);
}

#[tokio::test]
async fn a_reader_that_leaves_interrupts_once_and_frees_the_thread() {
    let next = super::Turn::new("thread-1", "turn-2");
    let flood = vec![Step::Repeat { times: Some(2000), steps: vec![turn().delta("m", "x")] }];
    let steps = [begun(), flood, turn().interrupt(), next.begin(), next.say("n", "free")];
    let scene = Scene::open(steps.into_iter().chain([next.complete()])).await;
    let (turn, _) = speaking(&scene).await;
    drop(turn);
    let told = loop {
        match scene.client.start_turn(scene.request()).await {
            Ok(turn) => break Told::of(turn).await,
            Err(err) => assert_eq!(err.code(), "thread_busy"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((told.text().as_str(), told.end()), ("free", Unified::Stop));
    assert_eq!(count(&scene.close().await, "turn/interrupt"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_that_is_never_confirmed_ends_at_its_deadline() {
    let reply = Step::reply(json!({}));
    for confirm in [vec![], vec![reply]] {
        let asked = [vec![Step::expect("turn/interrupt")], confirm, vec![Step::Silence]].concat();
        let scene = Scene::open([begun(), asked]).await;
        let (turn, _) = speaking(&scene).await;
        let begin = Instant::now();
        turn.control().interrupt();
        let told = Told::of(turn).await;
        assert_eq!((told.end(), told.errors().len()), (Unified::Interrupted, 0));
        assert_eq!(begin.elapsed().as_secs(), 10);
        assert_eq!(count(&scene.close().await, "turn/interrupt"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_talking_after_an_interrupt_ends_at_its_deadline() {
    let talk = vec![turn().delta("m", "and on "), Step::Delay { ms: 500 }];
    let asked = vec![Step::expect("turn/interrupt")];
    let on = vec![Step::Repeat { times: Some(100), steps: talk }];
    let scene = Scene::open([begun(), asked, on]).await;
    let (turn, _) = speaking(&scene).await;
    let begin = Instant::now();
    turn.control().interrupt();
    let told = Told::of(turn).await;
    assert_eq!(told.end(), Unified::Interrupted);
    assert!(begin.elapsed() <= Duration::from_secs(11), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_turn_that_completes_instead_is_complete() {
    let done = [vec![Step::expect("turn/interrupt")], turn().complete()].concat();
    let scene = Scene::open([begun(), done]).await;
    let (turn, _) = speaking(&scene).await;
    turn.control().interrupt();
    let told = Told::of(turn).await;
    assert_eq!((told.streamed().as_str(), told.end()), ("", Unified::Stop));
}

/// Codex has ended the turn when it says so; a reader may go on at once, not even waiting for the
/// end of the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_turn_may_start_with_the_finish_of_the_last() {
    let turn = super::Turn::new("thread-1", "turn-$n");
    let steps = [turn.begin(), turn.say("m", "Hi"), turn.complete()].concat();
    let scene = Scene::open([vec![Step::Repeat { times: Some(200), steps }]]).await;
    for _ in 0..200 {
        let mut turn = scene.client.start_turn(scene.request()).await.unwrap();
        while !matches!(turn.next().await, Some(Part::Finish { .. })) {}
    }
    scene.close().await;
}
