//! Laws: nothing is routed to the wrong place, and no bytes break the connection.

use bindery_client::peer::{Bounds, Inbound, Peer};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::server::{LONG, Server, pair};

/// One thing the server does once all requests are in.
#[derive(Clone, Debug)]
enum Act {
    Reply(prop::sample::Index),
    Refuse(prop::sample::Index),
    ReplyAgain(prop::sample::Index),
    Stray(i64),
    Notify,
    Ask,
    Nonsense(Vec<u8>),
}

fn act() -> impl Strategy<Value = Act> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => index().prop_map(Act::Reply),
        1 => index().prop_map(Act::Refuse),
        1 => index().prop_map(Act::ReplyAgain),
        1 => (1000..2000_i64).prop_map(Act::Stray),
        4 => Just(Act::Notify),
        2 => Just(Act::Ask),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Act::Nonsense),
    ]
}

/// What the acts look like on the wire, and what must come of them.
#[derive(Default)]
struct Plan {
    bytes: Vec<u8>,
    told: Vec<String>,
}

impl Plan {
    fn line(&mut self, line: &Value) {
        self.bytes.extend_from_slice(line.to_string().as_bytes());
        self.bytes.push(b'\n');
    }

    fn settle(&mut self, (id, text): (i64, String), refuse: bool) {
        match refuse {
            true => self.line(&json!({"error": {"code": -1, "message": text}, "id": id})),
            false => self.line(&json!({"id": id, "result": text})),
        }
    }

    /// `open` are the requests as the server saw them; all get a reply in the end.
    fn new(acts: &[Act], mut open: Vec<(i64, String)>) -> Self {
        let (mut plan, mut done) = (Self::default(), Vec::new());
        for (number, act) in acts.iter().enumerate() {
            match act {
                Act::Reply(at) | Act::Refuse(at) if !open.is_empty() => {
                    let (id, text) = open.swap_remove(at.index(open.len()));
                    plan.settle((id, text), matches!(act, Act::Refuse(_)));
                    done.push(id);
                }
                Act::ReplyAgain(at) if !done.is_empty() => {
                    let id = done[at.index(done.len())];
                    plan.settle((id, "again".to_owned()), false);
                }
                Act::Stray(id) => plan.settle((*id, "stray".to_owned()), false),
                Act::Notify => {
                    plan.line(&json!({"method": format!("n{number}"), "emittedAtMs": 1}));
                    plan.told.push(format!("n{number}"));
                }
                Act::Ask => {
                    plan.line(&json!({"id": number, "method": format!("q{number}")}));
                    plan.told.push(format!("q{number}"));
                }
                Act::Nonsense(bytes) => plan.nonsense(bytes),
                _ => {}
            }
        }
        for request in open {
            plan.settle(request, false);
        }
        plan
    }

    /// A `%` in front is no JSON, whatever follows.
    fn nonsense(&mut self, bytes: &[u8]) {
        self.bytes.push(b'%');
        self.bytes.extend(bytes.iter().filter(|&&byte| byte != b'\n'));
        self.bytes.push(b'\n');
        self.told.push("unreadable".to_owned());
    }
}

/// Takes `count` requests off the wire.
async fn asked(server: &mut Server, count: usize) -> Vec<(i64, String)> {
    let mut asked = Vec::new();
    for _ in 0..count {
        let line = server.lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        let text = message["params"].as_str().unwrap().to_owned();
        asked.push((message["id"].as_i64().unwrap(), text));
    }
    asked
}

/// What was told until the end, which must be told once and last.
async fn told(mut inbound: mpsc::Receiver<Inbound>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(message) = inbound.recv().await {
        told.push(match message {
            Inbound::Notification { method, .. } | Inbound::Request { method, .. } => method,
            Inbound::Unreadable { .. } => "unreadable".to_owned(),
            Inbound::Closed(_) => "closed".to_owned(),
        });
    }
    assert_eq!(told.pop().as_deref(), Some("closed"));
    assert!(!told.contains(&"closed".to_owned()));
    told
}

