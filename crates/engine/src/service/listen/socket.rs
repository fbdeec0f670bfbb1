//! One client behind a WebSocket: a message is a line.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as Fault, Message, Utf8Bytes};

use super::gate::{Gate, Verdict, read_head};
use super::pump::patience;
use crate::service::Service;
use crate::service::connection::{Incoming, LINE_LIMIT, Wire};
use crate::service::outbox::Outgoing;

/// How long a client may take to say what it wants.
const GREETING: Duration = Duration::from_secs(10);

/// How often a client is asked for a sign of life.
const PULSE: Duration = Duration::from_secs(30);

/// How long it may give none.
const SILENCE: Duration = Duration::from_secs(100);

/// A byte stream that carries a WebSocket.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Lets a client in if it may, and serves it to its end.
pub(super) async fn serve(service: &Service, gate: &Gate, mut stream: impl Stream) {
    let admitted = tokio::select! {
        biased;
        () = service.stopping().cancelled() => return,
        admitted = timeout(GREETING, admit(service, gate, &mut stream)) => admitted,
    };
    let rest = match admitted {
        Ok(Ok(Some(rest))) => rest,
        Ok(Ok(None)) => return,
        Ok(Err(err)) => return tracing::debug!(%err, "no WebSocket"),
        Err(_) => return tracing::debug!("a client did not say what it wants"),
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(LINE_LIMIT))
        .max_frame_size(Some(LINE_LIMIT));
    let socket =
        WebSocketStream::from_partially_read(stream, rest, Role::Server, Some(config)).await;
    exchange(socket, service).await;
}

async fn admit(
    service: &Service,
    gate: &Gate,
    stream: &mut impl Stream,
) -> std::io::Result<Option<Vec<u8>>> {
    let (head, rest) = read_head(stream).await?;
    let (text, rest) = match gate.judge(&head) {
        Verdict::Upgrade { .. } if service.is_full() => {
            let body = "too many connections";
            (refusal("503 Service Unavailable", body), None)
        }
        Verdict::Upgrade { accept } => (welcome(&accept), Some(rest)),
        Verdict::Answer { status, body } => (refusal(status, body), None),
    };
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await?;
    if rest.is_none() {
        stream.shutdown().await?;
    }
    Ok(rest)
}

fn welcome(accept: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    )
}

fn refusal(status: &str, body: &str) -> String {
    let kind = if body.is_empty() { "" } else { "content-type: text/plain; charset=utf-8\r\n" };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{kind}content-length: {length}\r\n\r\n{body}"
    )
}

async fn exchange(socket: WebSocketStream<impl Stream>, service: &Service) {
    let Wire { incoming, outgoing, over } = service.connect();
    let (sink, stream) = socket.split();
    let reading = async {
        read(stream, incoming).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        written = write(sink, outgoing) => if let Err(fault) = written {
            tracing::debug!(%fault, "the client does not take what is told");
        },
        () = reading => {}
        () = patience(service.stopping()) => {}
    }
    over.cancel();
}

/// Reads until the client hangs up, breaks the rules or is silent for too long.
async fn read(
    mut stream: SplitStream<WebSocketStream<impl Stream>>,
    incoming: mpsc::Sender<Incoming>,
) {
    while let Ok(Some(Ok(message))) = timeout(SILENCE, stream.next()).await {
        match message {
            Message::Text(text) => {
                let line = Incoming::Line(Bytes::from(text).into());
                if incoming.send(line).await.is_err() {
                    return;
                }
            }
            Message::Close(_) => return,
            // As Codex does: what is no text is no message. Pings are answered by the library.
            _ => {}
        }
    }
}

async fn write(
    mut sink: SplitSink<WebSocketStream<impl Stream>, Message>,
    mut outgoing: Outgoing,
) -> Result<(), Fault> {
    let mut pulse = interval(PULSE);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pulse.tick().await;
    loop {
        let line = tokio::select! {
            biased;
            line = outgoing.next() => line,
            _ = pulse.tick() => {
                sink.send(Message::Ping(Bytes::new())).await?;
                continue;
            }
        };
        let Some(mut line) = line else { break };
        // Lines that wait go together.
        loop {
            sink.feed(Message::Text(Utf8Bytes::from(&*line))).await?;
            match outgoing.ready() {
                Some(next) => line = next,
                None => break,
            }
        }
        sink.flush().await?;
    }
    sink.send(Message::Close(None)).await
}
