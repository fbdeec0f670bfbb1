//! Moves bytes between streams and line channels, in step with whoever reads at the far end.

use bindery_core::lines::{Line, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{End, Incoming, QUEUE};

/// What the tasks of a connection tell each other.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    /// We want to be done: lines nobody takes may be dropped.
    pub(super) close: CancellationToken,
    /// The connection is to end: a child of `close`, also set when a stream ends by itself.
    pub(super) stop: CancellationToken,
    /// Nothing more can be read.
    pub(super) eof: CancellationToken,
    /// The other side is no more.
    gone: watch::Receiver<Option<End>>,
}

impl Signals {
    pub(super) fn new() -> (watch::Sender<Option<End>>, Self) {
        let (sender, gone) = watch::channel(None);
        let close = CancellationToken::new();
        let stop = close.child_token();
        (sender, Self { close, stop, eof: CancellationToken::new(), gone })
    }

    /// Waits for the end; a sender that vanished is one too.
    pub(super) async fn gone(&mut self) -> End {
        match self.gone.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_else(End::closed),
            Err(_) => End::closed(),
        }
    }

    fn is_gone(&self) -> bool {
        self.gone.borrow().is_some()
    }
}

/// Starts both directions.
pub(super) fn start(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    line_limit: usize,
    signals: &Signals,
    tasks: &TaskTracker,
) -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Incoming>) {
    let (outgoing, lines) = mpsc::channel(QUEUE);
    // One place more, reserved from the start, so that the end is told whatever else is waiting.
    let (sender, incoming) = mpsc::channel(QUEUE + 1);
    if let Ok(last) = sender.clone().try_reserve_owned() {
        let splitter = LineSplitter::new(line_limit);
        let reader = Reader { read, splitter, sender, signals: signals.clone() };
        tasks.spawn(reader.run(last));
    }
    tasks.spawn(send(write, lines, signals.clone()));
    (outgoing, incoming)
}

/// The most that can still be in a pipe whose writer is dead.
const PIPE: usize = 1024 * 1024;

/// How long to wait for what is still in a pipe whose writer is dead but which somebody holds open.
const LEFTOVERS: Duration = Duration::from_millis(300);

struct Reader<R> {
    read: R,
    splitter: LineSplitter,
    sender: mpsc::Sender<Incoming>,
    signals: Signals,
}

impl<R: AsyncRead + Send + Unpin> Reader<R> {
    async fn run(mut self, last: mpsc::OwnedPermit<Incoming>) {
        let mut buffer = vec![0; 64 * 1024];
        let mut leftovers = PIPE;
        loop {
            let read = self.next(&mut buffer).await;
            let mut chunk = &buffer[..read];
            while let Some(line) = self.splitter.take(&mut chunk) {
                self.deliver(line).await;
            }
            if self.signals.is_gone() {
                leftovers = leftovers.saturating_sub(read);
            }
            if read == 0 || leftovers == 0 {
                break;
            }
        }
        if let Some(line) = self.splitter.finish() {
            self.deliver(line).await;
        }
        drop(self.read);
        self.signals.eof.cancel();
        self.signals.stop.cancel();
        last.send(Incoming::End(self.signals.gone().await));
    }

    /// Reads; 0 means that nothing more is to be expected.
    async fn next(&mut self, buffer: &mut [u8]) -> usize {
        let read = tokio::select! {
            biased;
            read = self.read.read(buffer) => Some(read),
            _ = self.signals.gone() => None,
        };
        // A read that was given up has taken nothing, so it can be tried again.
        let read = match read {
            Some(read) => Ok(read),
            None => timeout(LEFTOVERS, self.read.read(buffer)).await,
        };
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(err)) => {
                tracing::debug!(%err, "cannot read from the server");
                0
            }
            Err(_) => 0,
        }
    }

    /// Waits for room: this is the back-pressure. Whoever does not listen does not hold us up.
    async fn deliver(&mut self, line: Line) {
        let incoming = match line {
            Line::Whole(line) => Incoming::Line(line),
            Line::TooLong { head, bytes } => Incoming::TooLong { head, bytes },
        };
        tokio::select! {
            biased;
            _ = self.sender.send(incoming) => {}
            () = self.signals.close.cancelled() => {}
        }
    }
}

async fn send(
    write: impl AsyncWrite + Unpin,
    lines: mpsc::Receiver<Vec<u8>>,
    mut signals: Signals,
) {
    let stop = signals.stop.clone();
    tokio::select! {
        biased;
        // A dead server's stdin may be held open by a process it left behind.
        _ = signals.gone() => {}
        sent = write_lines(write, lines, &stop) => if let Err(err) = sent {
            tracing::debug!(%err, "cannot write to the server");
            // It does not listen any more, so no request can be answered.
            stop.cancel();
        },
    }
}

/// Writes what comes; when stopped, what is queued and no more. Then the stream is closed.
async fn write_lines(
    mut write: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    stop: &CancellationToken,
) -> std::io::Result<()> {
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(mut line) = line else { break };
        line.push(b'\n');
        write.write_all(&line).await?;
        write.flush().await?;
    }
    write.shutdown().await
}
