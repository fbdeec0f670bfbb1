//! What else a thread and a turn can do over HTTP, on Codex and on the engine.

use bindery_testkit::model::{Reply, Script, Step};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::web::{Heard, sketch, text};

bindery_testkit::on_both! {
    a_fork_goes_its_own_way,
    what_is_put_away_takes_no_turns_until_it_is_taken_out,
    a_thread_is_made_shorter,
    changes_are_reviewed,
    a_turn_that_runs_is_added_to_and_stopped,
    an_image_that_was_sent_is_seen_and_an_answer_has_the_schema_asked_for,
    a_key_counts_once_however_many_come_at_a_time,
    a_polite_end_lets_readers_go_and_turns_on,
    so_many_turns_wait_and_no_more,
}

async fn whole(daemon: &Daemon, turn: &Value) -> Vec<Heard> {
    daemon.web.follow(turn["id"].as_str().unwrap(), 0).await.rest().await
}

async fn told(daemon: &Daemon, thread: &str, text: &str) -> Vec<Heard> {
    let turn = daemon.say(thread, text).await;
    daemon.web.follow(&turn, 0).await.rest().await
}

async fn act(daemon: &Daemon, thread: &str, what: &str, body: Value) -> (u16, Value) {
    daemon.web.post(&format!("/v1/threads/{thread}/{what}"), body).await
}

/// The last thing the model was asked.
fn asked(daemon: &Daemon) -> String {
    daemon.stage.model.bodies().pop().unwrap()["input"].to_string()
}

async fn a_fork_goes_its_own_way() {
    let daemon = Daemon::new(Script::always("ok"));
    let thread = daemon.thread(json!({ "title": "first" })).await;
    let (status, empty) = act(&daemon, &thread, "fork", json!({})).await;
    assert_eq!((status, &empty["code"]), (409, &json!("thread_empty")));
    told(&daemon, &thread, "apples").await;
    let (status, fork) = act(&daemon, &thread, "fork", json!({ "title": "second" })).await;
    assert_eq!((status, &fork["title"], &fork["sessionId"]), (201, &json!("second"), &Value::Null));
    let fork = fork["id"].as_str().unwrap().to_owned();
    told(&daemon, &fork, "pears").await;
    assert!(asked(&daemon).contains("apples") && asked(&daemon).contains("pears"));
    told(&daemon, &thread, "plums").await;
    assert!(asked(&daemon).contains("apples") && !asked(&daemon).contains("pears"));
    told(&daemon, &fork, "figs").await;
    assert!(asked(&daemon).contains("pears") && !asked(&daemon).contains("plums"));
    let sessions = async |id: &str| {
        daemon.web.get(&format!("/v1/threads/{id}")).await.1["sessionId"]
            .as_str()
            .map(str::to_owned)
    };
    assert_ne!(sessions(&thread).await.unwrap(), sessions(&fork).await.unwrap());
}

async fn what_is_put_away_takes_no_turns_until_it_is_taken_out() {
    let daemon = Daemon::new(Script::always("ok"));
    let thread = daemon.thread(json!({})).await;
    told(&daemon, &thread, "one").await;
    let (status, away) = act(&daemon, &thread, "archive", json!({})).await;
    assert_eq!((status, &away["archived"]), (200, &json!(true)));
    let listed = async |query: &str| {
        let (_, page) = daemon.web.get(&format!("/v1/threads{query}")).await;
        page["data"].as_array().unwrap().len()
    };
    assert_eq!((listed("").await, listed("?archived=true").await), (0, 1));
    let (status, refused) = act(&daemon, &thread, "turns", json!({ "input": "two" })).await;
    assert_eq!((status, &refused["code"]), (409, &json!("thread_archived")));
    assert_eq!(act(&daemon, &thread, "unarchive", json!({})).await.0, 200);
    assert_eq!((listed("").await, listed("?archived=true").await), (1, 0));
    assert_eq!(text(&told(&daemon, &thread, "two").await), "ok");
}

async fn a_thread_is_made_shorter() {
    let daemon = Daemon::new(Script::always("a summary of fruit"));
    let thread = daemon.thread(json!({})).await;
    told(&daemon, &thread, "apples").await;
    let before = daemon.stage.model.bodies().len();
    let (status, turn) = act(&daemon, &thread, "compact", json!({})).await;
    assert_eq!((status, &turn["kind"]), (201, &json!("compact")));
    let all = whole(&daemon, &turn).await;
    assert_eq!(sketch(&all), "finish completed");
    assert_eq!(daemon.stage.model.bodies().len(), before + 1, "the model sums up");
    told(&daemon, &thread, "pears").await;
    assert!(asked(&daemon).contains("a summary of fruit"), "{}", asked(&daemon));
    // What has not run has nothing to be made shorter.
    let empty = daemon.thread(json!({})).await;
    let (_, turn) = act(&daemon, &empty, "compact", json!({})).await;
    let all = whole(&daemon, &turn).await;
    assert_eq!(all.last().unwrap().data["error"]["code"], "thread_empty");
}

