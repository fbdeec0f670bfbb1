//! The rules of windows, tokens and summaries, against the scripted model.

use std::sync::Arc;

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use bindery_engine::item::{HistoryItem, Item, Message, Reasoning, Role};
use bindery_engine::model::Fault;
use bindery_engine::prompter::{Context, PlainPrompter, Profile, Prompter};
use bindery_engine::thread::{Entry, Overrides, Standing, TurnInput};
use bindery_engine::tokens::{TokenCount, estimate, of_bytes};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, fail, plan, say};

const HEAD: &str = "user: <summary_of_earlier_work>";

fn costing(mut acts: Vec<Act>, total: u64) -> Vec<Act> {
    acts.push(Act::Cost(total));
    acts
}

fn small(script: Vec<Vec<Act>>) -> Setting {
    Setting::new(script).profile(|profile| profile.window = 10_000)
}

fn asks(stage: &Stage) -> usize {
    stage.model.requests.lock().expect("requests").len()
}

/// Which requests were for a summary.
fn summaries(stage: &Stage) -> Vec<usize> {
    let requests = stage.model.requests.lock().expect("requests");
    let for_summary = |(at, purpose)| (purpose == Some("compact")).then_some(at);
    requests.iter().map(|request| request.purpose).enumerate().filter_map(for_summary).collect()
}

#[test]
fn a_window_is_used_in_part_and_compacted_at_nine_tenths() {
    #[rustfmt::skip]
    let table = [
        // window, percent, limit,            used,    compacted at
        (272_000,  95,      None,             258_400, 244_800),
        (272_000,  95,      Some(200_000),    258_400, 200_000),
        (272_000,  95,      Some(260_000),    258_400, 244_800),
        (10_000,   100,     Some(0),          10_000,  0),
        (u64::MAX, 95,      None,             u64::MAX / 100, u64::MAX / 10),
    ];
    for (window, effective_percent, auto_compact_limit, used, at) in table {
        let profile =
            Profile { window, effective_percent, auto_compact_limit, ..Profile::unknown("m") };
        assert_eq!((profile.effective_window(), profile.compact_at()), (used, at), "{window}");
    }
}

#[test]
fn sealed_thoughts_cost_three_quarters_of_their_length_but_for_their_envelope() {
    let sealed = |bytes: usize| {
        let encrypted_content = Some("x".repeat(bytes));
        estimate(&Item::Reasoning(Reasoning { encrypted_content, ..Reasoning::default() }).into())
    };
    assert_eq!((sealed(0), sealed(800), sealed(8_000)), (0, 0, of_bytes(6_000 - 650)));
}

#[test]
fn other_items_cost_a_token_for_four_bytes_of_their_json() {
    let item = json!({ "type": "function_call", "name": "f", "arguments": "x".repeat(4_000),
        "call_id": "c1" });
    let cost = estimate(&HistoryItem::from_value(item.clone()));
    assert_eq!(cost, of_bytes(item.to_string().len()));
    let unknown = json!({ "type": "hologram", "data": "x".repeat(4_000) });
    let cost = estimate(&HistoryItem::from_value(unknown.clone()));
    assert_eq!(cost, of_bytes(unknown.to_string().len()));
}

#[tokio::test]
async fn a_turn_begins_with_a_summary_from_the_limit_on() {
    #[rustfmt::skip]
    let table = [
        // used, limit,        summed up
        (8_999,  None,         false),
        (9_000,  None,         true),
        (499,    Some(500),    false),
        (500,    Some(500),    true),
        (8_999,  Some(9_500),  false),
        (9_000,  Some(9_500),  true),
    ];
    for (used, limit, summed) in table {
        let stage = small(vec![costing(say("A"), used), say("S"), say("back")])
            .profile(|profile| profile.auto_compact_limit = limit)
            .open();
        stage.turn("one").await;
        // The answer was the last of its turn: nothing has to be made room for yet.
        assert_eq!((asks(&stage), stage.count("warning")), (1, 0), "{used} {limit:?}");
        stage.turn("two").await;
        let want: &[usize] = if summed { &[1] } else { &[] };
        assert_eq!(summaries(&stage), want, "{used} {limit:?}");
        assert_eq!(stage.count("warning"), want.len(), "{used} {limit:?}");
    }
}

#[tokio::test]
async fn within_a_turn_the_outputs_since_the_last_answer_count_too() {
    for (used, summed) in [(8_900, false), (8_990, true), (9_000, true)] {
        let calling = vec![call("c1", "update_plan", &plan()), Act::Cost(used)];
        let stage = small(vec![calling, say("S"), say("done")]).open();
        assert_eq!(stage.turn("one").await["status"], "completed");
        let want: &[usize] = if summed { &[1] } else { &[] };
        assert_eq!(summaries(&stage), want, "{used}");
    }
}

