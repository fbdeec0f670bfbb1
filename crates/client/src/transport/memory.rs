//! Two ends of a connection in memory: lines go from one to the other as they are.

use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use super::pump::Signals;
use super::{Closer, End, FAREWELL, Incoming, LINE_LIMIT, QUEUE, Transport};

/// Two ends; what one sends the other receives. Must be called within a runtime.
///
/// Either end may close; the other then takes what is under way and ends too.
pub fn pair() -> (Transport, Transport) {
    let (left, right) = (Side::new(), Side::new());
    let (to_right, to_left) = (right.inbox(), left.inbox());
    left.tasks.spawn(carry(left.lines, left.signals.clone(), to_right));
    right.tasks.spawn(carry(right.lines, right.signals.clone(), to_left));
    let end = |outgoing, incoming, signals, tasks| {
        let closer = Closer { signals, tasks, group: None };
        Transport { outgoing, incoming, send_limit: LINE_LIMIT, closer }
    };
    (
        end(left.outgoing, left.incoming, left.signals, left.tasks),
        end(right.outgoing, right.incoming, right.signals, right.tasks),
    )
}

struct Side {
    outgoing: mpsc::Sender<Vec<u8>>,
    lines: mpsc::Receiver<Vec<u8>>,
    sender: mpsc::Sender<Incoming>,
    incoming: mpsc::Receiver<Incoming>,
    signals: Signals,
    gone: watch::Sender<Option<End>>,
    tasks: TaskTracker,
}

/// Where the other side's lines arrive.
struct Inbox {
    sender: mpsc::Sender<Incoming>,
    /// Reserved from the start, so that the end is told whatever else is waiting.
    last: Option<mpsc::OwnedPermit<Incoming>>,
    signals: Signals,
    gone: watch::Sender<Option<End>>,
}

impl Side {
    fn new() -> Self {
        let (outgoing, lines) = mpsc::channel(QUEUE);
        let (sender, incoming) = mpsc::channel(QUEUE + 1);
        let (gone, signals) = Signals::new();
        Self { outgoing, lines, sender, incoming, signals, gone, tasks: TaskTracker::new() }
    }

    fn inbox(&self) -> Inbox {
        let sender = self.sender.clone();
        let last = sender.clone().try_reserve_owned().ok();
        Inbox { sender, last, signals: self.signals.clone(), gone: self.gone.clone() }
    }
}

/// Carries lines until the sending side stops, then what is queued and no more.
async fn carry(lines: mpsc::Receiver<Vec<u8>>, from: Signals, mut to: Inbox) {
    let patience = async {
        from.stop.cancelled().await;
        // A receiver that takes nothing must not hold up a sender that wants to be done.
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        biased;
        () = forward(lines, &from, &to) => {}
        () = patience => {}
    }
    to.signals.eof.cancel();
    to.signals.stop.cancel();
    to.gone.send_replace(Some(End::closed()));
    if let Some(last) = to.last.take() {
        last.send(Incoming::End(End::closed()));
    }
}

async fn forward(mut lines: mpsc::Receiver<Vec<u8>>, from: &Signals, to: &Inbox) {
    loop {
        let line = tokio::select! {
            biased;
            () = from.stop.cancelled(), if !lines.is_closed() => {
                lines.close();
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(line) = line else { return };
        tokio::select! {
            biased;
            _ = to.sender.send(Incoming::Line(line)) => {}
            () = to.signals.close.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, timeout};

    use super::*;

    async fn rest(end: &mut Transport) -> Vec<String> {
        let mut heard = Vec::new();
        while let Some(incoming) = end.incoming.recv().await {
            heard.push(match incoming {
                Incoming::Line(line) => String::from_utf8(line).unwrap(),
                Incoming::TooLong { .. } => "too long".to_owned(),
                Incoming::End(end) => end.status,
            });
        }
        heard
    }

    #[tokio::test(start_paused = true)]
    async fn closing_lets_what_is_under_way_arrive() {
        let (left, mut right) = pair();
        left.outgoing.send(b"one".to_vec()).await.unwrap();
        left.outgoing.send(b"two".to_vec()).await.unwrap();
        assert_eq!(left.closer.close().await, End::closed());
        assert_eq!(rest(&mut right).await, ["one", "two", "connection closed"]);
        assert!(right.outgoing.send(Vec::new()).await.is_err());
        assert_eq!(right.closer.close().await, End::closed());
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_an_end_ends_the_other() {
        let (left, mut right) = pair();
        drop(left);
        assert_eq!(rest(&mut right).await, ["connection closed"]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_listen_slows_the_other_and_does_not_hold_its_end_up() {
        let (left, right) = pair();
        let mut sent = 0;
        let send = async {
            loop {
                left.outgoing.send(vec![b'x']).await.unwrap();
                sent += 1;
            }
        };
        assert!(timeout(Duration::from_secs(1), send).await.is_err());
        // Both queues, and the line between them.
        assert_eq!(sent, 2 * QUEUE + 1);
        assert_eq!(left.closer.close().await, End::closed());
        drop(right);
    }
}