async fn changes_are_reviewed() {
    let answer = json!({ "findings": [], "overall_correctness": "patch is correct",
        "overall_explanation": "Nothing is wrong.", "overall_confidence_score": 0.9 });
    let daemon = Daemon::new(Script::always(&answer.to_string()));
    daemon.stage.file("new.txt", "new\n");
    // One that has run, and one that has not.
    let thread = daemon.thread(json!({})).await;
    told(&daemon, &thread, "one").await;
    for thread in [thread, daemon.thread(json!({})).await] {
        let target = json!({ "target": { "type": "uncommittedChanges" } });
        let (status, turn) = act(&daemon, &thread, "review", target).await;
        assert_eq!((status, &turn["kind"]), (201, &json!("review")), "{turn}");
        let all = whole(&daemon, &turn).await;
        assert_eq!(all.last().unwrap().data["state"], "completed", "{all:#?}");
        assert!(format!("{all:?}").contains("Nothing is wrong."), "{all:#?}");
    }
    let thread = daemon.thread(json!({})).await;
    let wrong = json!({ "target": { "type": "nothing" } });
    let (_, turn) = act(&daemon, &thread, "review", wrong).await;
    assert_eq!(whole(&daemon, &turn).await.last().unwrap().data["state"], "failed");
}

async fn a_turn_that_runs_is_added_to_and_stopped() {
    let daemon = Daemon::new(vec![
        Reply::new([Step::text("two"), Step::begin("on and on"), Step::gate("never")])
            .when_user("and pears"),
        Reply::new([Step::gate("first"), Step::text("one")]),
    ]);
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "apples").await;
    daemon.stage.reached("first").await;
    let steer = format!("/v1/turns/{turn}/steer");
    let (status, said) = daemon.web.post(&steer, json!({ "input": "and pears" })).await;
    assert_eq!(status, 202, "{said}");
    assert_eq!(daemon.web.post(&steer, json!({ "input": [] })).await.0, 422);
    daemon.stage.model.open("first");
    daemon.stage.reached("never").await;
    // What the model has said need not have been heard yet.
    let heard_two =
        |heard: &Heard| heard.data["delta"].as_str().is_some_and(|it| it.contains("two"));
    daemon.web.follow(&turn, 0).await.until(heard_two).await;
    let stop = format!("/v1/turns/{turn}/interrupt");
    assert_eq!(daemon.web.post(&stop, json!({})).await.0, 202);
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    let end = &all.last().unwrap().data;
    assert_eq!((&end["state"], &end["resumable"]), (&json!("interrupted"), &json!(true)));
    // Codex 0.166 drops an answer that has not begun when it is steered; the engine lets it end.
    assert!(text(&all).contains("two"), "{}", text(&all));
    let (status, over) = daemon.web.post(&steer, json!({ "input": "late" })).await;
    assert_eq!((status, &over["code"]), (409, &json!("turn_not_running")));
    let (status, over) = daemon.web.post(&stop, json!({})).await;
    assert_eq!((status, &over["code"]), (409, &json!("turn_over")));
}

/// The smallest image there is: one pixel.
const PIXEL: &str = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944\
    4154789c63f8cfc0f01f00050001ff89993d1d0000000049454e44ae426082";

async fn an_image_that_was_sent_is_seen_and_an_answer_has_the_schema_asked_for() {
    let daemon = Daemon::new(Script::always("{\"colour\":\"red\"}"));
    let byte = |at| u8::from_str_radix(&PIXEL[at..at + 2], 16).unwrap();
    let pixel: Vec<u8> = (0..PIXEL.len()).step_by(2).map(byte).collect();
    let (status, upload) = daemon.web.send("/v1/uploads", "image/png", &pixel).await;
    assert_eq!(status, 201, "{upload}");
    let thread = daemon.thread(json!({})).await;
    let schema = json!({ "type": "object", "properties": { "colour": { "type": "string" } },
        "required": ["colour"], "additionalProperties": false });
    let body = json!({ "outputSchema": schema, "input": [
        { "type": "text", "text": "which colour?" },
        { "type": "file", "mediaType": "image/png", "data": upload["data"] }] });
    let (status, turn) = act(&daemon, &thread, "turns", body).await;
    assert_eq!(status, 201, "{turn}");
    let all = whole(&daemon, &turn).await;
    assert_eq!(text(&all), "{\"colour\":\"red\"}", "{all:#?}");
    let body = daemon.stage.model.bodies().pop().unwrap();
    assert_eq!(body["text"]["format"]["schema"], schema, "{}", body["text"]);
    assert!(asked(&daemon).contains("data:image/png;base64,iVBORw0KGgo"), "{}", asked(&daemon));
}

