//! Moves lines between byte streams and a connection.

use std::time::Duration;

use bindery_core::lines::{Line as Cut, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::service::connection::{Incoming, LINE_LIMIT, Wire};
use crate::service::outbox::Outgoing;

/// How long a client may take to read what is left when the server stops.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

/// As much as is read or written at once.
const CHUNK: usize = 64 * 1024;

/// Carries lines until either side is done: one JSON object a line.
pub async fn carry(
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite + Unpin,
    wire: Wire,
    stop: &CancellationToken,
) {
    let Wire { incoming, outgoing, over } = wire;
    let reading = async {
        read_lines(read, incoming).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        written = write_lines(write, outgoing) => if let Err(err) = written {
            tracing::debug!(%err, "the client does not take what is told");
        },
        () = reading => {}
        () = patience(stop) => {}
    }
    over.cancel();
}

/// Ends a moment after the server was stopped.
pub(super) async fn patience(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(FAREWELL).await;
}

async fn read_lines(mut read: impl AsyncRead + Unpin, incoming: mpsc::Sender<Incoming>) {
    let mut splitter = LineSplitter::new(LINE_LIMIT);
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match read.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let mut chunk = &buffer[..read];
        while let Some(line) = splitter.take(&mut chunk) {
            if !deliver(&incoming, line).await {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        deliver(&incoming, line).await;
    }
}

async fn deliver(incoming: &mpsc::Sender<Incoming>, line: Cut) -> bool {
    let line = match line {
        // An empty line says nothing.
        Cut::Whole(line) if line.is_empty() => return true,
        Cut::Whole(line) => Incoming::Line(line),
        Cut::TooLong { head, bytes } => Incoming::TooLong { head, bytes },
    };
    incoming.send(line).await.is_ok()
}

async fn write_lines(
    mut write: impl AsyncWrite + Unpin,
    mut outgoing: Outgoing,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(line) = outgoing.next().await {
        let mut next = Some(line);
        // Small lines that wait go together.
        while let Some(line) = next {
            buffer.extend_from_slice(line.as_bytes());
            buffer.push(b'\n');
            next = (buffer.len() < CHUNK).then(|| outgoing.ready()).flatten();
        }
        write.write_all(&buffer).await?;
        write.flush().await?;
        buffer.clear();
        buffer.shrink_to(CHUNK);
    }
    Ok(())
}
