//! Lines that are broken, strange, stray, doubled or far too long.

use bindery_core::usage::Unified;
use bindery_testkit::app_server::Step;
use serde_json::{Map, Value, json};

use super::{Scene, answers, play, turn};

/// Says the answer with something in the middle of it.
fn around(middle: Vec<Step>) -> Vec<Vec<Step>> {
    let turn = turn();
    let mut said = turn.say("m", "Hello, world.");
    let _ = said.splice(1..2, [turn.delta("m", "Hello, "), turn.delta("m", "world.")]);
    let tail = said.split_off(2);
    vec![said, middle, tail, turn.complete()]
}

async fn survives(name: &str, middle: Vec<Step>, unknown: usize) {
    let (told, _) = play(around(middle)).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hello, world.", Unified::Stop), "{name}");
    assert_eq!(told.streamed(), "Hello, world.", "{name}");
    assert_eq!(told.customs("codex.unknown").len(), unknown, "{name}");
    assert_eq!(told.errors(), Vec::<Value>::new(), "{name}");
}

#[tokio::test]
async fn a_turn_survives_what_it_cannot_read_and_shows_it() {
    let bytes = |bytes: &[u8]| vec![Step::bytes(bytes)];
    let reply = |id: Value| vec![Step::stray_reply(id, json!({}))];
    let note = |method: &str, params: Value| vec![turn().notify(method, params)];
    #[rustfmt::skip]
    let table = [
        // what                        the bytes                                          shown
        ("half a line",                bytes(b"{\"method\":\"item/agentMess\n"),          1),
        ("not UTF-8",                  bytes(b"{\"method\":\"\xff\xfe\"}\n"),             1),
        ("not JSON",                   bytes(b"thread 'main' panicked at src/main.rs\n"), 1),
        ("an array",                   bytes(b"[1,2,3]\n"),                               1),
        ("no object",                  bytes(b"null\n42\n"),                              2),
        ("neither id nor method",      bytes(b"{}\n"),                                    1),
        ("a null id",                  bytes(b"{\"id\":null,\"result\":{}}\n"),           1),
        ("doubled keys",               bytes(b"{\"method\":\"a\",\"method\":\"b\"}\n"),   1),
        ("empty lines",                bytes(b"\n\r\n  \n"),                              0),
        ("deep nesting",               bytes(&nested(50_000)),                            0),
        ("a reply nobody waits for",   reply(json!(4711)),                                0),
        ("a reply to a string",        reply(json!("x")),                                 0),
        ("a reply to a done request",  [reply(json!(1)), reply(json!(3))].concat(),       0),
        ("an unknown word",            note("turn/danced", json!({ "how": "well" })),     1),
        ("an unknown shape",           note("item/started", json!({ "item": 7 })),        1),
        ("an unknown item",            note("item/completed", dance()),                   1),
        ("no parameters",              bytes(b"{\"method\":\"item/started\"}\n"),         0),
        ("a word to nobody",           vec![Step::notify("danced", json!({}))],           0),
    ];
    for (name, middle, shown) in table {
        survives(name, middle, shown).await;
    }
}

fn dance() -> Value {
    json!({ "item": { "type": "dance", "id": "d" } })
}

