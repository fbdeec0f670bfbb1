//! Events and questions of other threads and turns, and questions nobody can answer.

use std::sync::{Arc, Mutex};

use bindery_client::model::{LanguageModel, ModelSettings};
use bindery_client::turn::TurnRequest;
use bindery_core::interrupt::{Answer, Decision, Interrupt};
use bindery_core::spec::Spec;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_testkit::app_server::{Script, Step, Turn, initialize, start_thread};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{Scene, answers, connect, play, text_of, turn};
use crate::stage::Told;

/// A whole foreign turn that says `LEAK` in every way.
fn foreign(turn: &Turn) -> Vec<Step> {
    let command = json!({
        "type": "commandExecution", "id": "LEAK-c", "command": "LEAK", "cwd": "/",
        "status": "completed", "aggregatedOutput": "LEAK", "exitCode": 0,
    });
    let info = json!({ "id": turn.id, "status": "inProgress", "items": [] });
    let started = turn.notify("turn/started", json!({ "turn": info }));
    let plan = json!({ "plan": [{ "step": "LEAK", "status": "pending" }] });
    [
        vec![started],
        turn.begin_to_say("LEAK-m", "LEAK"),
        turn.say("m", "LEAK"),
        turn.item(command.clone(), command, Vec::new()),
        vec![
            turn.notify("turn/plan/updated", plan),
            turn.notify("turn/diff/updated", json!({ "diff": "LEAK" })),
            turn.notify("turn/danced", json!({ "LEAK": 1 })),
        ],
        turn.fail("LEAK", json!("other")),
    ]
    .concat()
}

#[tokio::test]
async fn nothing_of_other_threads_and_turns_leaks_into_a_turn() {
    let turn = turn();
    let mut said = turn.say("m", "Hello, world.");
    let end = said.split_off(2);
    let steps = [
        foreign(&Turn::new("thread-9", "turn-9")),
        said,
        foreign(&Turn::new("thread-1", "turn-9")),
        foreign(&Turn::new("thread-9", "turn-1")),
        end,
        foreign(&Turn::new("thread-1", "turn-9")),
        turn.complete(),
        foreign(&Turn::new("thread-1", "turn-9")),
    ];
    let (told, _) = play(steps).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hello, world.", Unified::Stop));
    assert_eq!(told.streamed(), "Hello, world.");
    assert!(!text_of(&told.parts).contains("LEAK"), "{}", text_of(&told.parts));
    let usage = told.generated().usage.unwrap();
    assert_eq!(usage.input_tokens.total, Some(100));
}

#[tokio::test]
async fn a_turn_the_server_started_by_itself_is_not_part_of_the_next() {
    let (first, next) = (turn(), Turn::new("thread-1", "turn-2"));
    let steps = [
        first.begin(),
        first.complete(),
        foreign(&Turn::new("thread-1", "turn-9")),
        next.begin(),
        foreign(&Turn::new("thread-1", "turn-9")),
        next.say("n", "mine"),
        next.complete(),
    ];
    let scene = Scene::open(steps).await;
    for said in ["", "mine"] {
        let told = scene.run(scene.request()).await;
        assert_eq!((told.text().as_str(), told.end()), (said, Unified::Stop));
        assert!(!text_of(&told.parts).contains("LEAK"), "{}", text_of(&told.parts));
    }
    scene.close().await;
}

/// Two turns that name each other's threads as agents: each still hears its own events only.
#[tokio::test]
async fn two_turns_at_a_time_keep_apart() {
    let (a, b) = (Turn::new("thread-1", "turn-1"), Turn::new("thread-2", "turn-2"));
    let names = |turn: &Turn, other: &str| {
        let call = json!({
            "type": "collabAgentToolCall", "id": format!("agent-{other}"), "tool": "sendInput",
            "status": "completed", "receiverThreadIds": [other],
        });
        turn.item(call.clone(), call, Vec::new())
    };
    let mut steps = vec![start_thread("thread-2"), a.begin(), b.begin()];
    steps.extend([names(&a, "thread-2"), names(&b, "thread-1")]);
    for _ in 0..50 {
        steps.push(vec![a.delta("ma", "a"), b.delta("mb", "b")]);
    }
    steps.extend([a.complete(), vec![b.delta("mb", "!")], b.complete()]);
    let scene = Scene::open(steps).await;
    let other = scene.client.start_thread(&ThreadStart::default()).await.unwrap().thread.id;
    let first = scene.client.start_turn(scene.request()).await.unwrap();
    let second = scene.client.start_turn(TurnRequest::new(other, "go")).await.unwrap();
    let (first, second) = tokio::join!(Told::of(first), Told::of(second));
    assert_eq!((first.streamed(), first.end()), ("a".repeat(50), Unified::Stop));
    assert_eq!((second.streamed(), second.end()), ("b".repeat(50) + "!", Unified::Stop));
    assert!(!text_of(&first.parts).contains("mb") && !text_of(&second.parts).contains("ma"));
    scene.close().await;
}

/// Asks for approval of a command under these names.
fn ask(id: u64, thread: &str, turn: &str) -> Vec<Step> {
    let params =
        json!({ "threadId": thread, "turnId": turn, "itemId": "c", "command": "rm -rf /" });
    let method = "item/commandExecution/requestApproval";
    vec![Step::request(json!(id), method, params), Step::ExpectAnswer { id: json!(id) }]
}