#[tokio::test]
async fn within_a_turn_waiting_words_are_a_reason_to_go_on() {
    let mut slow = costing(say("A"), 9_500);
    slow.push(Act::Gate);
    let stage = small(vec![slow, say("S"), say("B")]).open();
    let turn = stage.thread.start_turn(TurnInput::text("one")).await.unwrap();
    stage.wait("item/agentMessage/delta", 1).await;
    stage.thread.steer(&turn, TurnInput::text("two")).await.unwrap();
    stage.model.open_gate();
    assert_eq!(stage.ended(0).await["status"], "completed");
    assert_eq!(summaries(&stage), [1]);
    assert_eq!(stage.input_lines(2).last().unwrap(), "user: two");
}

/// A model whose window is in its name.
struct Sized(PlainPrompter);

impl Prompter for Sized {
    fn profile(&self, model: &str) -> Profile {
        let window = model.parse().unwrap_or(100_000);
        Profile { window, ..self.0.profile(model) }
    }

    fn base(&self, standing: &Standing) -> String {
        self.0.base(standing)
    }

    fn context<'a>(
        &'a self,
        standing: &'a Standing,
        told: Option<&'a Value>,
    ) -> BoxFuture<'a, Context> {
        self.0.context(standing, told)
    }

    fn user<'a>(
        &'a self,
        standing: &'a Standing,
        input: &'a [Open<UserInput>],
    ) -> BoxFuture<'a, Vec<HistoryItem>> {
        self.0.user(standing, input)
    }

    fn compaction(&self) -> String {
        self.0.compaction()
    }
}

#[tokio::test]
async fn a_smaller_model_begins_with_a_summary() {
    for (model, summed) in [("10000", true), ("50000", false)] {
        let mut setting = Setting::new(vec![costing(say("A"), 20_000), say("S"), say("back")]);
        let plain = PlainPrompter { profile: setting.profile.clone() };
        setting.prompter = Some(Arc::new(Sized(plain)));
        let stage = setting.open();
        stage.turn("one").await;
        let overrides = Overrides { model: Some(model.to_owned()), ..Overrides::default() };
        let input = TurnInput { overrides, ..TurnInput::text("two") };
        stage.thread.start_turn(input).await.unwrap();
        stage.ended(1).await;
        let want: &[usize] = if summed { &[1] } else { &[] };
        assert_eq!(summaries(&stage), want, "{model}");
    }
}

#[tokio::test]
async fn a_summary_is_asked_for_under_the_same_base_with_everything_and_no_tools() {
    let stage = Setting::new(vec![vec![call("c1", "update_plan", &plan())], say("A"), say("S")])
        .change(|settings| {
            settings.standing.base_instructions = Some("The base.".to_owned());
            settings.standing.developer_instructions = Some("Be brief.".to_owned());
            settings.standing.effort = Some("high".to_owned());
        })
        .open();
    stage.turn("one").await;
    drop(stage.thread.compact().await.unwrap());
    stage.ended(1).await;
    let lines = stage.input_lines(2);
    let (ask, before) = lines.split_last().unwrap();
    assert_eq!(
        before,
        [
            "developer: Be brief.",
            "user: one",
            "call c1 update_plan",
            "output c1 Plan updated",
            "assistant: A",
        ]
    );
    assert!(ask.starts_with("user: Sum up the work so far"), "{ask}");
    let requests = stage.model.requests.lock().expect("requests");
    assert_eq!((requests[2].base.as_str(), &requests[2].tools), ("The base.", &Vec::new()));
    assert_eq!(requests[2].base, requests[1].base);
    assert_eq!((requests[2].model.as_str(), requests[2].effort.as_deref()), ("m", Some("high")));
    assert_eq!((requests[2].purpose, requests[1].purpose), (Some("compact"), None));
}

#[tokio::test]
async fn before_a_turn_no_context_is_put_in_and_the_turn_tells_it_again() {
    let stage = small(vec![costing(say("A"), 9_500), say("S"), say("back")])
        .change(|settings| {
            settings.standing.developer_instructions = Some("Be brief.".to_owned());
        })
        .open();
    stage.turn("one").await;
    stage.turn("two").await;
    let lines = stage.input_lines(2);
    assert_eq!(lines[0], "user: one");
    assert!(lines[1].starts_with(HEAD), "{lines:?}");
    assert_eq!(lines[2..], ["developer: Be brief.", "user: two"]);
    let entries = stage.book.entries.lock().expect("book");
    let kept = entries.iter().find_map(|entry| match entry {
        Entry::Compacted { history, .. } => Some(json!(history)),
        _ => None,
    });
    let kept = kept.expect("a compaction");
    let roles: Vec<&Value> = kept.as_array().unwrap().iter().map(|item| &item["role"]).collect();
    assert_eq!(roles, ["user", "user"], "{kept:#}");
}

