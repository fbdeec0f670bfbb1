//! One tenant, or somebody without a token, sends more than its share: the others do not notice.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bindery_daemon::config::Config;
use bindery_daemon::store::Change;
use bindery_daemon::tenant::{Limits, Role, Roles, TenantSettings};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::{HANG, Stage, value};

/// A server with two tenants; the second has a token of its own.
struct Two {
    stage: Stage,
    other: String,
    _root: TempDir,
}

impl Two {
    async fn new(configure: impl FnOnce(&mut Config)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config { codex_home: Some(root.path().into()), ..Config::default() };
        config.workers.backend = bindery_daemon::config::Backend::Engine;
        configure(&mut config);
        let stage = Stage::with(config, root.path().to_owned()).await;
        let settings = TenantSettings::new(root.path().into(), root.path().into());
        let tenant = stage.app.tenants.add("other", settings).await.unwrap();
        let other = stage
            .app
            .tenants
            .token(&tenant, "test", Roles::new([Role::Run, Role::Answer]))
            .await
            .unwrap();
        Self { stage, other, _root: root }
    }

    fn address(&self) -> SocketAddr {
        self.stage.url.strip_prefix("http://").unwrap().parse().unwrap()
    }

    /// Other limits for the first tenant.
    async fn limit(&self, change: impl FnOnce(&mut Limits)) {
        let mut tenant = self.stage.app.tenants.find("default").await.unwrap();
        change(&mut tenant.settings.limits);
        self.stage.app.store.commit(vec![Change::SetTenant(Box::new(tenant))]).await.unwrap();
    }

    async fn thread(&self, token: &str) -> String {
        let made = self.raw("POST", "/v1/threads", token, b"{}").await;
        assert_eq!(made.0, 201, "{}", made.1);
        made.1["id"].as_str().unwrap().to_owned()
    }

    /// One request on a connection of its own.
    async fn raw(&self, method: &str, path: &str, token: &str, body: &[u8]) -> (u16, Value) {
        let asking = async {
            let mut socket = TcpStream::connect(self.address()).await.unwrap();
            let head = head(self.address(), method, path, token, body.len());
            // A server that refuses need not read everything.
            let _ = socket.write_all(head.as_bytes()).await;
            let _ = socket.write_all(body).await;
            let mut said = Vec::new();
            let _ = socket.read_to_end(&mut said).await;
            told(&said)
        };
        timeout(HANG, asking).await.expect("no answer")
    }

    async fn health(&self) -> Duration {
        let begin = Instant::now();
        let (status, _) = self.raw("GET", "/healthz", "", b"").await;
        assert_eq!(status, 200);
        begin.elapsed()
    }

    async fn count(&self, metric: &str) -> u64 {
        let text = self.stage.get("/metrics").await.text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(metric));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    }
}

