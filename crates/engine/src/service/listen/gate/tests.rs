//! Requests that are let in, and those that are not.

use super::*;

const UPGRADE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn gate() -> Gate {
    let address = Some(([127, 0, 0, 1], 4000).into());
    Gate { address, token: Some(Token::new("secret")), hosts: vec!["engine.test".to_owned()] }
}

fn judged(gate: &Gate, first: &str, headers: &str) -> String {
    let head = format!("{first}\r\n{headers}\r\n");
    match gate.judge(head.as_bytes()) {
        Verdict::Upgrade { accept } => format!("101 {accept}"),
        Verdict::Answer { status, body } => format!("{status} {body}").trim_end().to_owned(),
    }
}

#[test]
fn whoever_brings_the_token_is_let_in() {
    let headers = format!("Host: 127.0.0.1:4000\r\nAuthorization: Bearer secret\r\n{UPGRADE}");
    // The RFC's own example.
    let want = "101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(judged(&gate(), "GET /any HTTP/1.1", &headers), want);
}

#[test]
fn refusals_are_worded_as_codex_words_them() {
    let host = "Host: localhost\r\n";
    #[rustfmt::skip]
    let table = [
        ("GET /readyz HTTP/1.1", host.to_owned(),                        "200 OK"),
        ("GET /healthz HTTP/1.1", format!("{host}Origin: null\r\n"),     "403 Forbidden"),
        ("GET / HTTP/1.1", format!("{host}{UPGRADE}"), "401 Unauthorized missing websocket bearer token"),
        ("GET / HTTP/1.1", format!("{host}Authorization: Bearer secre\r\n{UPGRADE}"),
            "401 Unauthorized invalid websocket bearer token"),
        ("GET / HTTP/1.1", format!("{host}Authorization: Basic secret\r\n{UPGRADE}"),
            "401 Unauthorized invalid authorization header"),
        ("GET / HTTP/1.1", format!("{host}Authorization: Bearer secret\r\n"),
            "400 Bad Request Connection header did not include 'upgrade'"),
        ("GET / HTTP/1.1", format!("{host}Authorization: Bearer secret\r\nOrigin: http://localhost\r\n{UPGRADE}"),
            "403 Forbidden"),
        ("POST / HTTP/1.1", host.to_owned(), "405 Method Not Allowed Request method must be `GET`"),
        ("garbage", String::new(),                                       "400 Bad Request"),
        ("GET / HTTP/1.1", "no colon\r\n".to_owned(),                    "400 Bad Request"),
    ];
    for (first, headers, want) in table {
        assert_eq!(judged(&gate(), first, &headers), want, "{first} {headers}");
    }
}

#[test]
fn a_foreign_host_is_refused() {
    #[rustfmt::skip]
    let table = [
        ("127.0.0.1:4000", "127.0.0.1:4000", true),
        ("127.0.0.1:4000", "localhost:9",    true),
        ("127.0.0.1:4000", "[::1]:9",        true),
        ("127.0.0.1:4000", "engine.test",    true),
        ("127.0.0.1:4000", "evil.example",   false),
        ("127.0.0.1:4000", "10.0.0.1",       false),
        ("127.0.0.1:4000", "",               false),
        ("10.0.0.1:4000",  "10.0.0.1:4000",  true),
        ("10.0.0.1:4000",  "localhost",      false),
        ("10.0.0.1:4000",  "127.0.0.1",      false),
        ("0.0.0.0:4000",   "10.0.0.7",       true),
        ("0.0.0.0:4000",   "evil.example",   false),
    ];
    for (ours, host, want) in table {
        let gate = Gate { address: Some(ours.parse().expect("an address")), ..gate() };
        assert_eq!(gate.knows(Some(host)), want, "{host} at {ours}");
    }
    assert!(!gate().knows(None));
    assert!(Gate::default().knows(None), "a socket in the file system has no name");
}