#[tokio::test]
async fn the_last_words_of_the_model_are_the_summary_and_none_is_said_so() {
    let mut twice = say("A draft.");
    twice.extend(say("The summary."));
    for (acts, want) in [(twice, "\n\nThe summary.\n"), (vec![], "\n\n(no summary available)\n")] {
        let stage = Stage::new(vec![say("A"), acts, say("back")]);
        stage.turn("one").await;
        drop(stage.thread.compact().await.unwrap());
        assert_eq!(stage.ended(1).await["status"], "completed");
        stage.turn("two").await;
        let summary = &stage.input_lines(2)[1];
        assert!(summary.contains(want) && !summary.contains("A draft."), "{summary}");
    }
}

#[tokio::test]
async fn summaries_and_wrappers_of_any_version_are_no_words_of_the_user() {
    let wrappers = [
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        "<environments>\n</environments>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<user_instructions>\n\nx\n\n</user_instructions>",
        "<permissions instructions>\nx\n</permissions instructions>",
        "<turn_aborted>\nx\n</turn_aborted>",
        "<user_shell_command>\nx\n</user_shell_command>",
        "<user_action>\nx\n</user_action>",
        "<skill>\nx\n</skill>",
        "<git_context>\nx\n</git_context>",
        "<summary_of_earlier_work>\nx\n</summary_of_earlier_work>",
        // How a summary begins that Codex has made.
        "Another language model started to solve this problem and produced a summary of its \
         thinking process. You also have access to x\nx",
    ];
    let history: Vec<HistoryItem> = std::iter::once("my words")
        .chain(wrappers)
        .map(|text| Message::text(Role::User, text).into())
        .collect();
    let stage = Setting::new(vec![say("S"), say("back")])
        .change(move |settings| settings.history = history)
        .open();
    drop(stage.thread.compact().await.unwrap());
    stage.ended(0).await;
    stage.turn("two").await;
    let lines = stage.input_lines(1);
    assert_eq!((lines[0].as_str(), lines[2].as_str()), ("user: my words", "user: two"));
    assert!(lines[1].starts_with(HEAD), "{lines:?}");
}

#[tokio::test]
async fn a_summary_that_does_not_fit_is_asked_for_until_one_item_is_left() {
    let acts = vec![call("c1", "update_plan", &plan())];
    let stage = Stage::new(vec![acts, say("A"), fail(Fault::ContextOverflow)]);
    stage.turn("one").await;
    drop(stage.thread.compact().await.unwrap());
    assert_eq!(stage.ended(1).await["error"]["codexErrorInfo"], "contextWindowExceeded");
    // The user's words, the call with its output, the answer: the last is not left out.
    assert_eq!(summaries(&stage), [2, 3, 4]);
    assert_eq!(stage.input_lines(4)[0], "assistant: A");
    stage.model.then(vec![say("back")]);
    stage.turn("two").await;
    assert_eq!(stage.input_lines(5)[0], "user: one", "the history is as it was");
}

#[tokio::test]
async fn another_fault_in_a_summary_ends_the_turn_and_keeps_the_history() {
    let stage = Stage::new(vec![say("A"), fail(Fault::Quota), say("back")]);
    stage.turn("one").await;
    drop(stage.thread.compact().await.unwrap());
    assert_eq!(stage.ended(1).await["error"]["codexErrorInfo"], "usageLimitExceeded");
    assert_eq!(summaries(&stage), [1]);
    stage.turn("two").await;
    assert_eq!(stage.input_lines(2), ["user: one", "assistant: A", "user: two"]);
}

#[tokio::test]
async fn after_a_summary_the_tokens_are_counted_anew() {
    let words = "x".repeat(4_000);
    let stage = small(vec![costing(say("A"), 9_500), say("S"), costing(say("B"), 300), say("C")]);
    let stage = stage.open();
    stage.turn(&words).await;
    stage.turn("two").await;
    stage.turn("three").await;
    assert_eq!(summaries(&stage), [1], "once is enough");
    let usage = stage.thread.snapshot().await.usage;
    assert_eq!(usage.total.total_tokens, 9_500 + 120 + 300 + 120);
    let last = TokenCount {
        input_tokens: 100,
        output_tokens: 20,
        total_tokens: 120,
        ..TokenCount::default()
    };
    assert_eq!(usage.last, last);
}

#[tokio::test]
async fn the_users_words_are_kept_up_to_twenty_thousand_tokens_or_half_of_a_small_limit() {
    for (window, kept) in [(272_000, 20_000), (10_000, 4_500)] {
        let stage = Setting::new(vec![say("A"), say("S"), say("back")])
            .profile(|profile| profile.window = window)
            .open();
        stage.turn(&"x".repeat(200_000)).await;
        drop(stage.thread.compact().await.unwrap());
        stage.ended(1).await;
        stage.turn("two").await;
        let words = stage.input_lines(2)[0].len() - "user: ".len();
        assert_eq!(of_bytes(words), kept, "{window}");
    }
}
