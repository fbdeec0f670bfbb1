//! WebSockets: who is let in, what a server may do wrong, what our end does right.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::transport::dial::{self, Dial, Token};
use bindery_client::transport::{Incoming, Transport};
use bindery_testkit::codex::RealCodex;
use bindery_testkit::listening::Listening;
use bindery_testkit::model::{Model, Script};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::server::LONG;

/// A listener and how to reach it.
async fn listen() -> (TcpListener, Dial) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    (listener, Dial::new(address.parse().unwrap()))
}

/// A connection with a WebSocket server of the test's own.
async fn connected(change: impl Fn(&mut Dial)) -> (Transport, WebSocketStream<TcpStream>) {
    let (listener, mut dial) = listen().await;
    change(&mut dial);
    let accept = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let (transport, far) = tokio::join!(dial::connect(&dial), accept);
    (transport.unwrap(), far)
}

async fn next(transport: &mut Transport) -> String {
    let incoming = timeout(LONG, transport.incoming.recv()).await.expect("nothing came");
    match incoming.expect("an end") {
        Incoming::Line(line) => String::from_utf8(line).unwrap(),
        Incoming::TooLong { bytes, .. } => format!("{bytes} bytes"),
        Incoming::End(end) => format!("end: {}", end.status),
    }
}

