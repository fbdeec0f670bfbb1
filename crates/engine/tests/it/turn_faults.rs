//! Faults of models and of the disk: a clear error, an end, a thread that goes on.

use std::time::Duration;

use bindery_engine::item::{Item, Reasoning};
use bindery_engine::model::{Fault, ModelError, ModelEvent};
use bindery_engine::thread::{Entry, TurnInput};
use serde_json::{Value, json};

use crate::stage::{Act, Stage, assistant, call, fail, plan, say};

#[tokio::test]
async fn each_fault_has_its_word_and_the_thread_goes_on() {
    let none = json!({ "httpStatusCode": null });
    #[rustfmt::skip]
    let table = [
        (Fault::Auth,            None,      json!("unauthorized")),
        (Fault::Quota,           Some(429), json!("usageLimitExceeded")),
        (Fault::RateLimit,       Some(429),
            json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } })),
        (Fault::Overload,        Some(503), json!("serverOverloaded")),
        (Fault::BadRequest,      Some(400), json!("badRequest")),
        (Fault::Incomplete,      None,      json!("other")),
        (Fault::Garbage,         None,      json!("other")),
        (Fault::Transport,       Some(500), json!("internalServerError")),
        (Fault::Transport,       None,      json!({ "responseStreamDisconnected": none })),
        (Fault::Idle,            None,      json!({ "responseStreamDisconnected": none })),
    ];
    for (kind, status, word) in table {
        let error = ModelError { kind, message: "no luck".to_owned(), status };
        let stage = Stage::new(vec![vec![Act::Fail(error)], say("back")]);
        let turn = stage.turn("one").await;
        let wanted = json!({ "message": "no luck", "codexErrorInfo": word,
            "additionalDetails": null, "misalignment": null });
        assert_eq!((&turn["status"], &turn["error"]), (&json!("failed"), &wanted), "{kind:?}");
        let told = stage.wait("error", 0).await;
        assert_eq!((&told["error"], &told["willRetry"]), (&wanted, &json!(false)), "{kind:?}");
        assert_eq!(stage.thread.snapshot().await.status, json!({ "type": "systemError" }));
        assert_eq!(stage.turn("two").await["status"], "completed", "{kind:?}");
        assert_eq!(stage.input_lines(1), ["user: one", "user: two"], "{kind:?}");
    }
}

fn retry(delay: Duration) -> Act {
    Act::Tell(ModelEvent::Retrying { attempt: 1, most: 5, cause: "cut".to_owned(), delay })
}

#[tokio::test]
async fn what_was_begun_before_a_retry_is_void() {
    let thoughts =
        Item::Reasoning(Reasoning { id: Some("rs_1".to_owned()), ..Reasoning::default() });
    let mut acts = vec![
        Act::Tell(ModelEvent::ItemDone(thoughts.into())),
        Act::Tell(ModelEvent::ItemBegun(assistant(""))),
        Act::Tell(ModelEvent::Text("half".to_owned())),
        retry(Duration::ZERO),
    ];
    acts.extend(say("valid"));
    let stage = Stage::new(vec![acts, say("back")]);
    let turn = stage.turn("one").await;
    assert_eq!(turn["items"][0]["text"], "valid");
    let told = stage.wait("error", 0).await;
    assert_eq!(told["willRetry"], true);
    assert_eq!(told["error"]["message"], "Reconnecting... 1/5");
    assert_eq!(told["error"]["additionalDetails"], "cut");
    stage.turn("two").await;
    assert_eq!(stage.input_lines(1), ["user: one", "assistant: valid", "user: two"]);
}

#[tokio::test]
async fn what_was_whole_before_a_cut_stays_said() {
    let mut acts = say("First.");
    acts.extend([Act::Tell(ModelEvent::ItemBegun(assistant("")))]);
    acts.extend([Act::Tell(ModelEvent::Text("Sec".to_owned())), retry(Duration::ZERO), Act::Hang]);
    let stage = Stage::new(vec![acts, say("Second.")]);
    assert_eq!(stage.turn("one").await["status"], "completed");
    assert_eq!(stage.input_lines(1), ["user: one", "assistant: First."]);
}

