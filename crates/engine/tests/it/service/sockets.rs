//! Many clients over WebSockets, on an address and on a socket in the file system.

use std::os::unix::fs::PermissionsExt;

use bindery_engine::service::ServiceSettings;
use bindery_engine::service::listen::{Token, UnixDoor, WsDoor};
use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::supply::service;
use crate::stage::PATIENCE;

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Sends the head of a request and gives the answer's first line; the stream goes on behind it.
async fn request<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, headers: &str) -> String {
    let head = format!("GET / HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(answer).unwrap().lines().next().unwrap().to_owned()
}

/// Greets, starts a thread, runs a turn and gives its last words.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, words: &str) -> String {
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let hello = json!({ "clientInfo": { "name": "c", "version": "1" } });
    let mut send = json!({ "id": 1, "method": "initialize", "params": hello });
    loop {
        socket.send(Message::text(send.to_string())).await.unwrap();
        let reply = until(&mut socket, |line| line["id"] == send["id"]).await;
        match send["id"].as_i64() {
            Some(1) => send = json!({ "id": 2, "method": "thread/start", "params": {} }),
            Some(2) => {
                let input = json!([{ "type": "text", "text": words }]);
                let params = json!({ "threadId": reply["result"]["thread"]["id"], "input": input });
                send = json!({ "id": 3, "method": "turn/start", "params": params });
            }
            _ => break,
        }
    }
    let ended = until(&mut socket, |line| line["method"] == "turn/completed").await;
    ended["params"]["turn"]["items"][0]["text"].as_str().unwrap_or_default().to_owned()
}

async fn until<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    loop {
        let next = tokio::time::timeout(PATIENCE, socket.next()).await.expect("nothing comes");
        if let Message::Text(text) = next.unwrap().unwrap() {
            let line: Value = serde_json::from_str(&text).unwrap();
            if fits(&line) {
                return line;
            }
        }
    }
}

#[tokio::test]
async fn two_hundred_at_once_each_get_their_own_answer() {
    let (service, _) = service(ServiceSettings::default());
    let door = WsDoor::open(([127, 0, 0, 1], 0).into(), None, Vec::new()).await.unwrap();
    let address = door.address();
    let serving = tokio::spawn({
        let service = service.clone();
        async move { door.serve(&service).await }
    });
    let client = async |number: usize| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let first = request(&mut stream, &format!("Host: {address}\r\n{UPGRADE}")).await;
        assert_eq!(first, "HTTP/1.1 101 Switching Protocols");
        converse(stream, &format!("number {number}")).await
    };
    let answers = join_all((0..200).map(client)).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("you said number {number}"));
    }
    service.stop().await;
    tokio::time::timeout(PATIENCE, serving).await.expect("the door stays open").unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn only_those_with_the_token_and_no_page_come_in() {
    let (service, _) = service(ServiceSettings::default());
    let token = Some(Token::new("secret"));
    let door = WsDoor::open(([127, 0, 0, 1], 0).into(), token, Vec::new()).await.unwrap();
    let address = door.address();
    let serving = tokio::spawn({
        let service = service.clone();
        async move { door.serve(&service).await }
    });
    let bearer = "Authorization: Bearer secret\r\n";
    #[rustfmt::skip]
    let table = [
        (format!("Host: {address}\r\n{UPGRADE}"),                               "401 Unauthorized"),
        (format!("Host: {address}\r\nAuthorization: Bearer no\r\n{UPGRADE}"),   "401 Unauthorized"),
        (format!("Host: {address}\r\n{bearer}Origin: http://x\r\n{UPGRADE}"),   "403 Forbidden"),
        (format!("Host: evil.example\r\n{bearer}{UPGRADE}"),                    "403 Forbidden"),
        (format!("Host: {address}\r\n{bearer}{UPGRADE}"),                       "101 Switching Protocols"),
    ];
    for (headers, want) in table {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let first = request(&mut stream, &headers).await;
        assert_eq!(first, format!("HTTP/1.1 {want}"), "{headers}");
    }
    let open = WsDoor::open(([0, 0, 0, 0], 0).into(), None, Vec::new()).await.unwrap_err();
    assert!(open.to_string().contains("without auth"), "{open}");
    service.stop().await;
    serving.await.unwrap();
}

#[tokio::test]
async fn a_unix_socket_is_the_users_own_and_goes_with_the_server() {
    let (service, _) = service(ServiceSettings::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    // One that a killed server left behind is taken over.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let door = UnixDoor::open(&path, None).await.unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = UnixDoor::open(&path, None).await.unwrap_err();
    assert!(taken.to_string().contains("another server does already"), "{taken}");
    let serving = tokio::spawn({
        let service = service.clone();
        async move { door.serve(&service).await }
    });
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let first = request(&mut stream, &format!("Host: anything\r\n{UPGRADE}")).await;
    assert_eq!(first, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(converse(stream, "hello").await, "you said hello");
    service.stop().await;
    serving.await.unwrap();
    assert!(!path.exists());
}
