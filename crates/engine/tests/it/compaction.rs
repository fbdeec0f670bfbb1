//! A window that gets full: summaries, overflows, what is kept.

use bindery_engine::item::HistoryItem;
use bindery_engine::model::Fault;
use bindery_engine::prompter::PatchForm;
use bindery_engine::thread::{Entry, Sandbox};
use serde_json::json;

use crate::stage::{Act, Setting, Stage, call, fail, free_call, plan, say};

const HEAD: &str = "user: <summary_of_earlier_work>";

fn costing(mut acts: Vec<Act>, total: u64) -> Vec<Act> {
    acts.push(Act::Cost(total));
    acts
}

fn small(script: Vec<Vec<Act>>) -> Stage {
    Setting::new(script).profile(|profile| profile.window = 10_000).open()
}

#[tokio::test]
async fn by_hand() {
    let stage = Stage::new(vec![
        vec![call("c1", "update_plan", &plan())],
        say("Answer."),
        say("The summary."),
        say("back"),
    ]);
    stage.turn("one").await;
    drop(stage.thread.compact().await.expect("a turn"));
    let turn = stage.ended(1).await;
    assert_eq!((&turn["status"], &turn["items"]), (&json!("completed"), &json!([])));
    let asked = stage.input_lines(2);
    assert_eq!(
        asked[..4],
        ["user: one", "call c1 update_plan", "output c1 Plan updated", "assistant: Answer.",]
    );
    {
        let requests = stage.model.requests.lock().expect("requests");
        assert!(requests[2].tools.is_empty());
        assert_eq!(requests[2].purpose, Some("compact"));
    }
    let told = stage.sketch();
    let from = told.iter().rposition(|line| line == "turn/started").expect("a turn");
    insta::assert_snapshot!(told[from..].join("\n"), @r"
    turn/started
    item/started contextCompaction
    item/completed contextCompaction
    thread/compacted
    thread/tokenUsage/updated 120 of 360
    thread/status/changed idle
    turn/completed completed
    ");
    stage.turn("two").await;
    let lines = stage.input_lines(3);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((lines[0].as_str(), lines[2].as_str()), ("user: one", "user: two"));
    assert!(lines[1].starts_with(HEAD) && lines[1].contains("The summary."), "{lines:?}");
    assert!(lines[1].contains("[in_progress] Look"), "the plan is kept: {lines:?}");
    let entries = stage.book.entries.lock().expect("book");
    let compacted = entries.iter().find_map(|entry| match entry {
        Entry::Compacted { message, history } => Some((message.as_str(), history.len())),
        _ => None,
    });
    assert_eq!(compacted, Some(("The summary.", 2)));
}

#[tokio::test]
async fn files_in_work_are_kept_and_come_back_with_the_thread() {
    let patch = "*** Begin Patch\n*** Add File: src/a.txt\n+one\n*** End Patch\n";
    let with_patch = |script: Vec<Vec<Act>>| {
        Setting::new(script).profile(|profile| profile.patch = PatchForm::Freeform)
    };
    let acts = vec![free_call("p1", "apply_patch", patch), call("c1", "update_plan", &plan())];
    let script = vec![acts, say("Answer."), say("S"), say("back")];
    let first = with_patch(script)
        .change(|settings| settings.standing.sandbox = Sandbox::workspace())
        .open();
    first.turn("one").await;
    let history: Vec<HistoryItem> = {
        let entries = first.book.entries.lock().expect("book");
        let items = entries.iter().filter_map(|entry| match entry {
            Entry::Item(item) => Some(item.clone()),
            _ => None,
        });
        items.collect()
    };
    // The same thread in the same process, and in another one.
    let second = Setting::new(vec![say("S"), say("back")])
        .change(move |settings| settings.history = history)
        .open();
    for (stage, ended, request) in [(&first, 1, 3), (&second, 0, 1)] {
        drop(stage.thread.compact().await.expect("a turn"));
        assert_eq!(stage.ended(ended).await["status"], "completed");
        stage.turn("two").await;
        let lines = stage.input_lines(request);
        let summary = lines.iter().find(|line| line.starts_with(HEAD)).expect("a summary");
        assert!(summary.contains("\n- src/a.txt\n"), "{summary}");
        assert!(summary.contains("[in_progress] Look"), "{summary}");
    }
}

#[tokio::test]
async fn before_a_turn() {
    let stage = small(vec![costing(say("Answer."), 9_500), say("S"), say("back")]);
    stage.turn("one").await;
    stage.turn("two").await;
    let lines = stage.input_lines(2);
    assert_eq!((lines[0].as_str(), lines[2].as_str()), ("user: one", "user: two"));
    assert!(lines[1].starts_with(HEAD), "{lines:?}");
    assert_eq!(stage.count("warning"), 1, "the turn says so");
    let asked = stage.input_lines(1);
    assert!(!asked.iter().any(|line| line == "user: two"), "the new words are not summed up");
}

#[tokio::test]
async fn in_the_middle_of_a_turn() {
    let calling = vec![call("c1", "update_plan", &plan()), Act::Cost(9_500)];
    let stage = Setting::new(vec![calling, say("S"), say("done")])
        .profile(|profile| profile.window = 10_000)
        .change(|settings| {
            settings.standing.developer_instructions = Some("Be brief.".to_owned());
        })
        .open();
    assert_eq!(stage.turn("one").await["status"], "completed");
    let lines = stage.input_lines(2);
    assert_eq!(lines[..2], ["developer: Be brief.", "user: one"], "the context is told again");
    assert!(lines[2].starts_with(HEAD), "{lines:?}");
    assert_eq!(lines.len(), 3);
    let usage = stage.thread.snapshot().await.usage;
    assert_eq!(usage.total.total_tokens, 9_500 + 120 + 120, "the summary is paid for too");
}

#[tokio::test]
async fn an_overflow_compacts_once_and_goes_on() {
    let stage = Stage::new(vec![fail(Fault::ContextOverflow), say("S"), say("done")]);
    assert_eq!(stage.turn("one").await["status"], "completed");
    assert!(stage.input_lines(2)[1].starts_with(HEAD));

    let over = || fail(Fault::ContextOverflow);
    let stage = Stage::new(vec![over(), say("S"), over(), say("S"), say("back")]);
    let turn = stage.turn("one").await;
    assert_eq!(turn["error"]["codexErrorInfo"], "contextWindowExceeded");
    assert_eq!(stage.turn("two").await["status"], "completed");
}

#[tokio::test]
async fn an_overflow_inside_the_summary_drops_the_oldest_with_its_partner() {
    let over = || fail(Fault::ContextOverflow);
    let calling = vec![call("c1", "update_plan", &plan())];
    let stage = Stage::new(vec![calling, say("A"), over(), over(), say("S"), say("back")]);
    stage.turn("one").await;
    drop(stage.thread.compact().await.expect("a turn"));
    assert_eq!(stage.ended(1).await["status"], "completed");
    let ask = stage.input_lines(2).pop().expect("the ask");
    let asks: Vec<Vec<String>> = (2..5).map(|request| stage.input_lines(request)).collect();
    let all = ["user: one", "call c1 update_plan", "output c1 Plan updated", "assistant: A", &ask];
    assert_eq!(asks, [&all[..], &all[1..], &all[3..]]);
    let usage = stage.thread.snapshot().await.usage;
    assert_eq!(usage.total.total_tokens, 360);
}

#[tokio::test]
async fn a_summary_that_never_fits_ends_the_turn() {
    let stage = Stage::new(vec![say("A"), fail(Fault::ContextOverflow)]);
    stage.turn("one").await;
    drop(stage.thread.compact().await.expect("a turn"));
    let turn = stage.ended(1).await;
    assert_eq!(turn["error"]["codexErrorInfo"], "contextWindowExceeded");
    assert_eq!(stage.thread.snapshot().await.active_turn, None);
}