fn nested(depth: usize) -> Vec<u8> {
    format!("{{\"method\":\"danced\",\"params\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth))
        .into_bytes()
}

#[tokio::test]
async fn a_line_may_come_in_pieces() {
    let params = json!({ "threadId": "thread-1", "turnId": "turn-1", "text": "zwölf Boxkämpfer" });
    let line = json!({ "method": "warning", "params": params }).to_string() + "\n";
    let pieces = line.as_bytes().chunks(1).map(Step::bytes).collect();
    let (told, _) = play(around(pieces)).await;
    assert_eq!(told.customs("codex.notice")[0]["data"]["text"], "zwölf Boxkämpfer");
    assert_eq!(told.text(), "Hello, world.");
}

#[tokio::test]
async fn a_doubled_reply_counts_once() {
    let turn = turn();
    let mut begin = turn.begin();
    begin.insert(2, Step::reply(json!({ "turn": { "id": "turn-2", "status": "completed" } })));
    let scene = Scene::open([begin, turn.say("m", "Hi"), turn.complete()]).await;
    let told = scene.run(scene.request()).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hi", Unified::Stop));
    scene.close().await;
}

#[tokio::test]
async fn items_said_twice_are_told_once() {
    let command = json!({
        "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/", "status": "completed",
        "aggregatedOutput": "a\n", "exitCode": 0,
    });
    let mut run = turn().item(command.clone(), command, Vec::new());
    run.extend(run.clone());
    let said = turn().say("m", "Hi");
    let again = vec![said.last().unwrap().clone()];
    let (told, _) = play([run, said, again, turn().complete()]).await;
    assert_eq!((told.text().as_str(), told.results("codex_command_execution").len()), ("Hi", 1));
}

#[tokio::test]
async fn an_end_that_cannot_be_read_is_an_end() {
    let broken =
        turn().notify("turn/completed", json!({ "turn": { "id": "turn-1", "status": 7 } }));
    let (told, _) = play([turn().begin_to_say("m", "Hel"), vec![broken]]).await;
    assert_eq!((told.streamed().as_str(), told.end()), ("Hel", Unified::Error));
    assert_eq!(told.errors()[0]["kind"], "protocol");
}

const HUGE: usize = 50 * 1024 * 1024;

fn huge(message: Value) -> Vec<Step> {
    vec![Step::Huge { message, bytes: HUGE }]
}

fn huge_note(method: &str, params: Value) -> Vec<Step> {
    let mut params: Map<String, Value> = params.as_object().unwrap().clone();
    params.insert("threadId".into(), json!("thread-1"));
    params.insert("turnId".into(), json!("turn-1"));
    huge(json!({ "method": method, "params": params }))
}

#[tokio::test]
async fn a_line_of_50_mb_is_named_and_let_go() {
    let delta = json!({ "itemId": "m", "delta": "$fill" });
    survives("a notification", huge_note("item/agentMessage/delta", delta), 1).await;
    let output = json!({ "item": { "type": "commandExecution", "id": "c", "command": "yes",
        "cwd": "/", "status": "completed", "aggregatedOutput": "$fill" } });
    survives("an item", huge_note("item/completed", output), 1).await;
}

#[tokio::test]
async fn a_completion_of_50_mb_leaves_what_was_streamed() {
    let turn = turn();
    let item = json!({ "item": { "type": "agentMessage", "id": "m", "text": "$fill" } });
    let steps = [turn.begin_to_say("m", "Hello"), huge_note("item/completed", item)];
    let (told, _) = play(steps.into_iter().chain([turn.complete()])).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hello", Unified::Stop));
    assert_eq!(told.customs("codex.unknown").len(), 1);
}

#[tokio::test]
async fn a_question_of_50_mb_is_refused() {
    let params = json!({ "threadId": "thread-1", "turnId": "turn-1", "command": "$fill" });
    let method = "item/commandExecution/requestApproval";
    let ask = huge(json!({ "id": 9, "method": method, "params": params }));
    let heard = vec![Step::ExpectAnswer { id: json!(9) }];
    let (told, outcome) = play(around([ask, heard].concat())).await;
    assert_eq!((told.text().as_str(), told.end()), ("Hello, world.", Unified::Stop));
    assert!(answers(&outcome, 9)[0]["error"]["message"].as_str().unwrap().contains("bytes"));
}

#[tokio::test]
async fn a_reply_of_50_mb_fails_its_request_and_no_other() {
    let list = vec![
        Step::expect("thread/list"),
        Step::Huge { message: json!({ "id": "$id", "result": { "data": "$fill" } }), bytes: HUGE },
    ];
    let turn = turn();
    let scene = Scene::open([list, turn.begin(), turn.say("m", "Hi"), turn.complete()]).await;
    let err = scene.client.list_threads(&Map::new()).await.unwrap_err();
    assert_eq!(err.code(), "line_too_long");
    assert_eq!(scene.run(scene.request()).await.text(), "Hi");
    scene.close().await;
}
