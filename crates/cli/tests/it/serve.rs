//! The daemon on Codex and on the engine: turns and questions outlive clients, workers and daemons.

use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::stage::HANG;
use crate::web::{Heard, Web, sketch, text};

bindery_testkit::on_both! {
    a_turn_is_told_to_whoever_comes_and_whenever,
    a_turn_outlives_its_client_and_the_daemon_and_is_told_once,
    an_answer_counts_once_and_only_if_it_was_offered,
    no_answer_in_time_means_no,
    a_worker_that_dies_ends_its_turn_with_the_reason_and_the_question_is_asked_again,
    turns_of_a_thread_wait_for_each_other_and_a_key_counts_once,
    a_worker_whose_daemon_does_not_come_back_is_ended,
    the_tools_of_a_caller_are_asked_and_answered,
}

fn is(kind: &str) -> impl Fn(&Heard) -> bool {
    move |heard| heard.data["type"] == kind || heard.event == kind
}

async fn a_turn_is_told_to_whoever_comes_and_whenever() {
    let daemon = Daemon::new(vec![Reply::new([Step::chunked("one two three", 2)])]);
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "go").await;
    let early = daemon.web.follow(&turn, 0).await.rest().await;
    let late = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(early, late);
    assert_eq!(text(&late), "one two three");
    insta::assert_snapshot!(
        sketch(&late),
        @"codex.user-message text-start text-delta text-end finish completed"
    );
    let numbers: Vec<u64> = late.iter().map(|heard| heard.id).collect();
    assert_eq!(numbers, (1..=late.len() as u64).collect::<Vec<_>>());
    let half = daemon.web.follow(&turn, 4).await.rest().await;
    assert_eq!(half, late[4..]);
    let path = format!("/v1/turns/{turn}/events?after={}", late.len());
    assert_eq!(daemon.web.get(&path).await.0, 204);
    let (_, read) = daemon.web.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(read["state"], "completed");
}

/// One message in two halves, with a gate between them.
fn halves(first: &str, second: &str) -> Vec<Step> {
    let message = |text: &str| {
        json!({
            "type": "message", "role": "assistant", "id": "msg_halves", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        })
    };
    let edge = |kind: &str, text: &str| Step::Event {
        event: json!({ "type": kind, "output_index": 0, "item": message(text) }),
    };
    let delta = |text: &str| Step::Event {
        event: json!({
            "type": "response.output_text.delta", "item_id": "msg_halves", "output_index": 0,
            "content_index": 0, "delta": text,
        }),
    };
    vec![
        edge("response.output_item.added", ""),
        delta(first),
        Step::gate("half"),
        delta(second),
        edge("response.output_item.done", &format!("{first}{second}")),
    ]
}

fn yes() -> Value {
    json!({ "kind": "decision", "decision": "accept" })
}

/// A daemon whose turn has asked for a command, and the question's name.
async fn asking(settings: &str) -> (Daemon, String, String, String) {
    let run = |call: &str| Reply::new([Step::exec("echo ran > ran", call)]);
    let script = vec![
        Reply::text("fine").when_output_of("c2"),
        run("c2").when_user("cut short"),
        Reply::text("fine").when_output_of("c1"),
        run("c1"),
    ];
    let daemon = Daemon::with(script, settings);
    let thread = daemon.careful().await;
    let turn = daemon.say(&thread, "go").await;
    let seen = daemon.web.follow(&turn, 0).await.until(is("interrupt")).await;
    let token = seen.last().unwrap().data["token"].as_str().unwrap().to_owned();
    (daemon, thread, turn, token)
}

async fn answer(web: &Web, token: &str, answer: Value) -> (u16, String) {
    let (status, said) = web.post(&format!("/v1/interrupts/{token}/answer"), answer).await;
    (status, said["code"].as_str().unwrap_or("fine").to_owned())
}

async fn a_turn_outlives_its_client_and_the_daemon_and_is_told_once() {
    insta::assert_snapshot!(outlived(json!({})).await);
}

/// Codex numbers what was said in such a thread, and has forgotten the command by the end.
#[tokio::test]
async fn a_turn_of_a_thread_of_the_older_form_is_told_once_too() {
    let plain = outlived(json!({})).await;
    let older = json!({ "threadExtra": { "historyMode": "legacy" } });
    assert_eq!(outlived(older).await, plain);
}