async fn a_key_counts_once_however_many_come_at_a_time() {
    let daemon = Daemon::new(Script::always("ok"));
    let thread = daemon.thread(json!({})).await;
    let path = format!("/v1/threads/{thread}/turns");
    let ask = |key: &'static str, input: String| {
        let (web, path) = (daemon.web.clone(), path.clone());
        let body = json!({ "input": input });
        async move { web.ask("POST", &path, Some(body), &[("idempotency-key", key)]).await }
    };
    let same = join_all((0..12).map(|_| ask("same", "go".to_owned()))).await;
    let made = same.iter().filter(|(status, _)| *status == 201).count();
    assert_eq!(made, 1, "{same:?}");
    assert!(same.iter().all(|(status, turn)| *status <= 201 && turn["id"] == same[0].1["id"]));
    let differing = join_all((0..12).map(|number| ask("other", format!("go {number}")))).await;
    let made = differing.iter().filter(|(status, _)| *status == 201).count();
    let refused = differing.iter().filter(|(_, said)| said["code"] == "idempotency_key_reused");
    assert_eq!((made, refused.count()), (1, 11), "{differing:?}");
    let (_, turns) = daemon.web.get(&path).await;
    assert_eq!(turns["data"].as_array().unwrap().len(), 2);
    assert_eq!(ask("", "go".to_owned()).await.0, 422);
}

async fn a_polite_end_lets_readers_go_and_turns_on() {
    let slow = Reply::new([Step::begin("one "), Step::gate("on"), Step::text("two")]);
    let mut daemon = Daemon::new(vec![slow]);
    let thread = daemon.thread(json!({})).await;
    let turn = daemon.say(&thread, "go").await;
    let mut events = daemon.web.follow(&turn, 0).await;
    let seen = events.until(|heard| heard.data["type"] == "text-delta").await;
    let begin = std::time::Instant::now();
    let (code, rest) = daemon.terminate_while(events.rest_and_whether_it_ended_in_order()).await;
    assert_eq!(code, Some(0));
    assert!(rest.1, "the stream ends, it does not break");
    assert!(begin.elapsed() < std::time::Duration::from_secs(30), "{:?}", begin.elapsed());
    let seen = [seen, rest.0].concat();
    assert!(seen.iter().all(|heard| heard.event != "end"), "{seen:#?}");
    daemon.stage.model.open("on");
    daemon.again();
    let more = daemon.web.follow(&turn, seen.len() as u64).await.rest().await;
    assert_eq!(more.last().unwrap().data["state"], "completed", "{more:#?}");
    assert_eq!([seen, more].concat(), daemon.web.follow(&turn, 0).await.rest().await);
}

async fn so_many_turns_wait_and_no_more() {
    let first = Reply::new([Step::gate("first"), Step::text("one")]);
    let daemon = Daemon::new(vec![first, Reply::text("two").always()]);
    daemon.set_tenant("[limits]\nturns = 1\nqueue = 2\nthread_queue = 1\n");
    let threads = [daemon.thread(json!({})).await, daemon.thread(json!({})).await];
    let running = daemon.say(&threads[0], "go").await;
    daemon.stage.reached("first").await;
    let waiting = daemon.say(&threads[0], "go").await;
    let ask = async |thread: &str| {
        let (status, said) = act(&daemon, thread, "turns", json!({ "input": "go" })).await;
        (status, said["code"].as_str().unwrap_or("fine").to_owned())
    };
    assert_eq!(ask(&threads[0]).await, (429, "limit_reached".to_owned()));
    // The other thread has room, but the tenant runs one turn at a time.
    let other = daemon.say(&threads[1], "go").await;
    let (_, turn) = daemon.web.get(&format!("/v1/turns/{waiting}")).await;
    assert_eq!(turn["state"], "queued");
    daemon.stage.model.open("first");
    for (turn, said) in [(running, "one"), (waiting, "two"), (other, "two")] {
        assert_eq!(text(&daemon.web.follow(&turn, 0).await.rest().await), said);
    }
    assert_eq!(ask(&threads[0]).await, (201, "fine".to_owned()));
}

#[tokio::test]
async fn a_thread_chooses_its_backend() {
    let daemon = Daemon::new(Script::always("ok"));
    for backend in ["engine", "codex", "auto"] {
        let body = json!({ "backend": backend });
        let (_, thread) = daemon.web.post("/v1/threads", body).await;
        let runs = if backend == "auto" { "codex" } else { backend };
        assert_eq!(thread["backend"], runs);
        let all = told(&daemon, thread["id"].as_str().unwrap(), "go").await;
        assert_eq!(text(&all), "ok", "{backend}");
    }
    let (status, wrong) = daemon.web.post("/v1/threads", json!({ "backend": "other" })).await;
    assert_eq!((status, &wrong["code"]), (422, &json!("invalid")));
    assert_eq!(daemon.workers().len(), 2, "one for each backend");
}