fn head(address: SocketAddr, method: &str, path: &str, token: &str, length: usize) -> String {
    let auth = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{auth}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

fn told(said: &[u8]) -> (u16, Value) {
    let text = String::from_utf8_lossy(said);
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_sockets_do_not_keep_a_health_check_or_a_tenant_waiting() {
    let two = Two::new(|config| {
        config.http.silent_connections = 64;
        config.http.unknown_per_address = 48;
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..300 {
        held.push(TcpStream::connect(two.address()).await.unwrap());
    }
    for _ in 0..3 {
        let took = two.health().await;
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    assert_eq!(two.raw("GET", "/v1/threads", &two.other, b"").await.0, 200);
    assert!(two.count("bindery_connections_closed_for_room").await >= 200);
    assert!(two.stage.app.connections.count().0 <= 64);
    // The oldest were closed, the newest not.
    let mut byte = [0];
    let read = timeout(HANG, held[0].read(&mut byte)).await.expect("it is still open");
    assert!(matches!(read, Ok(0) | Err(_)));
    two.stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_sends_no_whole_request_is_closed_soon() {
    let two = Two::new(|config| config.http.silent_seconds = 1).await;
    let mut silent = TcpStream::connect(two.address()).await.unwrap();
    let mut slow = TcpStream::connect(two.address()).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").await.unwrap();
    let mut said = Vec::new();
    for socket in [&mut silent, &mut slow] {
        let read = timeout(Duration::from_secs(20), socket.read_to_end(&mut said)).await;
        assert!(read.is_ok(), "it is still open");
    }
    two.stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_streams_of_one_tenant_leave_room_for_the_others() {
    let two = Two::new(|_| {}).await;
    two.limit(|limits| limits.requests = 8).await;
    let thread = two.thread(&two.stage.token).await;
    let path = format!("/v1/threads/{thread}/turns");
    // Waits in the queue behind nothing, and its worker cannot be started: what it says is kept.
    let (_, turn) = two.raw("POST", &path, &two.stage.token, br#"{"input":"hi"}"#).await;
    let events = format!("/v1/turns/{}/events", turn["id"].as_str().unwrap());
    let mut held = Vec::new();
    let body = vec![b' '; 64 * 1024];
    for _ in 0..8 {
        // Requests whose bodies do not come are under way, too.
        let mut socket = TcpStream::connect(two.address()).await.unwrap();
        let head = head(two.address(), "POST", "/v1/threads", &two.stage.token, body.len());
        socket.write_all(head.as_bytes()).await.unwrap();
        held.push(socket);
    }
    let full = async {
        while two.stage.app.connections.count().1 < 8 {
            tokio::task::yield_now().await
        }
    };
    timeout(HANG, full).await.expect("they are not counted");
    let (status, problem) = two.raw("GET", &events, &two.stage.token, b"").await;
    assert_eq!((status, &problem["code"]), (429, &json!("limit_reached")), "{problem}");
    assert_eq!(two.raw("GET", "/v1/threads", &two.other, b"").await.0, 200);
    two.health().await;
    drop(held);
    let freed = async {
        while two.stage.app.connections.count().1 > 0 {
            tokio::task::yield_now().await
        }
    };
    timeout(HANG, freed).await.expect("they are counted for ever");
    assert_eq!(two.raw("GET", "/v1/threads", &two.stage.token, b"").await.0, 200);
    two.stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_slowed_and_a_good_one_beside_them_is_not() {
    let two = Two::new(|config| config.http.wrong_tokens_per_minute = 10).await;
    for _ in 0..10 {
        assert_eq!(two.raw("GET", "/v1/threads", "bnd_wrong", b"").await.0, 401);
    }
    let mut times = Vec::new();
    for _ in 0..5 {
        let asked = two.stage.client.get(format!("{}/v1/threads", two.stage.url));
        let response = asked.bearer_auth("bnd_wrong").send().await.unwrap();
        assert_eq!(response.status(), 429);
        let wait = response.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
        times.push(wait);
        assert_eq!(value(response).await["code"], "too_many_wrong_tokens");
    }
    assert!(times.is_sorted() && times[4] > times[0], "{times:?}");
    let begin = Instant::now();
    let flood = join_all((0..20).map(|_| two.raw("GET", "/v1/threads", "bnd_wrong", b"")));
    let good = two.raw("GET", "/v1/threads", &two.other, b"");
    let (flood, (good, took)) = tokio::join!(flood, async { (good.await.0, begin.elapsed()) });
    assert_eq!(good, 200);
    assert!(flood.iter().all(|(status, _)| *status == 429));
    assert!(begin.elapsed() > took, "wrong tokens are answered as soon as the good one");
    assert!(begin.elapsed() >= Duration::from_millis(800), "{:?}", begin.elapsed());
    assert!(two.count("bindery_refused_total{why=\"wrong_tokens\"}").await >= 25);
    // Neither what is no token nor what is endless is looked up.
    let long = "x".repeat(20_000);
    assert_eq!(two.raw("GET", "/v1/threads", &long, b"").await.0, 429);
    two.stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_backend_does_not_take_in_one_message_is_refused_with_its_limit() {
    let two = Two::new(|_| {}).await;
    let thread = two.thread(&two.other).await;
    let long = "a".repeat(17 << 20);
    let turns = format!("/v1/threads/{thread}/turns");
    let bodies = [
        json!({ "input": long }),
        json!({ "input": [{ "type": "text", "text": long }] }),
        json!({ "input": "hi", "outputSchema": { "description": long } }),
        json!({ "input": "hi", "tools": [{ "type": "function", "name": "t", "description": long,
            "inputSchema": {} }] }),
        json!({ "input": "hi", "settings": { "developerInstructions": long } }),
    ];
    for body in bodies {
        let body = body.to_string();
        let (status, problem) = two.raw("POST", &turns, &two.other, body.as_bytes()).await;
        assert_eq!(status, 413, "{problem}");
        assert_eq!(problem["code"], "message_too_long");
        assert!(problem["detail"].as_str().unwrap().contains("16711680"), "{problem}");
    }
    let tools = json!({ "tools": [{ "name": "t", "description": "a".repeat(2 << 20) }] });
    let (status, problem) =
        two.raw("POST", "/v1/threads", &two.other, tools.to_string().as_bytes()).await;
    assert_eq!((status, &problem["code"]), (413, &json!("message_too_long")), "{problem}");
    let answer = json!({ "kind": "toolResult", "success": true,
        "content": [{ "type": "inputText", "text": long }] });
    let path = "/v1/interrupts/int_1/answer";
    let (status, problem) = two.raw("POST", path, &two.other, answer.to_string().as_bytes()).await;
    assert_eq!((status, &problem["code"]), (413, &json!("message_too_long")), "{problem}");
    two.stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_requests_are_bounded_for_each_tenant() {
    let two = Two::new(|config| config.http.read_seconds = 2).await;
    two.limit(|limits| limits.request_bytes = 4 << 20).await;
    let thread = two.thread(&two.stage.token).await;
    let turns = format!("/v1/threads/{thread}/turns");
    // Says that it is long, takes its share, and does not come.
    let mut slow = TcpStream::connect(two.address()).await.unwrap();
    let announced = head(two.address(), "POST", &turns, &two.stage.token, 4 << 20);
    slow.write_all(announced.as_bytes()).await.unwrap();
    let taken = async {
        while two.stage.app.connections.count().1 < 1 {
            tokio::task::yield_now().await
        }
    };
    timeout(HANG, taken).await.expect("it is not read");
    let long = json!({ "input": "a".repeat(1 << 20) }).to_string();
    let others = two.thread(&two.other).await;
    let others = format!("/v1/threads/{others}/turns");
    let (status, problem) = two.raw("POST", &others, &two.other, long.as_bytes()).await;
    assert_eq!(status, 201, "another tenant waits: {problem}");
    // The share comes back when the body does not come in time, at the latest.
    let (status, problem) = two.raw("POST", &turns, &two.stage.token, long.as_bytes()).await;
    assert!(matches!(status, 201 | 429), "{status} {problem}");
    let (status, problem) = two.raw("POST", &turns, &two.stage.token, long.as_bytes()).await;
    assert_eq!(status, 201, "{problem}");
    let small = two.stage.ask(Method::GET, "/v1/threads").send().await.unwrap();
    assert_eq!(small.status(), 200);
    two.stage.end().await;
}
