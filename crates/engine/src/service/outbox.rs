//! What waits to be read by one client: bounded in lines and in bytes, and never waited for.
//!
//! A thread tells what happens without waiting, so a client that stops reading must not hold it
//! up: when its outbox is full, its connection ends. The thread goes on, and the client may come
//! back and resume it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::line::Line;

/// How much may wait to be read.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Lines.
    pub lines: usize,
    /// Bytes of all lines together; one line may be longer than that when nothing else waits.
    pub bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { lines: 1 << 16, bytes: 32 << 20 }
    }
}

/// Where lines for one client are put.
#[derive(Clone, Debug)]
pub struct Outbox {
    lines: mpsc::Sender<Line>,
    waiting: Arc<AtomicUsize>,
    most: usize,
    /// Ends the connection.
    over: CancellationToken,
}

/// Where a transport takes them.
#[derive(Debug)]
pub struct Outgoing {
    lines: mpsc::Receiver<Line>,
    waiting: Arc<AtomicUsize>,
}

/// An outbox and its other end; `over` is cancelled when it is full.
pub(crate) fn outbox(room: Room, over: CancellationToken) -> (Outbox, Outgoing) {
    let (sender, receiver) = mpsc::channel(room.lines.max(1));
    let waiting = Arc::new(AtomicUsize::new(0));
    (
        Outbox { lines: sender, waiting: waiting.clone(), most: room.bytes, over },
        Outgoing { lines: receiver, waiting },
    )
}

impl Outbox {
    /// Puts a line; one for which there is no room ends the connection.
    pub(crate) fn put(&self, line: Line) {
        if self.over.is_cancelled() {
            return;
        }
        let bytes = line.len();
        let before = self.waiting.fetch_add(bytes, Ordering::AcqRel);
        let fits = before == 0 || before + bytes <= self.most;
        if !fits || self.lines.try_send(line).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
            if !self.over.is_cancelled() {
                tracing::warn!(waiting = before, "a client does not read; its connection ends");
            }
            self.over.cancel();
        }
    }
}

impl Outgoing {
    /// The next line; none when there will be no more.
    pub async fn next(&mut self) -> Option<Line> {
        let line = self.lines.recv().await?;
        self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
        Some(line)
    }

    /// The next line if one is waiting.
    pub fn ready(&mut self) -> Option<Line> {
        let line = self.lines.try_recv().ok()?;
        self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> (Outbox, Outgoing, CancellationToken) {
        let over = CancellationToken::new();
        let (outbox, outgoing) = outbox(Room { lines: 4, bytes: 10 }, over.clone());
        (outbox, outgoing, over)
    }

    #[test]
    fn lines_over_the_count_end_the_connection() {
        let (outbox, mut outgoing, over) = small();
        for _ in 0..4 {
            outbox.put("x".into());
        }
        assert!(!over.is_cancelled());
        outbox.put("x".into());
        assert!(over.is_cancelled());
        let left = std::iter::from_fn(|| outgoing.ready()).count();
        assert_eq!(left, 4);
    }

    #[test]
    fn bytes_over_the_limit_end_the_connection_unless_the_line_is_alone() {
        let (outbox, mut outgoing, over) = small();
        outbox.put("twelve bytes".into());
        assert!(!over.is_cancelled(), "a long line alone must pass");
        assert!(outgoing.ready().is_some());
        outbox.put("12345".into());
        outbox.put("12345".into());
        assert!(!over.is_cancelled());
        outbox.put("1".into());
        assert!(over.is_cancelled());
    }

    #[test]
    fn reading_makes_room() {
        let (outbox, mut outgoing, over) = small();
        for _ in 0..1000 {
            outbox.put("123456789".into());
            assert!(outgoing.ready().is_some());
        }
        assert!(!over.is_cancelled());
    }
}