#[tokio::test]
async fn what_nobody_can_answer_is_refused_and_the_turn_goes_on() {
    let turn = turn();
    let unknown = |id: u64, method: &str, params: Value| {
        vec![Step::request(json!(id), method, params), Step::ExpectAnswer { id: json!(id) }]
    };
    let ours = json!({ "threadId": "thread-1", "turnId": "turn-1" });
    let steps = [
        turn.begin(),
        unknown(11, "item/dance/request", ours.clone()),
        unknown(12, "item/dance/request", json!({})),
        unknown(13, "item/tool/call", ours),
        unknown(14, "attestation/generate", json!({})),
        ask(15, "nobody", "turn-1"),
        ask(16, "thread-1", "turn-9"),
        turn.say("m", "Hi"),
        turn.complete(),
    ];
    let scene = Scene::open(steps).await;
    let mut request = scene.request();
    request.answerer = Arc::new(async |asked: Interrupt| panic!("{asked:?}"));
    let told = scene.run(request).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hi", Unified::Stop));
    assert!(!text_of(&told.parts).contains("rm -rf"));
    assert_eq!(told.customs("codex.unknown").len(), 2);
    let outcome = scene.close().await;
    for id in 11..=16 {
        let answer = answers(&outcome, id);
        assert_eq!((answer.len(), &answer[0]["error"]["code"]), (1, &json!(-32601)), "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_that_panics_is_a_no() {
    let asked = turn().ask_for_command(5, "c", "ls");
    let heard = vec![Step::ExpectAnswer { id: json!(5) }];
    let scene = Scene::open([turn().begin(), asked, heard, turn().complete()]).await;
    let mut request = scene.request();
    request.answerer = Arc::new(async |_: Interrupt| panic!("no answer"));
    assert_eq!(scene.run(request).await.end(), Unified::Stop);
    assert_eq!(answers(&scene.close().await, 5)[0]["result"]["decision"], "decline");
}

#[tokio::test]
async fn an_answer_after_the_question_was_settled_is_not_sent() {
    let settled = json!({ "threadId": "thread-1", "requestId": 5 });
    let steps = [
        turn().begin(),
        turn().ask_for_command(5, "c", "ls"),
        vec![Step::notify("serverRequest/resolved", settled)],
        turn().say("m", "Hi"),
        turn().complete(),
    ];
    let scene = Scene::open(steps).await;
    let (gate, asked) = (Arc::new(Notify::new()), Arc::new(Mutex::new(0)));
    let mut request = scene.request();
    let (waiting, count) = (gate.clone(), asked.clone());
    request.answerer = Arc::new(move |_: Interrupt| {
        *count.lock().unwrap() += 1;
        let gate = waiting.clone();
        async move {
            gate.notified().await;
            Some(Answer::decision(Decision::Accept))
        }
    });
    let told = scene.run(request).await;
    gate.notify_waiters();
    assert_eq!((told.text().as_str(), told.end()), ("Hi", Unified::Stop));
    assert!(*asked.lock().unwrap() <= 1);
    let outcome = scene.close().await;
    assert_eq!(answers(&outcome, 5), Vec::<&Value>::new());
}

#[tokio::test]
async fn a_question_that_comes_with_the_end_is_refused() {
    let params =
        json!({ "threadId": "thread-1", "turnId": "turn-1", "itemId": "q", "questions": [] });
    let late = vec![
        Step::request(json!(6), "item/tool/requestUserInput", params),
        // The refusal and `thread/list`, our fourth request, come in either order.
        Step::Receive { count: 2 },
        Step::stray_reply(json!(4), json!({ "data": [] })),
    ];
    let scene = Scene::open([turn().begin(), turn().complete(), late]).await;
    assert_eq!(scene.run(scene.request()).await.end(), Unified::Stop);
    scene.client.list_threads(&Map::new()).await.unwrap();
    assert!(answers(&scene.close().await, 6)[0].get("error").is_some());
}

#[tokio::test]
async fn a_codex_that_takes_no_history_is_told_it_in_words() {
    let message = "Invalid request: unknown variant `thread/inject_items`, expected one of `x`";
    let refused = Step::Refuse { code: -32600, message: message.to_owned() };
    let (client, scripted) = connect(Script::new([
        initialize(),
        start_thread("thread-1"),
        vec![Step::expect("thread/inject_items"), refused],
        start_thread("thread-1"),
        turn().begin(),
        turn().say("m", "Hi"),
        turn().complete(),
    ]))
    .await;
    let model = LanguageModel::new(client.unwrap(), ModelSettings::default());
    let options = serde_json::from_value(json!({ "prompt": [
        { "role": "user", "content": "my name is Ann" },
        { "role": "assistant", "content": "hello Ann" },
        { "role": "user", "content": "who am I" } ] }));
    let generated = model.generate(&options.unwrap(), Spec::V4).await.unwrap();
    assert_eq!(generated.content.last().unwrap()["text"], "Hi");
    assert_eq!(generated.warnings.len(), 1, "{:?}", generated.warnings);
    drop(model);
    let outcome = scripted.outcome().await;
    let asked = outcome.received.iter().find(|message| message["method"] == "turn/start").unwrap();
    let input = asked["params"]["input"].to_string();
    for text in ["my name is Ann", "hello Ann", "who am I"] {
        assert!(input.contains(text), "{text}: {input}");
    }
}
