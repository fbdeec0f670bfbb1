//! The peer against a scripted server over memory, on a paused clock.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::*;
use crate::transport;

const SOON: Duration = Duration::from_secs(5);
const LIMIT: usize = 10_000;

/// The far end: reads what the peer writes, writes what the test wants.
struct Server {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Server {
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn next_id(&mut self) -> i64 {
        self.next().await["id"].as_i64().unwrap()
    }

    async fn send(&mut self, text: &str) {
        self.write.write_all(text.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    async fn reply(&mut self, id: i64, result: Value) {
        self.send(&json!({"id": id, "result": result}).to_string()).await;
    }
}

fn start(bounds: Bounds) -> (Peer, mpsc::Receiver<Inbound>, Server) {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(ours);
    let (peer, inbound) = Peer::start(transport::over(read, write, LIMIT), bounds);
    let (read, write) = tokio::io::split(theirs);
    (peer, inbound, Server { read: BufReader::new(read), write })
}

/// The same, where the server takes short messages only.
fn start_short() -> (Peer, mpsc::Receiver<Inbound>, Server) {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(ours);
    let transport = Transport { send_limit: 100, ..transport::over(read, write, LIMIT) };
    let (peer, inbound) = Peer::start(transport, Bounds::default());
    let (read, write) = tokio::io::split(theirs);
    (peer, inbound, Server { read: BufReader::new(read), write })
}

/// The only test code that knows the fields.
fn sketch(inbound: Option<Inbound>) -> String {
    match inbound {
        Some(Inbound::Notification { method, params, .. }) => format!("! {method} {params}"),
        Some(Inbound::Request { id, method, params }) => format!("? {id} {method} {params}"),
        Some(Inbound::Unreadable { why, bytes, id, .. }) => {
            format!("unreadable {bytes} {}: {why}", id.map_or("-".to_owned(), |id| id.to_string()))
        }
        Some(Inbound::Closed(end)) => format!("closed: {}", end.status),
        None => "nothing".to_owned(),
    }
}

async fn ask(peer: &Peer, text: &str, within: Duration) -> Result<String, String> {
    let result = peer.request("echo", json!({ "text": text }), within).await;
    result.map(|raw| raw.get().to_owned()).map_err(|err| format!("{}: {err}", err.code()))
}

#[tokio::test(start_paused = true)]
async fn replies_in_any_order_reach_whoever_asked() {
    let (peer, _inbound, mut server) = start(Bounds::default());
    let answer = async {
        let mut asked = Vec::new();
        for _ in 0..3 {
            let message = server.next().await;
            asked.push((message["id"].as_i64().unwrap(), message["params"]["text"].clone()));
        }
        for (id, text) in asked.into_iter().rev() {
            server.reply(id, text).await;
        }
    };
    let (a, b, c, ()) =
        tokio::join!(ask(&peer, "a", SOON), ask(&peer, "b", SOON), ask(&peer, "c", SOON), answer);
    assert_eq!([a, b, c], [Ok("\"a\"".into()), Ok("\"b\"".into()), Ok("\"c\"".into())]);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_deadline_and_the_late_reply_is_ignored() {
    let (peer, _inbound, mut server) = start(Bounds::default());
    let begin = Instant::now();
    let late = ask(&peer, "a", SOON).await;
    assert_eq!(late, Err("timeout: no answer to `echo` within 5s".into()));
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert_eq!(peer.shared.pending.len(), 0);
    let id = server.next_id().await;
    server.reply(id, json!("late")).await;
    let (b, ()) = tokio::join!(ask(&peer, "b", Duration::MAX), async {
        let id = server.next_id().await;
        server.reply(id, json!("in time")).await;
    });
    assert_eq!(b, Ok("\"in time\"".into()));
    assert_eq!(peer.stray_replies(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_forgotten() {
    let (peer, _inbound, mut server) = start(Bounds::default());
    let dropped = timeout(Duration::from_millis(1), ask(&peer, "a", SOON)).await;
    assert!(dropped.is_err());
    assert_eq!(server.next_id().await, 1);
    assert_eq!(peer.shared.pending.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_asked_again_under_a_new_id() {
    let (peer, _inbound, mut server) = start(Bounds::default());
    let (answer, ids) = tokio::join!(ask(&peer, "a", Duration::from_secs(60)), async {
        let mut ids = Vec::new();
        for _ in 0..4 {
            let id = server.next_id().await;
            ids.push(id);
            let busy = r#"{"error":{"code":-32001,"message":"Server overloaded"},"id":ID}"#;
            server.send(&busy.replace("ID", &id.to_string())).await;
        }
        let id = server.next_id().await;
        server.reply(id, json!("at last")).await;
        ids
    });
    assert_eq!((answer, ids), (Ok("\"at last\"".into()), vec![1, 2, 3, 4]));
}

#[tokio::test(start_paused = true)]
async fn overload_until_the_deadline_has_its_own_name() {
    let (peer, _inbound, mut server) = start(Bounds::default());
    let begin = Instant::now();
    let refuse = async {
        loop {
            let id = server.next_id().await;
            server.send(&format!(r#"{{"id":{id},"error":{{"code":-32001,"message":""}}}}"#)).await;
        }
    };
    let answer = tokio::select! {
        answer = ask(&peer, "a", SOON) => answer,
        () = refuse => unreachable!(),
    };
    assert_eq!(answer.unwrap_err().split(':').next(), Some("overloaded"));
    assert!(begin.elapsed() < SOON);
}

#[test]
fn pauses_grow_and_stay_within_bounds() {
    for attempts in 1..200 {
        let full = (0.1 * 2_f64.powi(attempts - 1)).min(5.0);
        let pause = pause(u32::try_from(attempts).unwrap()).as_secs_f64();
        assert!((full / 2.0..=full).contains(&pause), "attempt {attempts}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_says_comes_in_order_and_is_answered() {
    let (peer, mut inbound, mut server) = start(Bounds::default());
    server.send(r#"{"method":"a","params":{},"emittedAtMs":5}"#).await;
    server.send("").await;
    server.send(r#"{"id":0,"method":"item/tool/call","params":{"x":1}}"#).await;
    server.send(r#"{"id":"s","method":"b"}"#).await;
    server.send(r#"{"method":"c"}"#).await;
    assert_eq!(sketch(inbound.recv().await), "! a {}");
    assert_eq!(sketch(inbound.recv().await), r#"? 0 item/tool/call {"x":1}"#);
    assert_eq!(sketch(inbound.recv().await), "? s b null");
    assert_eq!(sketch(inbound.recv().await), "! c null");
    peer.respond(&0.into(), json!({"success": true})).await.unwrap();
    let no = RpcError { code: -32000, message: "no".into(), data: None };
    peer.respond_error(&"s".into(), &no).await.unwrap();
    peer.notify("initialized", ()).await.unwrap();
    assert_eq!(server.next().await, json!({"id": 0, "result": {"success": true}}));
    assert_eq!(server.next().await, json!({"id": "s", "error": {"code": -32000, "message": "no"}}));
    assert_eq!(server.next().await, json!({"method": "initialized"}));
}

#[tokio::test(start_paused = true)]
async fn the_end_fails_all_who_wait_and_is_told_once() {
    let (peer, mut inbound, mut server) = start(Bounds::default());
    let gone = "closed: Codex is gone: connection closed";
    let (a, b, ()) = tokio::join!(ask(&peer, "a", SOON), ask(&peer, "b", SOON), async {
        server.next().await;
        server.next().await;
        server.write.write_all(b"{\"method\":\"half").await.unwrap();
        drop(server);
    });
    assert_eq!([a, b], [Err(gone.into()), Err(gone.into())]);
    assert_eq!(ask(&peer, "c", SOON).await, Err(gone.into()));
    assert_eq!(peer.notify("late", ()).await.unwrap_err().code(), "closed");
    let half = "unreadable 15 -: EOF while parsing a string at line 1 column 15";
    assert_eq!(sketch(inbound.recv().await), half);
    assert_eq!(sketch(inbound.recv().await), "closed: connection closed");
    assert_eq!(sketch(inbound.recv().await), "nothing");
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_holds_the_server_back_and_deadlines_fire_all_the_same() {
    let (peer, mut inbound, mut server) = start(Bounds { inbound: 4, pending: 8 });
    let flood = tokio::spawn(async move {
        let pad = "x".repeat(200);
        for number in 0..2000 {
            server.send(&json!({"method": format!("n{number}"), "params": pad}).to_string()).await;
        }
        server
    });
    // Nobody listens: the reply would be behind the flood, and only the deadline helps.
    assert_eq!(ask(&peer, "a", SOON).await.unwrap_err().split(':').next(), Some("timeout"));
    assert!(!flood.is_finished());
    for number in 0..2000 {
        let Some(Inbound::Notification { method, .. }) = inbound.recv().await else { panic!() };
        assert_eq!(method, format!("n{number}"));
    }
    flood.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lines_over_the_limit_fail_only_what_they_belong_to() {
    let (peer, mut inbound, mut server) = start(Bounds::default());
    let pad = "x".repeat(LIMIT);
    let (answer, ()) = tokio::join!(ask(&peer, "a", SOON), async {
        let id = server.next_id().await;
        server.reply(id, json!(pad)).await;
    });
    let too_long = "line_too_long: the answer to `echo` has 10020 bytes, more than a line may have";
    assert_eq!(answer, Err(too_long.into()));
    server.send(&json!({"method": "big", "params": pad}).to_string()).await;
    server.send(&format!(r#"{{"id":9,"method":"call","params":"{pad}"}}"#)).await;
    server.send(r#"{"method":"small"}"#).await;
    let why = |bytes, id| {
        format!("unreadable {bytes} {id}: a line of {bytes} bytes, more than a line may have")
    };
    assert_eq!(sketch(inbound.recv().await), why(10_028, "-"));
    assert_eq!(sketch(inbound.recv().await), why(10_036, "9"));
    assert_eq!(sketch(inbound.recv().await), "! small null");
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_shown_and_survived() {
    let (peer, mut inbound, mut server) = start(Bounds::default());
    server
        .write
        .write_all(b"\xff\xfe{}\n[1,2]\n{\"id\":null,\"result\":1}\n\r\n  \n")
        .await
        .unwrap();
    server.send(r#"{"id":"text","result":1}"#).await;
    server.send(r#"{"id":4711,"error":{"code":1,"message":"who?"}}"#).await;
    let (answer, ()) = tokio::join!(ask(&peer, "a", SOON), async {
        let id = server.next_id().await;
        server.reply(id, json!(1)).await;
        server.reply(id, json!(2)).await;
        server.send(r#"{"method":"last"}"#).await;
    });
    assert_eq!(answer, Ok("1".into()));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(sketch(inbound.recv().await));
    }
    assert_eq!(
        seen,
        [
            "unreadable 4 -: invalid utf-8 sequence of 1 bytes from index 0",
            "unreadable 5 -: not a JSON object",
            "unreadable 22 -: `id` is neither an integer nor a string: null",
            "! last null",
        ]
    );
    assert_eq!(peer.stray_replies(), 3);
}

// On the real clock: a paused one never advances while the flood keeps the runtime busy.
#[tokio::test]
async fn closing_never_waits_for_a_listener() {
    let (peer, mut inbound, mut server) = start(Bounds { inbound: 2, pending: 8 });
    let flood = tokio::spawn(async move {
        let line = b"{\"method\":\"n\"}\n";
        while server.write.write_all(line).await.is_ok() {}
    });
    let (answer, end) = tokio::join!(ask(&peer, "a", 10 * SOON), async {
        tokio::task::yield_now().await;
        peer.close().await
    });
    assert_eq!(answer, Err("closed: Codex is gone: connection closed".into()));
    assert_eq!(end, End::closed());
    flood.await.unwrap();
    let mut last = String::new();
    while let Some(inbound) = inbound.recv().await {
        last = sketch(Some(inbound));
    }
    assert_eq!(last, "closed: connection closed");
}

#[tokio::test(start_paused = true)]
async fn without_a_listener_requests_still_work() {
    let (peer, inbound, mut server) = start(Bounds { inbound: 1, pending: 1 });
    drop(inbound);
    for _ in 0..50 {
        server.send(r#"{"method":"n"}"#).await;
    }
    // One at a time: the second waits for the first, as bounded.
    let (a, b, ()) = tokio::join!(ask(&peer, "a", SOON), ask(&peer, "b", SOON), async {
        for _ in 0..2 {
            let id = server.next_id().await;
            assert_eq!(peer.shared.pending.len(), 1);
            server.reply(id, json!(id)).await;
        }
    });
    assert_eq!([a, b], [Ok("1".into()), Ok("2".into())]);
}

#[tokio::test]
async fn parameters_that_are_no_json_are_the_callers_fault() {
    let (peer, _inbound, _server) = start(Bounds::default());
    let odd = std::collections::HashMap::from([(vec![1], 1)]);
    assert_eq!(peer.request("m", odd, SOON).await.unwrap_err().code(), "encode");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_take_is_not_sent_and_the_connection_lives() {
    let (peer, mut inbound, mut server) = start_short();
    let refused = ask(&peer, &"a".repeat(200), SOON).await.unwrap_err();
    let limit = "the backend takes at most 100 in one message";
    assert!(refused.starts_with("message_too_long") && refused.contains(limit), "{refused}");
    let long = json!({ "text": "a".repeat(200) });
    let told = peer.notify("tell", &long).await.unwrap_err();
    assert_eq!(told.code(), "message_too_long");
    // A question would wait for ever for an answer that cannot be sent.
    server.send(r#"{"id":"q","method":"item/tool/call","params":{}}"#).await;
    assert_eq!(sketch(inbound.recv().await), "? q item/tool/call {}");
    let answered = peer.respond(&"q".into(), &long).await.unwrap_err();
    assert_eq!(answered.code(), "message_too_long");
    let reply = server.next().await;
    assert_eq!((&reply["id"], reply["result"].is_null()), (&json!("q"), true));
    assert!(reply["error"]["message"].as_str().unwrap().contains(limit), "{reply}");
    let (asked, ()) = tokio::join!(ask(&peer, "short", SOON), async {
        let id = server.next_id().await;
        server.reply(id, json!("fine")).await;
    });
    assert_eq!(asked.unwrap(), "\"fine\"");
}