#[tokio::test]
async fn only_the_right_token_opens_the_door() {
    let model = Model::start(Script::default());
    let codex = RealCodex::new(&model);
    let file = codex.user_home().join("token");
    std::fs::write(&file, "right-token\n").unwrap();
    let path = file.display().to_string();
    let guarded = ["--ws-auth", "capability-token", "--ws-token-file", &path];
    let listening = Listening::ws(&codex, &guarded);
    let mut dial = Dial::new(listening.address().parse().unwrap());
    let refused = async |dial: &Dial| match dial::connect(dial).await {
        Err(Error::Unauthorized { status, message, .. }) => format!("{status}: {message}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&dial).await, "401: missing websocket bearer token");
    dial.token = Some(Token::new("wrong-token"));
    assert_eq!(refused(&dial).await, "401: invalid websocket bearer token");
    let shown = format!("{dial:?} {:?}", dial::connect(&dial).await);
    assert!(!shown.contains("wrong-token"), "{shown}");
    dial.token = Some(Token::new(std::fs::read_to_string(&file).unwrap()));
    let transport = dial::connect(&dial).await.unwrap();
    AppServer::connect(transport, &ConnectOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_token_does_not_travel_in_the_clear() {
    let mut dial = Dial::new("ws://192.0.2.1:9".parse().unwrap());
    dial.token = Some(Token::new("t"));
    let err = dial::connect(&dial).await.unwrap_err();
    assert_eq!(err.code(), "address");
}

#[tokio::test]
async fn what_cannot_be_reached_says_why() {
    let (listener, dial) = listen().await;
    drop(listener);
    let err = dial::connect(&dial).await.unwrap_err();
    assert_eq!(err.code(), "connect");
    assert!(err.to_string().contains("refused"), "{err}");
    let stdio = Dial::new("stdio:".parse().unwrap());
    assert_eq!(dial::connect(&stdio).await.unwrap_err().code(), "address");
    #[cfg(unix)]
    {
        let gone = Dial::new("unix:///nowhere/at.all".parse().unwrap());
        let err = dial::connect(&gone).await.unwrap_err();
        assert!(err.to_string().contains("`/nowhere/at.all`: No such file"), "{err}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let (_listener, mut dial) = listen().await;
    dial.deadline = Duration::from_millis(50);
    assert_eq!(dial::connect(&dial).await.unwrap_err().code(), "timeout");
}

#[tokio::test]
async fn too_long_a_message_is_told_and_ends_the_connection() {
    let (mut transport, mut far) = connected(|dial| dial.message_limit = 1000).await;
    far.send(Message::text("x".repeat(1000))).await.unwrap();
    assert_eq!(next(&mut transport).await.len(), 1000);
    far.send(Message::text("y".repeat(5000))).await.unwrap();
    assert_eq!(next(&mut transport).await, "5000 bytes");
    let end = next(&mut transport).await;
    assert_eq!(end, "end: a message of 5000 bytes came, and 1000 are the most");
    timeout(LONG, transport.closer.close()).await.expect("closing hangs");
}

#[tokio::test]
async fn closing_sends_what_was_queued_and_says_goodbye() {
    let (transport, mut far) = connected(|_| {}).await;
    for number in 0..5 {
        transport.outgoing.send(format!("line {number}").into_bytes()).await.unwrap();
    }
    let server = async {
        let mut heard = Vec::new();
        while let Some(Ok(message)) = far.next().await {
            match message {
                Message::Text(text) => heard.push(text.to_string()),
                Message::Close(_) => heard.push("close".to_owned()),
                _ => {}
            }
        }
        heard
    };
    let (end, heard) = tokio::join!(transport.closer.close(), server);
    assert_eq!(heard, ["line 0", "line 1", "line 2", "line 3", "line 4", "close"]);
    assert_eq!(end.status, "connection closed");
}

#[tokio::test]
async fn a_server_that_does_not_read_does_not_hold_up_the_closing() {
    let (transport, far) = connected(|_| {}).await;
    for _ in 0..8 {
        transport.outgoing.send(vec![b'x'; 4 * 1024 * 1024]).await.unwrap();
    }
    timeout(LONG, transport.closer.close()).await.expect("closing hangs");
    drop(far);
}

#[tokio::test]
async fn the_servers_goodbye_and_its_silence_are_told() {
    let (mut transport, mut far) = connected(|_| {}).await;
    far.close(None).await.unwrap();
    assert_eq!(next(&mut transport).await, "end: connection closed");
    let (mut transport, far) = connected(|dial| dial.keepalive = Duration::from_millis(50)).await;
    // It accepts and then does nothing at all, as one does whose machine has lost its network.
    assert_eq!(next(&mut transport).await, "end: no sign of life for 150ms");
    drop(far);
}

#[tokio::test]
async fn pings_go_both_ways() {
    let (mut transport, mut far) =
        connected(|dial| dial.keepalive = Duration::from_millis(200)).await;
    far.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
    let (mut pinged, mut ponged) = (false, false);
    while !(pinged && ponged) {
        match timeout(LONG, far.next()).await.expect("no pulse").unwrap().unwrap() {
            Message::Ping(_) => pinged = true,
            Message::Pong(bytes) => ponged = bytes == "there?",
            other => panic!("{other:?}"),
        }
    }
    far.send(Message::text("still here")).await.unwrap();
    assert_eq!(next(&mut transport).await, "still here");
}

fn file(name: &str) -> PathBuf {
    bindery_testkit::tls::file(name)
}

/// Serves one connection over TLS and echoes what it hears.
async fn echo_over_tls(listener: TcpListener) {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let tcp = listener.accept().await.unwrap().0;
    let Ok(tls) = TlsAcceptor::from(Arc::new(config)).accept(tcp).await else { return };
    let mut socket = accept_async(tls).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() {
            socket.send(message).await.unwrap();
        }
    }
}

#[tokio::test]
async fn tls_takes_a_certificate_it_was_told_to_trust_and_no_other() {
    let (listener, mut dial) = listen().await;
    let port = listener.local_addr().unwrap().port();
    dial.address = format!("wss://localhost:{port}").parse().unwrap();
    dial.authority = Some(file("ca.pem"));
    dial.token = Some(Token::new("t"));
    let (transport, ()) = tokio::join!(
        async {
            let mut transport = dial::connect(&dial).await.unwrap();
            transport.outgoing.send(b"over tls".to_vec()).await.unwrap();
            assert_eq!(next(&mut transport).await, "over tls");
            transport.closer.close().await;
        },
        echo_over_tls(listener)
    );
    let () = transport;
    let (listener, _) = listen().await;
    let port = listener.local_addr().unwrap().port();
    dial.address = format!("wss://localhost:{port}").parse().unwrap();
    // An authority, but not the one that signed the server.
    dial.authority = Some(file("server.pem"));
    let (refused, ()) = tokio::join!(dial::connect(&dial), echo_over_tls(listener));
    let err = refused.unwrap_err();
    assert_eq!(err.code(), "connect");
    assert!(err.to_string().contains("certificate"), "{err}");
}
