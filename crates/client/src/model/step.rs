//! Step: the part of a turn between two answers of its reader.
//!
//! An AI SDK step ends with `finish` when the turn waits for the caller: for the result of a tool
//! that the caller runs, or for an approval. The turn itself is parked, and the next call, which
//! brings the answers, goes on with it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use futures_util::Stream;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::turn::{Turn, TurnControl};

/// One step of a turn, or the whole of it. Dropped before its end, it interrupts the turn.
#[derive(Debug)]
pub struct Step {
    turn: Option<Turn>,
    control: TurnControl,
    parked: Parked,
}

impl Step {
    pub(super) fn new(turn: Turn, parked: Parked) -> Self {
        Self { control: turn.control(), turn: Some(turn), parked }
    }

    /// The next part; none after `finish`.
    pub async fn next(&mut self) -> Option<Part> {
        std::future::poll_fn(|cx| self.poll_part(cx)).await
    }

    /// A handle to steer and stop the turn from elsewhere.
    pub fn control(&self) -> TurnControl {
        self.control.clone()
    }

    /// The thread.
    pub fn thread_id(&self) -> &ThreadId {
        self.control.thread_id()
    }

    /// The turn.
    pub fn turn_id(&self) -> &TurnId {
        self.control.turn_id()
    }

    /// The turn itself, which goes on past the ends of its steps; none after its end.
    pub fn into_turn(mut self) -> Option<Turn> {
        self.turn.take()
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Part>> {
        let Some(turn) = &mut self.turn else { return Poll::Ready(None) };
        let part = std::task::ready!(Pin::new(turn).poll_next(cx));
        match &part {
            Some(Part::Finish { finish_reason, .. })
                if finish_reason.unified == Unified::ToolCalls =>
            {
                if let Some(turn) = self.turn.take() {
                    self.parked.park(turn);
                }
            }
            None => self.turn = None,
            Some(_) => {}
        }
        Poll::Ready(part)
    }
}

impl Stream for Step {
    type Item = Part;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Part>> {
        self.poll_part(cx)
    }
}

/// Turns that wait for their callers, by thread; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    turns: Arc<Mutex<HashMap<ThreadId, Place>>>,
    /// How long a turn is kept for a caller who does not come back.
    patience: Duration,
}

#[derive(Debug)]
struct Place {
    turn: Turn,
    _timer: Timer,
}

/// A task that ends with its owner.
#[derive(Debug)]
struct Timer(JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Parked {
    pub(super) fn new(patience: Duration) -> Self {
        Self { turns: Arc::default(), patience }
    }

    /// The same turns, the next ones kept for so long.
    pub(super) fn with_patience(&self, patience: Duration) -> Self {
        Self { turns: self.turns.clone(), patience }
    }

    /// The turn of a thread, if one waits.
    pub(super) fn take(&self, thread: &ThreadId) -> Option<Turn> {
        self.turns().remove(thread).map(|place| place.turn)
    }

    /// Whether a turn of this thread waits.
    pub(super) fn has(&self, thread: &ThreadId) -> bool {
        self.turns().contains_key(thread)
    }

    fn park(&self, turn: Turn) {
        let thread = turn.thread_id().clone();
        let (turns, patience, key) = (Arc::downgrade(&self.turns), self.patience, thread.clone());
        // Dropping the turn interrupts it, so that an abandoned one does not run for ever.
        let timer = Timer(tokio::spawn(async move {
            sleep(patience).await;
            let turns = turns.upgrade();
            let place = turns.and_then(|turns| {
                turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&key)
            });
            drop(place);
        }));
        self.turns().insert(thread, Place { turn, _timer: timer });
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<ThreadId, Place>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
