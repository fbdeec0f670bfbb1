//! Every route against everything that must not get through.

use bindery_core::interrupt::{Ask, Interrupt};
use bindery_daemon::config::{Backend, Config};
use bindery_daemon::http::{OPEN, openapi, routes};
use bindery_daemon::store::{Change, InterruptRow, InterruptState};
use bindery_daemon::tenant::{Limits, Roles, TenantSettings};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::{HANG, Stage, value};

/// A server without any Codex, in a folder of its own.
pub(crate) async fn stage(change: impl FnOnce(&mut Config)) -> (Stage, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (root, home) = (folder.path().join("root"), folder.path().join("home"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let mut config = Config { codex_home: Some(home), ..Config::default() };
    config.workers.backend = Backend::Engine;
    change(&mut config);
    (Stage::with(config, root).await, folder)
}

/// All routes with their methods; names filled in.
pub(crate) fn all(fill: &str) -> Vec<(Method, String, &'static str)> {
    let methods = routes().into_iter().flat_map(|route| {
        route.methods.iter().map(move |method| (route.path, method.parse().unwrap()))
    });
    methods.map(|(path, method)| (method, filled(path, |_| fill.to_owned()), path)).collect()
}

pub(crate) fn filled(path: &str, name: impl Fn(&str) -> String) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
        Some(known) => name(known),
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// A body that a route takes.
fn body(path: &str) -> Value {
    let call = json!({ "specification": "v3", "options": { "prompt": [
        { "role": "user", "content": [{ "type": "text", "text": "hi" }] }] } });
    match path {
        "/v1/threads/{thread}" => json!({ "title": "mine" }),
        "/v1/threads/{thread}/turns" | "/v1/turns/{turn}/steer" => json!({ "input": "hi" }),
        "/v1/threads/{thread}/review" => json!({ "target": { "type": "uncommittedChanges" } }),
        "/v1/interrupts/{token}/answer" => json!({ "kind": "decision", "decision": "accept" }),
        "/v1/language-model/calls/{call}/steer" => json!({ "text": "hi" }),
        "/v1/language-model/stream" | "/v1/language-model/prepare" => call,
        _ => json!({}),
    }
}

pub(crate) fn sends(method: &Method) -> bool {
    *method == Method::POST || *method == Method::PATCH
}

impl Stage {
    /// A request as it should be, without a token.
    fn plain(&self, method: &Method, path: &str, route: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method.clone(), format!("{}{path}", self.url));
        match sends(method) {
            true => {
                request.header("content-type", "application/json").body(body(route).to_string())
            }
            false => request,
        }
    }
}

/// The status and the problem's code.
pub(crate) async fn told(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = timeout(HANG, request.send()).await.expect("no response").unwrap();
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    for (name, guard) in [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY")] {
        assert_eq!(response.headers()[name], guard);
    }
    if status < 400 {
        return (status, String::new());
    }
    assert_eq!(kind.as_deref(), Some("application/problem+json"));
    (status, value(response).await["code"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_origins_and_types_get_through_nowhere() {
    let (stage, _folder) = stage(|_| ()).await;
    let port = stage.url.rsplit(':').next().unwrap().to_owned();
    for (method, path, route) in all("x") {
        let ask = || stage.plain(&method, &path, route).bearer_auth(&stage.token);
        let names = ["evil.example", "127.0.0.1.evil.example", "127.evil.example"];
        let names = names.map(|name| format!("{name}:{port}")).into_iter();
        for host in names.chain(["127.0.0.1:1".to_owned()]) {
            let refused = (421, "host_not_allowed".to_owned());
            assert_eq!(told(ask().header("host", &host)).await, refused, "{method} {path} {host}");
        }
        for origin in ["https://evil.example", "null", "http://localhost", &*stage.url] {
            let refused = (403, "origin_not_allowed".to_owned());
            assert_eq!(told(ask().header("origin", origin)).await, refused, "{method} {path}");
        }
        if sends(&method) {
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
                let request = stage.client.request(method.clone(), format!("{}{path}", stage.url));
                let request = request.bearer_auth(&stage.token).header("content-type", kind);
                let refused = (415, "unsupported_media_type".to_owned());
                assert_eq!(told(request.body("{}")).await, refused, "{method} {path} {kind}");
            }
            let bare = stage.client.request(method.clone(), format!("{}{path}", stage.url));
            assert_eq!(told(bare.bearer_auth(&stage.token)).await.0, 415, "{method} {path}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_valid_token_only_the_open_routes_answer() {
    // Too many wrong ones would be told so instead.
    let many = |config: &mut Config| config.http.wrong_tokens_per_minute = 100_000;
    let (stage, _folder) = stage(many).await;
    for (method, path, route) in all("x") {
        let expected = if OPEN.contains(&route) { 200 } else { 401 };
        let plain = || stage.plain(&method, &path, route);
        assert_eq!(told(plain()).await.0, expected, "{method} {path}");
        let wrong = [
            "Bearer bnd_0000".to_owned(),
            "Bearer".to_owned(),
            format!("Basic {}", stage.token),
            format!("Bearer {}0", stage.token),
        ];
        for wrong in wrong {
            let request = plain().header("authorization", &wrong);
            assert_eq!(told(request).await.0, expected, "{method} {path} {wrong}");
        }
    }
    stage.end().await;
}

/// Things of the first tenant, by the names that routes have for them.
pub(crate) async fn things(
    stage: &Stage,
    home: &std::path::Path,
) -> impl Fn(&str) -> String + use<> {
    let thread = value(stage.post("/v1/threads", &json!({})).await).await;
    let thread = thread["id"].as_str().unwrap().to_owned();
    let turns = format!("/v1/threads/{thread}/turns");
    let turn = value(stage.post(&turns, &json!({ "input": "hi" })).await).await;
    let turn = turn["id"].as_str().unwrap().to_owned();
    let tenant = stage.app.tenants.find("default").await.unwrap();
    let token = "ask_0123456789abcdef".to_owned();
    let row = InterruptRow {
        token: token.clone(),
        tenant: tenant.id,
        thread: thread.clone(),
        turn: turn.clone(),
        request: json!(1),
        interrupt: Interrupt {
            id: token.as_str().into(),
            thread_id: "t".into(),
            turn_id: "u".into(),
            call_id: "c".into(),
            ask: Ask::FileChange { changes: vec![], reason: None, grant_root: None },
        },
        state: InterruptState::Open,
        answer: None,
        answered_by: None,
        why: None,
        opened: 1,
        deadline: i64::MAX,
        closed: None,
    };
    stage.app.store.commit(vec![Change::OpenInterrupt(Box::new(row))]).await.unwrap();
    let session = "01a1e207-a380-72c0-9e62-3c28d5446a48".to_owned();
    let folder = home.join("sessions/2026/01/01");
    std::fs::create_dir_all(&folder).unwrap();
    let line = json!({ "timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta",
        "payload": { "id": session, "cwd": "/", "timestamp": "2026-01-01T00:00:00.000Z" } });
    let file = folder.join(format!("rollout-2026-01-01T00-00-00-{session}.jsonl"));
    std::fs::write(file, format!("{line}\n")).unwrap();
    move |name| match name {
        "thread" => thread.clone(),
        "turn" => turn.clone(),
        "token" => token.clone(),
        "session" => session.clone(),
        _ => "call_0".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_things_are_not_there() {
    let (stage, folder) = stage(|_| ()).await;
    let name = things(&stage, &folder.path().join("home")).await;
    let own = folder.path().join("other");
    std::fs::create_dir_all(&own).unwrap();
    let settings = TenantSettings::new(own.clone(), own);
    let other = stage.app.tenants.add("other", settings).await.unwrap();
    let token = stage.app.tenants.token(&other, "", Roles::usual()).await.unwrap();
    for (method, _, route) in all("x").into_iter().filter(|(.., route)| route.contains('{')) {
        let path = filled(route, &name);
        let request = stage.plain(&method, &path, route).bearer_auth(&token);
        assert_eq!(told(request).await, (404, "not_found".to_owned()), "{method} {path}");
        if method == Method::GET && !route.ends_with("/events") {
            // They are there for whom they belong to.
            assert_eq!(stage.get(&path).await.status(), 200, "{path}");
        }
    }
    for list in ["/v1/threads", "/v1/interrupts", "/v1/sessions"] {
        let request = stage.client.get(format!("{}{list}", stage.url)).bearer_auth(&token);
        let listed = value(request.send().await.unwrap()).await;
        assert_eq!(listed["data"], json!([]), "{list}");
    }
    let metrics = stage.client.get(format!("{}/metrics", stage.url)).bearer_auth(&token);
    assert_eq!(told(metrics).await.0, 403);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_lead_nowhere_else() {
    let (stage, _folder) = stage(|_| ()).await;
    let names = [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e",
        "..%5c..",
        "%00",
        "a%00b",
        "%ff%fe",
        "%2fetc%2fpasswd",
        "'%20OR%201=1--",
        &"a".repeat(4000),
    ];
    for name in names {
        for (method, path, route) in all(name).into_iter().filter(|(.., r)| r.contains('{')) {
            let request = stage.plain(&method, &path, route).bearer_auth(&stage.token);
            assert_eq!(told(request).await, (404, "not_found".to_owned()), "{method} {path}");
        }
    }
    for cwd in ["..", "/", "/etc", "a/../..", "\u{0}"] {
        let response = stage.post("/v1/threads", &json!({ "cwd": cwd })).await;
        assert_eq!(response.status(), 422, "{cwd:?}");
    }
    stage.end().await;
}

/// Sends bytes as they are; gives what comes back, to the end.
pub(crate) async fn raw(stage: &Stage, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(stage.url.trim_start_matches("http://")).await.unwrap();
    // It may be closed before all is sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(HANG, stream.read_to_end(&mut answer)).await.expect("it hangs");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_slow_and_broken_requests_end_early() {
    let (stage, _folder) = stage(|config| config.http.read_seconds = 1).await;
    let host = stage.url.trim_start_matches("http://").to_owned();
    let many: String = (0..10_000).map(|number| format!("x-{number}: y\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\n{many}\r\n");
    assert!(raw(&stage, many.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let missing = "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert!(raw(&stage, missing.as_bytes()).await.starts_with("HTTP/1.1 400"));
    let two = format!(
        "GET /healthz HTTP/1.1\r\nhost: {host}\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    );
    assert!(raw(&stage, two.as_bytes()).await.starts_with("HTTP/1.1 400"));
    let absolute = format!(
        "GET http://evil.example/healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    );
    assert!(raw(&stage, absolute.as_bytes()).await.starts_with("HTTP/1.1 421"));
    // A head that never ends, and a body that never comes.
    assert!(!raw(&stage, b"GET /healthz HTTP/1.1\r\nx: ").await.starts_with("HTTP/1.1 200"));
    let token = &stage.token;
    let head = format!(
        "POST /v1/threads HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
        content-type: application/json\r\nconnection: close\r\n"
    );
    let slow = format!("{head}content-length: 100\r\n\r\n{{");
    assert!(raw(&stage, slow.as_bytes()).await.starts_with("HTTP/1.1 408"));
    let told_huge = format!("{head}content-length: 1073741824\r\n\r\n{{");
    assert!(raw(&stage, told_huge.as_bytes()).await.starts_with("HTTP/1.1 413"));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gigabyte_is_not_read() {
    let (stage, _folder) = stage(|_| ()).await;
    let host = stage.url.trim_start_matches("http://").to_owned();
    let stream = TcpStream::connect(&host).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let head = format!(
        "POST /v1/threads HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        stage.token
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    let chunk =
        [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    let sending = tokio::spawn(async move {
        let mut sent = 0u64;
        while sent < 1 << 30 && writer.write_all(&chunk).await.is_ok() {
            sent += 1 << 20;
        }
        sent
    });
    let mut answer = Vec::new();
    let _ = timeout(HANG, reader.read_to_end(&mut answer)).await.expect("it hangs");
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 413"));
    drop(reader);
    let sent = timeout(HANG, sending).await.expect("it is all read").unwrap();
    assert!(sent < 256 << 20, "{sent} bytes were taken");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_tenant_hold() {
    let (stage, folder) = stage(|_| ()).await;
    let mut settings = TenantSettings::new(folder.path().into(), folder.path().into());
    settings.limits = Limits { requests_per_minute: 3, disk: 10, ..Limits::default() };
    let small = stage.app.tenants.add("small", settings).await.unwrap();
    let token = stage.app.tenants.token(&small, "", Roles::usual()).await.unwrap();
    let url = |path: &str| format!("{}{path}", stage.url);
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 100]].concat();
    let upload = stage.client.post(url("/v1/uploads")).bearer_auth(&token);
    let upload = upload.header("content-type", "image/png").body(png.clone());
    assert_eq!(told(upload).await, (507, "disk_full".to_owned()));
    let ask = || stage.client.get(url("/v1/threads")).bearer_auth(&token);
    assert_eq!(told(ask()).await.0, 200);
    assert_eq!(told(ask()).await.0, 200);
    let refused = ask().send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    // Another tenant has room, and its upload is spoken of by name.
    let upload = stage.ask(Method::POST, "/v1/uploads").header("content-type", "image/png");
    let upload = value(upload.body(png).send().await.unwrap()).await;
    let thread = value(stage.post("/v1/threads", &json!({})).await).await;
    let turns = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
    let image = |data: &str| {
        json!({ "input": [
        { "type": "file", "mediaType": "image/png", "data": data }] })
    };
    assert_eq!(stage.post(&turns, &image(upload["data"].as_str().unwrap())).await.status(), 201);
    assert_eq!(stage.post(&turns, &image("upload:upl_00")).await.status(), 404);
    assert_eq!(stage.post(&turns, &image("upload:upl_../x")).await.status(), 404);
    assert_eq!(stage.post(&turns, &image("file:///etc/hostname")).await.status(), 422);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_origins_may_come() {
    let (stage, _folder) = stage(|config| {
        config.http.origins = vec!["https://app.example".to_owned()];
    })
    .await;
    let request = stage.client.request(Method::OPTIONS, format!("{}/v1/threads", stage.url));
    let response = request.header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example");
    let request = stage.ask(Method::GET, "/v1/threads").header("origin", "https://app.example");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let request =
        stage.ask(Method::GET, "/v1/threads").header("origin", "https://app.example.evil");
    assert_eq!(request.send().await.unwrap().status(), 403);
    stage.end().await;
}

#[test]
fn the_document_describes_exactly_what_there_is() {
    let document = openapi::document();
    let described = document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let mut described: Vec<String> = described.collect();
    let mut routed: Vec<String> = routes()
        .iter()
        .flat_map(|route| route.methods.iter().map(|method| format!("{method} {}", route.path)))
        .collect();
    described.sort();
    routed.sort();
    assert_eq!(described, routed);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_counts_are_shown() {
    let (stage, _folder) = stage(|_| ()).await;
    for page in ["/", "/docs", "/v1/openapi.json"] {
        let response = stage.client.get(format!("{}{page}", stage.url)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        assert!(!text.contains("https://cdn") && !text.contains("<script"), "{page}");
    }
    let text = stage.get("/metrics").await.text().await.unwrap();
    assert!(text.contains("bindery_http_requests_total{"), "{text}");
    assert!(text.contains("route=\"/docs\""), "{text}");
    stage.end().await;
}