fn ask_many(peer: &Peer, count: usize) -> JoinSet<bool> {
    let mut requests = JoinSet::new();
    for number in 0..count {
        let peer = peer.clone();
        requests.spawn(async move {
            let text = format!("question {number}");
            match peer.request("echo", &text, LONG).await {
                Ok(result) => result.get() == format!("{text:?}"),
                Err(err) => err.to_string() == format!("`echo` failed: {text} (-1)"),
            }
        });
    }
    requests
}

async fn interleave(acts: Vec<Act>, requests: usize, chunk: usize, inbound: usize) {
    let bounds = Bounds { inbound, pending: 64 };
    let (peer, inbound, mut server) = pair(bounds, 256, 100_000);
    let answers = ask_many(&peer, requests);
    let plan = Plan::new(&acts, asked(&mut server, requests).await);
    let listener = tokio::spawn(told(inbound));
    for piece in plan.bytes.chunks(chunk) {
        server.write.write_all(piece).await.unwrap();
    }
    let answers = answers.join_all().await;
    assert!(answers.iter().all(|&right| right), "a request got another's answer");
    drop(server);
    assert_eq!(listener.await.unwrap(), plan.told);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_is_routed_wrong(
        acts in prop::collection::vec(act(), 0..60),
        requests in 0..12_usize,
        chunk in 1..200_usize,
        inbound in 1..8_usize,
    ) {
        runtime().block_on(interleave(acts, requests, chunk, inbound));
    }

    #[test]
    fn no_recorded_stream_damaged_anyhow_ends_the_connection(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        limit in 100..5_000_usize,
    ) {
        runtime().block_on(survive(damage(edits, cuts), limit));
    }
}

const RECORDED: &str = include_str!("recorded/plain_text.jsonl");

/// Overwrites bytes, then takes out what lies between pairs of cuts.
fn damage(edits: Vec<(prop::sample::Index, u8)>, cuts: Vec<prop::sample::Index>) -> Vec<u8> {
    let mut bytes = RECORDED.as_bytes().to_vec();
    for (at, byte) in edits {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    for pair in cuts.chunks_exact(2) {
        let (a, b) = (pair[0].index(bytes.len()), pair[1].index(bytes.len()));
        bytes.drain(a.min(b)..a.max(b));
        bytes.push(b'x');
    }
    bytes
}

/// Whatever came before, a question asked afterwards is answered, and the end is told.
async fn survive(bytes: Vec<u8>, limit: usize) {
    let (peer, mut inbound, mut server) = pair(Bounds::default(), 256, limit);
    // The marker tells when all of it was read, so that no stale reply can meet the question.
    let bytes = [&bytes, &b"\n{\"method\":\"marker\"}\n"[..]].concat();
    let (_, ()) = tokio::join!(server.write.write_all(&bytes), async {
        while !matches!(
            inbound.recv().await.unwrap(),
            Inbound::Notification { method, .. } if method == "marker"
        ) {}
    });
    let listener = tokio::spawn(told(inbound));
    let answer = async {
        let (id, text) = asked(&mut server, 1).await.remove(0);
        let line = json!({"id": id, "result": text}).to_string() + "\n";
        server.write.write_all(line.as_bytes()).await.unwrap();
    };
    let (result, ()) = tokio::join!(peer.request("echo", "still there?", LONG), answer);
    assert_eq!(result.unwrap().get(), "\"still there?\"");
    drop(server);
    listener.await.unwrap();
}

#[test]
fn a_recorded_stream_cut_at_any_byte_is_the_same_stream() {
    let runtime = runtime();
    let whole = runtime.block_on(replay(&[RECORDED.as_bytes()]));
    assert_eq!(whole.len(), RECORDED.lines().filter(|line| line.contains("\"method\"")).count());
    let step = (RECORDED.len() / 300).max(1);
    for cut in (0..RECORDED.len()).step_by(step) {
        let (a, b) = RECORDED.as_bytes().split_at(cut);
        assert_eq!(runtime.block_on(replay(&[a, b])), whole, "cut at {cut}");
    }
}

async fn replay(chunks: &[&[u8]]) -> Vec<String> {
    let (_peer, inbound, mut server) = pair(Bounds::default(), 64 * 1024, 1 << 20);
    let listener = tokio::spawn(told(inbound));
    for chunk in chunks {
        server.write.write_all(chunk).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(server);
    listener.await.unwrap()
}
