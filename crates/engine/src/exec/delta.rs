//! Live output on its way to whoever watches.
//!
//! A slow watcher slows no command: what it has not fetched is handed over in one piece, and
//! beyond a bound it is left out and counted. The result of the call does not come from here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::head_tail::unfinished;

/// Bytes that wait for a watcher at most.
const MOST: usize = 64 * 1024;

/// A piece of live output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Its text.
    pub text: String,
    /// How many bytes after it were left out because the watcher was slow.
    pub left_out: u64,
}

/// The watcher's end.
#[derive(Debug)]
pub struct Deltas {
    shared: Arc<Shared>,
}

/// The command's end.
#[derive(Debug)]
pub(super) struct Tap {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    left_out: u64,
    ended: bool,
    unwatched: bool,
}

pub(super) fn channel() -> (Tap, Deltas) {
    let shared = Arc::new(Shared::default());
    (Tap { shared: Arc::clone(&shared) }, Deltas { shared })
}

impl Tap {
    /// Offers bytes; never waits.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut waiting = self.shared.waiting();
        if waiting.unwatched {
            return;
        }
        // Once something is left out the rest is too, so that the gap is at one place.
        let room = if waiting.left_out > 0 { 0 } else { MOST - waiting.bytes.len() };
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        waiting.bytes.extend_from_slice(first);
        waiting.left_out += rest.len() as u64;
        drop(waiting);
        self.shared.news.notify_one();
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.waiting().ended = true;
        self.shared.news.notify_one();
    }
}

impl Deltas {
    /// What has come since the last call; `None` after the end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Delta> {
        loop {
            let news = self.shared.news.notified();
            {
                let mut waiting = self.shared.waiting();
                if let Some(delta) = waiting.take() {
                    return Some(delta);
                }
                if waiting.ended {
                    return None;
                }
            }
            news.await;
        }
    }
}

impl Drop for Deltas {
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting();
        waiting.unwatched = true;
        waiting.bytes = Vec::new();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Half a character waits for its other half, unless that cannot come any more.
    fn take(&mut self) -> Option<Delta> {
        let final_piece = self.ended || self.left_out > 0;
        let keep = if final_piece { 0 } else { unfinished(&self.bytes) };
        let rest = self.bytes.split_off(self.bytes.len() - keep);
        let bytes = std::mem::replace(&mut self.bytes, rest);
        let left_out = std::mem::take(&mut self.left_out);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.is_empty() || left_out > 0).then_some(Delta { text, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: &str, left_out: u64) -> Option<Delta> {
        Some(Delta { text: text.to_owned(), left_out })
    }

    #[tokio::test]
    async fn pieces_are_put_together_and_characters_kept_whole() {
        let (tap, mut deltas) = channel();
        let euro = "€".as_bytes();
        tap.push(b"one ");
        tap.push(b"two");
        tap.push(&euro[..1]);
        assert_eq!(deltas.next().await, delta("one two", 0));
        tap.push(&euro[1..]);
        assert_eq!(deltas.next().await, delta("€", 0));
        tap.push(&euro[..2]);
        drop(tap);
        assert_eq!(deltas.next().await, delta("\u{FFFD}", 0));
        assert_eq!(deltas.next().await, None);
    }

    #[tokio::test]
    async fn a_slow_watcher_misses_some_and_is_told() {
        let (tap, mut deltas) = channel();
        let piece = vec![b'x'; MOST / 2];
        (0..5).for_each(|_| tap.push(&piece));
        let got = deltas.next().await.unwrap();
        assert_eq!((got.text.len(), got.left_out), (MOST, 3 * (MOST as u64) / 2));
        tap.push(b"again");
        assert_eq!(deltas.next().await, delta("again", 0));
    }

    #[tokio::test]
    async fn nobody_watching_costs_nothing() {
        let (tap, deltas) = channel();
        drop(deltas);
        (0..1000).for_each(|_| tap.push(&[b'x'; 4096]));
        assert_eq!(tap.shared.waiting().bytes.capacity(), 0);
    }
}
