//! What must hold on every transport. What is special about each, and who is at its other end, is
//! said by the rig: there is one here and one for the engine in this process, beside the facade.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bindery_client::turn::TurnRequest;
use bindery_core::interrupt::{Answer, Decision, Interrupt};
use bindery_core::usage::Unified;
use bindery_testkit::app_server::{Step, Turn, start_thread};
use bindery_testkit::model::{Reply, Step as Says};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{Kind, LONG, Rig, Scene, asked_about};
use crate::told::Told;

/// Several times what any buffer on the way holds.
const BIG: usize = 6 * 1024 * 1024;

pub(crate) async fn shakes_hands(kind: Kind) {
    let rig = Rig::new(kind, Scene { steps: Vec::new(), replies: Vec::new() }).await;
    assert_eq!(rig.server.version().to_string(), kind.version());
    assert!(rig.server.codex_home().is_some());
}

pub(crate) async fn replies_reach_whoever_asked(kind: Kind) {
    let reply = Step::reply(json!({ "dataBase64": "$params.echo" }));
    let round = Step::Repeat { times: Some(40), steps: vec![Step::expect("fs/readFile"), reply] };
    let rig = Rig::new(kind, Scene { steps: vec![round], replies: Vec::new() }).await;
    let ask = async |number: usize| {
        let (path, text) = (format!("{}/{number}.txt", rig.folder()), format!("file {number}"));
        if !kind.is_scripted() {
            std::fs::write(&path, &text).unwrap();
        }
        let echo = STANDARD.encode(text);
        let params = json!({ "path": path, "echo": echo });
        let reply: Value = rig.server.request("fs/readFile", &params).await.unwrap();
        assert_eq!(reply["dataBase64"], echo);
    };
    join_all((0..40).map(ask)).await;
}

pub(crate) async fn big_messages_pass_both_ways(kind: Kind) {
    let back = json!({ "id": "$id", "result": { "dataBase64": "$fill" } });
    let steps = vec![
        Step::expect("fs/writeFile"),
        Step::reply(json!({})),
        Step::expect("fs/readFile"),
        Step::Huge { message: back, bytes: BIG },
    ];
    let rig = Rig::new(kind, Scene { steps, replies: Vec::new() }).await;
    let path = format!("{}/big", rig.folder());
    let data = "x".repeat(BIG);
    let write = json!({ "path": path, "dataBase64": data });
    let _: Value = rig.server.request("fs/writeFile", &write).await.unwrap();
    let read: Value = rig.server.request("fs/readFile", &json!({ "path": path })).await.unwrap();
    assert!(read["dataBase64"] == json!(data));
}

pub(crate) async fn what_is_told_comes_in_order(kind: Kind) {
    let text: String = (0..1500).map(|number| format!("{number} ")).collect();
    let turn = Turn::new("thread-1", "turn-1");
    let mut steps = [start_thread("thread-1"), turn.begin()].concat();
    steps.extend(turn.begin_to_say("msg_1", ""));
    steps.extend(text.split_inclusive(' ').map(|word| turn.delta("msg_1", word)));
    steps.extend(turn.say("msg_1", &text).pop());
    steps.extend(turn.complete_with("msg_1", &text));
    let replies = vec![Reply::new([Says::chunked(&text, 3)])];
    let rig = Rig::new(kind, Scene { steps, replies }).await;
    let request = TurnRequest::new(rig.thread().await, "count");
    let told = Told::of(rig.server.start_turn(request).await.unwrap()).await;
    assert_eq!((told.streamed(), told.end()), (text, Unified::Stop));
}

pub(crate) async fn questions_are_answered(kind: Kind) {
    let turn = Turn::new("thread-1", "turn-1");
    let ran = json!({
        "type": "commandExecution", "id": "c1", "command": "echo ran", "cwd": "/",
        "status": "completed", "aggregatedOutput": "ran\n", "exitCode": 0,
    });
    let mut steps = [start_thread("thread-1"), turn.begin()].concat();
    steps.extend(turn.ask_for_command(7, "c1", "echo ran"));
    steps.push(Step::ExpectAnswer { id: json!(7) });
    steps.push(turn.notify("serverRequest/resolved", json!({ "requestId": 7 })));
    steps.extend(turn.item(ran.clone(), ran, Vec::new()).pop());
    steps.extend(turn.complete());
    let replies = vec![Reply::new([asked_about("c1")]), Reply::text("done")];
    let rig = Rig::new(kind, Scene { steps, replies }).await;
    let mut request = TurnRequest::new(rig.thread().await, "go");
    request.answerer = Arc::new(|_: Interrupt| async { Some(Answer::decision(Decision::Accept)) });
    let told = Told::of(rig.server.start_turn(request).await.unwrap()).await;
    let result = told.results("codex_command_execution")[0].result.clone();
    assert_eq!((&result["aggregatedOutput"], told.end()), (&json!("ran\n"), Unified::Stop));
}

pub(crate) async fn closing_leaves_nothing(kind: Kind) {
    let mut rig = Rig::new(kind, Scene { steps: Vec::new(), replies: Vec::new() }).await;
    let end = tokio::time::timeout(LONG, rig.server.close()).await.expect("closing hangs");
    assert_eq!(end.status, kind.last_words());
    rig.far.assert_left_alone().await;
    let err = rig.server.models().await.unwrap_err();
    assert_eq!(err.code(), "closed");
}

pub(crate) async fn letting_go_is_closing(kind: Kind) {
    let rig = Rig::new(kind, Scene { steps: Vec::new(), replies: Vec::new() }).await;
    let Rig { server, mut far } = rig;
    drop(server);
    far.assert_left_alone().await;
}

pub(crate) async fn a_dead_server_is_noticed(kind: Kind) {
    let steps = vec![Step::Silence];
    let mut rig = Rig::new(kind, Scene { steps, replies: Vec::new() }).await;
    let server = rig.server.clone();
    // Real servers answer this one only when the time is up.
    let policy = json!({ "type": "dangerFullAccess" });
    let params = json!({ "command": ["sleep", "600"], "timeoutMs": 600_000,
        "sandboxPolicy": policy });
    let asked = tokio::spawn(async move { server.request::<Value>("command/exec", &params).await });
    let sent = async {
        while !asked.is_finished() {
            tokio::task::yield_now().await
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(200), sent).await;
    let begin = Instant::now();
    rig.far.die();
    let err = asked.await.unwrap().unwrap_err();
    assert_eq!(err.code(), "closed", "{err}");
    // A second is what a busy machine may take; the system tells us at once.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}