/// The daemon ends twice in the middle of a turn, in a thread with these settings besides.
async fn outlived(more: Value) -> String {
    let first = [Step::chunked("I shall run it. ", 3), Step::exec("echo ran > ran", "c1")];
    let mut daemon = Daemon::new(vec![
        Reply::new(halves("It ", "is done.")).when_output_of("c1"),
        Reply::new(first),
    ]);
    let mut settings = json!({ "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
    settings.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let thread = daemon.thread(json!({ "settings": settings })).await;
    let turn = daemon.say(&thread, "go").await;
    // The first client sees the question and is gone.
    let mut events = daemon.web.follow(&turn, 0).await;
    let seen = events.until(is("interrupt")).await;
    let token = seen.last().unwrap().data["token"].as_str().unwrap().to_owned();
    drop(events);
    let workers = daemon.workers();
    daemon.kill();
    daemon.again();
    // The question is still there, under its old name, and a second client answers it.
    let (_, open) = daemon.web.get("/v1/interrupts").await;
    assert_eq!(open["data"][0]["token"], json!(token));
    assert_eq!(answer(&daemon.web, &token, yes()).await, (200, "fine".to_owned()));
    let mut events = daemon.web.follow(&turn, seen.len() as u64).await;
    let is_it = |heard: &Heard| heard.data["delta"] == "It ";
    let more = events.until(is_it).await;
    daemon.kill();
    daemon.stage.model.open("half");
    daemon.again();
    // A third reads it whole, from the beginning.
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all[..seen.len() + more.len()], [seen, more].concat());
    assert_eq!(daemon.workers(), workers);
    assert!(daemon.stage.codex.project().join("ran").exists());
    assert_eq!(text(&all), "I shall run it. It is done.");
    let (_, record) = daemon.web.get(&format!("/v1/interrupts/{token}")).await;
    assert_eq!(record["answer"], yes());
    sketch(&all)
}

async fn an_answer_counts_once_and_only_if_it_was_offered() {
    let (daemon, thread, turn, token) = asking("").await;
    let other = daemon.web.with(&daemon.tenant(&["add", "other"]));
    let nobody = daemon.web.with("bnd_nobody");
    let refused = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(answer(&nobody, &token, yes()).await, refused(401, "unauthorized"));
    assert_eq!(answer(&other, &token, yes()).await, refused(404, "not_found"));
    assert_eq!(answer(&daemon.web, "ask_none", yes()).await, refused(404, "not_found"));
    let rule = json!({ "kind": "decision", "decision": { "acceptWithRule": ["rm", "-rf"] } });
    assert_eq!(answer(&daemon.web, &token, rule).await, refused(422, "answer_unfit"));
    let tool = json!({ "kind": "toolResult", "content": [], "success": true });
    assert_eq!(answer(&daemon.web, &token, tool).await, refused(422, "answer_unfit"));
    for path in [format!("/v1/threads/{thread}"), format!("/v1/turns/{turn}")] {
        assert_eq!(other.get(&path).await.0, 404, "{path}");
    }
    assert_eq!(other.get("/v1/interrupts").await.1["data"], json!([]));
    assert_eq!(other.get("/v1/interrupts?all=true").await.0, 403);
    assert_eq!(other.get("/v1/threads").await.1["data"], json!([]));
    assert!(!daemon.stage.codex.project().join("ran").exists());
    assert_eq!(answer(&daemon.web, &token, yes()).await, refused(200, "fine"));
    assert_eq!(answer(&daemon.web, &token, yes()).await, refused(409, "interrupt_answered"));
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed");
    assert_eq!(text(&all), "fine");
}

async fn no_answer_in_time_means_no() {
    let (daemon, _, turn, token) = asking("[turns]\nanswer_seconds = 1").await;
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed");
    assert!(!daemon.stage.codex.project().join("ran").exists());
    let late = answer(&daemon.web, &token, yes()).await;
    assert_eq!(late, (409, "interrupt_expired".to_owned()));
}

async fn a_worker_that_dies_ends_its_turn_with_the_reason_and_the_question_is_asked_again() {
    let (daemon, thread, turn, token) = asking("").await;
    let worker = rustix::process::Pid::from_raw(daemon.workers()[0]).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    let end = &all.last().unwrap().data;
    assert_eq!((&end["state"], &end["resumable"]), (&json!("failed"), &json!(true)));
    assert_eq!(end["error"]["code"], "worker_gone");
    assert_eq!(end["error"]["message"], "the worker ended: signal 9 (SIGKILL)");
    let late = answer(&daemon.web, &token, yes()).await;
    assert_eq!(late, (409, "interrupt_over".to_owned()));
    assert!(!daemon.stage.codex.project().join("ran").exists());
    let path = format!("/v1/interrupts/{token}/ask-again");
    let key = [("idempotency-key", "again")];
    let (status, again) = daemon.web.ask("POST", &path, Some(json!({})), &key).await;
    assert_eq!(status, 201, "{again}");
    let (status, same) = daemon.web.ask("POST", &path, Some(json!({})), &key).await;
    assert_eq!((status, &same["id"]), (200, &again["id"]));
    let second = again["id"].as_str().unwrap();
    let seen = daemon.web.follow(second, 0).await.until(is("interrupt")).await;
    let token = seen.last().unwrap().data["token"].as_str().unwrap();
    assert_eq!(answer(&daemon.web, token, yes()).await.0, 200);
    let all = daemon.web.follow(second, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed");
    assert!(daemon.stage.codex.project().join("ran").exists());
    let (_, turns) = daemon.web.get(&format!("/v1/threads/{thread}/turns")).await;
    assert_eq!(turns["data"].as_array().unwrap().len(), 2);
}

async fn turns_of_a_thread_wait_for_each_other_and_a_key_counts_once() {
    let first = Reply::new([Step::gate("first"), Step::text("one")]);
    let daemon = Daemon::new(vec![first, Reply::text("two")]);
    let thread = daemon.thread(json!({})).await;
    let one = daemon.say(&thread, "first").await;
    let path = format!("/v1/threads/{thread}/turns");
    let key = [("idempotency-key", "k1")];
    let ask = |input: &str| {
        let (web, path, body) = (daemon.web.clone(), path.clone(), json!({ "input": input }));
        async move { web.ask("POST", &path, Some(body), &key).await }
    };
    let (status, two) = ask("second").await;
    assert_eq!((status, &two["state"]), (201, &json!("queued")));
    let (status, same) = ask("second").await;
    assert_eq!((status, &same["id"]), (200, &two["id"]));
    assert_eq!(ask("another").await.1["code"], "idempotency_key_reused");
    let three = daemon.say(&thread, "third").await;
    let stop = format!("/v1/turns/{three}/interrupt");
    assert_eq!(daemon.web.post(&stop, json!({})).await.0, 202);
    let gone = daemon.web.follow(&three, 0).await.rest().await;
    assert_eq!(sketch(&gone), "finish interrupted");
    assert_eq!(daemon.web.post(&stop, json!({})).await.1["code"], "turn_over");
    daemon.stage.model.open("first");
    assert_eq!(text(&daemon.web.follow(&one, 0).await.rest().await), "one");
    let two = two["id"].as_str().unwrap();
    assert_eq!(text(&daemon.web.follow(two, 0).await.rest().await), "two");
}

async fn a_worker_whose_daemon_does_not_come_back_is_ended() {
    let (mut daemon, _, turn, token) = asking("[workers]\norphan_seconds = 2").await;
    let worker = daemon.workers()[0];
    assert_eq!(daemon.terminate(), Some(0));
    let process = format!("/proc/{worker}");
    assert!(std::path::Path::new(&process).exists(), "the worker lives on for a while");
    let ended = async {
        while std::path::Path::new(&process).exists() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(HANG, ended).await.expect("the guard ends the worker");
    daemon.again();
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    let end = &all.last().unwrap().data;
    assert_eq!((&end["state"], &end["resumable"]), (&json!("failed"), &json!(true)));
    let why = "the worker ended: its guard ended it: no daemon came back within 2 s";
    assert_eq!(end["error"], json!({ "code": "worker_gone", "message": why }));
    assert_eq!(all.iter().filter(|heard| heard.data["type"] == "error").count(), 1);
    assert_eq!(answer(&daemon.web, &token, yes()).await, (409, "interrupt_over".to_owned()));
}

async fn the_tools_of_a_caller_are_asked_and_answered() {
    let call = Step::call("weather", json!({ "city": "Rome" }), "c1");
    let daemon =
        Daemon::new(vec![Reply::text("sunny then").when_output_of("c1"), Reply::new([call])]);
    let tools = json!([{
        "type": "function", "name": "weather", "description": "The weather",
        "inputSchema": { "type": "object", "properties": { "city": { "type": "string" } } },
    }]);
    let thread = daemon.thread(json!({ "tools": tools })).await;
    let turn = daemon.say(&thread, "go").await;
    let mut events = daemon.web.follow(&turn, 0).await;
    let seen = events.until(is("interrupt")).await;
    let asked = &seen.last().unwrap().data;
    assert_eq!(asked["ask"]["tool"], "weather");
    let result = json!({
        "kind": "toolResult", "success": true,
        "content": [{ "type": "inputText", "text": "sunny" }],
    });
    let token = asked["token"].as_str().unwrap();
    assert_eq!(answer(&daemon.web, token, result).await.0, 200);
    let rest = events.rest().await;
    assert_eq!(text(&rest), "sunny then");
}
