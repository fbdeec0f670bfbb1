//! Moves messages between a WebSocket and line channels, in step with whoever reads at the far end.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::{Bytes, Error as Fault, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stream;
use crate::transport::pump::Signals;
use crate::transport::{Closer, End, FAREWELL, FRAME_LIMIT, Incoming, QUEUE, Transport};

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Starts both directions.
pub(super) fn start(socket: Socket, limit: usize, keepalive: Duration) -> Transport {
    let (gone, signals) = Signals::new();
    let tasks = TaskTracker::new();
    let (outgoing, lines) = mpsc::channel(QUEUE);
    // One place more, reserved from the start, so that the end is told whatever else is waiting.
    let (sender, incoming) = mpsc::channel(QUEUE + 1);
    let (sink, stream) = socket.split();
    if let Ok(last) = sender.clone().try_reserve_owned() {
        let silence = keepalive.saturating_mul(3);
        let reader = Reader { stream, sender, signals: signals.clone(), gone, limit, silence };
        tasks.spawn(reader.run(last));
    }
    tasks.spawn(send(sink, lines, signals.clone(), keepalive));
    let closer = Closer { signals, tasks, group: None };
    Transport { outgoing, incoming, send_limit: FRAME_LIMIT, closer }
}

struct Reader {
    stream: SplitStream<Socket>,
    sender: mpsc::Sender<Incoming>,
    signals: Signals,
    gone: watch::Sender<Option<End>>,
    limit: usize,
    silence: Duration,
}

impl Reader {
    async fn run(mut self, last: mpsc::OwnedPermit<Incoming>) {
        let stop = self.signals.stop.clone();
        let farewell = async {
            stop.cancelled().await;
            sleep(FAREWELL).await;
        };
        let status = tokio::select! {
            biased;
            status = self.read() => status,
            () = farewell => "connection closed".to_owned(),
        };
        // Asked to end, Codex 0.166 hangs up without the goodbye that the RFC wants.
        let status = match self.signals.close.is_cancelled() {
            true => "connection closed".to_owned(),
            false => status,
        };
        tracing::debug!(status, "the connection ended");
        let end = End { status, stderr: String::new() };
        self.signals.eof.cancel();
        self.signals.stop.cancel();
        self.gone.send_replace(Some(end.clone()));
        last.send(Incoming::End(end));
    }

    /// Reads to the end; tells how it came.
    async fn read(&mut self) -> String {
        let mut end = "connection closed".to_owned();
        loop {
            let Ok(next) = timeout(self.silence, self.stream.next()).await else {
                return format!("no sign of life for {:?}", self.silence);
            };
            match next {
                Some(Ok(Message::Text(text))) => self.deliver(line(text.into())).await,
                // Codex sends none; whatever it is, the peer shows what it cannot read.
                Some(Ok(Message::Binary(bytes))) => self.deliver(line(bytes)).await,
                Some(Ok(Message::Close(Some(frame)))) => {
                    let (code, reason) = (u16::from(frame.code), frame.reason);
                    end = format!("closed by the server ({code}) {reason}").trim_end().to_owned();
                }
                // A ping is answered by the library; any frame is a sign of life.
                Some(Ok(_)) => {}
                Some(Err(fault)) => return self.fault(fault).await.unwrap_or(end),
                None => return end,
            }
        }
    }

    /// What a failure means; none if it only confirms the end.
    async fn fault(&mut self, fault: Fault) -> Option<String> {
        match fault {
            Fault::ConnectionClosed | Fault::AlreadyClosed => None,
            Fault::Capacity(CapacityError::MessageTooLong { size, .. }) => {
                self.deliver(Incoming::TooLong { head: Vec::new(), bytes: size as u64 }).await;
                Some(format!("a message of {size} bytes came, and {} are the most", self.limit))
            }
            Fault::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Some("connection lost".to_owned())
            }
            fault => Some(format!("connection lost: {fault}")),
        }
    }

    /// Waits for room: this is the back-pressure. Whoever does not listen does not hold us up.
    async fn deliver(&mut self, incoming: Incoming) {
        tokio::select! {
            biased;
            _ = self.sender.send(incoming) => {}
            () = self.signals.close.cancelled() => {}
        }
    }
}

fn line(bytes: Bytes) -> Incoming {
    Incoming::Line(bytes.into())
}

async fn send(
    sink: SplitSink<Socket, Message>,
    lines: mpsc::Receiver<Vec<u8>>,
    mut signals: Signals,
    keepalive: Duration,
) {
    let stop = signals.stop.clone();
    tokio::select! {
        biased;
        // Nobody reads any more, so nothing need be finished.
        _ = signals.gone() => {}
        sent = write(sink, lines, &stop, keepalive) => if let Err(fault) = sent {
            tracing::debug!(%fault, "cannot write to the server");
            stop.cancel();
        },
    }
}

/// Writes what comes; when stopped, what is queued and no more. Then says goodbye.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut lines: mpsc::Receiver<Vec<u8>>,
    stop: &CancellationToken,
    keepalive: Duration,
) -> Result<(), Fault> {
    let mut pulse = interval(keepalive.max(Duration::from_millis(10)));
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
            line = lines.recv() => line,
            _ = pulse.tick() => {
                sink.send(Message::Ping(Bytes::new())).await?;
                continue;
            }
        };
        let Some(line) = line else { break };
        match Utf8Bytes::try_from(line) {
            Ok(text) => sink.send(Message::Text(text)).await?,
            Err(err) => tracing::warn!(%err, "a line that is no text was not sent"),
        }
    }
    sink.send(Message::Close(None)).await
}