#[tokio::test]
async fn an_answer_cut_after_a_call_is_not_asked_for_again_as_if_nothing_had_happened() {
    let mut acts = vec![call("c1", "update_plan", &plan())];
    acts.extend([retry(Duration::ZERO), Act::Hang]);
    let stage = Stage::new(vec![acts, say("done")]);
    assert_eq!(stage.turn("one").await["status"], "completed");
    assert_eq!(stage.count("turn/plan/updated"), 1, "the tool ran once");
    let lines = stage.input_lines(1);
    assert_eq!(lines, ["user: one", "call c1 update_plan", "output c1 Plan updated"]);
}

#[tokio::test]
async fn an_answer_cut_again_and_again_after_calls_ends_the_turn() {
    let acts = vec![call("c1", "update_plan", &plan()), retry(Duration::ZERO), Act::Hang];
    let stage = Stage::new(vec![acts]);
    let turn = stage.turn("one").await;
    assert_eq!(turn["status"], "failed");
    assert_eq!(stage.model.requests.lock().expect("requests").len(), 6);
}

#[tokio::test]
async fn a_call_before_a_fault_is_answered() {
    let mut acts = vec![call("c1", "update_plan", &plan())];
    acts.extend(fail(Fault::Transport));
    let stage = Stage::new(vec![acts, say("back")]);
    assert_eq!(stage.turn("one").await["status"], "failed");
    stage.turn("two").await;
    let lines = stage.input_lines(1);
    assert_eq!(lines, ["user: one", "call c1 update_plan", "output c1 Plan updated", "user: two"]);
}

#[tokio::test]
async fn a_full_disk_ends_the_turn_and_nothing_told_is_lost() {
    let mut acts = say("Looking.");
    acts.push(call("c1", "update_plan", &plan()));
    let whole = Stage::new(vec![acts.clone(), say("done")]);
    whole.turn("go").await;
    let entries = whole.book.entries.lock().expect("book").len();
    for room in 0..entries {
        let stage = Stage::new(vec![acts.clone(), say("done"), say("back")]);
        *stage.book.room.lock().expect("room") = room;
        let turn = stage.turn("go").await;
        let last = room + 1 == entries;
        let message = turn["error"]["message"].as_str().unwrap_or_default();
        // The end of a turn is told even if it could not be written: every turn ends.
        let clear = message.starts_with("cannot write the session down: no space left");
        assert!(clear || last, "room for {room}: {turn}");
        assert_written(&stage, room);
        *stage.book.room.lock().expect("room") = usize::MAX;
        assert_eq!(stage.turn("again").await["status"], "completed", "room for {room}");
    }
}

/// Each item that was told as whole is in the journal.
fn assert_written(stage: &Stage, room: usize) {
    let entries = stage.book.entries.lock().expect("book");
    let written = |told: &Value| {
        entries.iter().any(
            |entry| matches!(entry, Entry::ItemCompleted { item, .. } if item["id"] == told["id"]),
        )
    };
    for (method, params) in stage.ears.heard.lock().expect("ears").iter() {
        if *method == "item/completed" {
            assert!(written(&params["item"]), "room for {room}: {params}");
        }
    }
}

#[tokio::test]
async fn code_that_fails_ends_its_turn_only() {
    let acts = vec![call("c1", "update_plan", &plan()), Act::Gate, Act::Panic];
    let stage = Stage::new(vec![acts, say("back")]);
    stage.thread.start_turn(TurnInput::text("one")).await.expect("a turn");
    stage.wait("turn/plan/updated", 0).await;
    stage.model.open_gate();
    let turn = stage.ended(0).await;
    assert_eq!(turn["status"], "failed");
    assert_eq!(turn["error"]["message"], "the engine failed inside; the thread can be used on");
    assert_eq!(stage.turn("two").await["status"], "completed");
    let lines = stage.input_lines(1);
    assert_eq!(lines[..2], ["user: one", "call c1 update_plan"]);
    assert!(lines[2].starts_with("output c1 "), "{lines:?}");
}
