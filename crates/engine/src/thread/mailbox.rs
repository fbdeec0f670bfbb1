//! Input that waits for a running turn to take it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ThreadError, TurnInput};

/// Messages that may wait; a client that sends more is told to wait itself.
const MOST: usize = 64;

/// Shared by the thread's task, which puts in, and the turn, which takes out.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<TurnInput>,
    closed: bool,
}

impl Mailbox {
    pub(crate) fn put(&self, input: TurnInput) -> Result<(), ThreadError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ThreadError::NothingToSteer);
        }
        if state.waiting.len() >= MOST {
            return Err(ThreadError::TooMuchWaiting);
        }
        state.waiting.push_back(input);
        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<TurnInput> {
        self.lock().waiting.drain(..).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Closes it if nothing waits. Only then may the turn end: input that was accepted is
    /// answered.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed = state.closed || state.waiting.is_empty();
        state.closed
    }

    /// Closes it for good and gives what nobody took.
    pub(crate) fn close(&self) -> Vec<TurnInput> {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
