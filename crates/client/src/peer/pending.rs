//! Requests that wait for their reply.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindery_core::wire::rpc::{RequestId, RpcError};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::transport::End;

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum Failure {
    Refused(RpcError),
    TooLong { bytes: u64 },
    Closed(End),
}

impl Failure {
    pub(super) fn of(self, method: &str) -> Error {
        let method = method.to_owned();
        match self {
            Self::Refused(RpcError { code, message, data }) => {
                Error::Rpc { method, code, message, data }
            }
            Self::TooLong { bytes } => Error::LineTooLong { method, bytes },
            Self::Closed(end) => super::closed(end),
        }
    }
}

type Outcome = Result<Box<RawValue>, Failure>;

/// Who waits for which number.
#[derive(Debug, Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    strays: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<i64, oneshot::Sender<Outcome>>,
    end: Option<End>,
}

impl Pending {
    /// Must precede the sending, or the reply could come first.
    pub(super) fn register(&self, number: i64) -> Result<Waiting<'_>, Failure> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(Failure::Closed(end.clone()));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(number, sender);
        Ok(Waiting { pending: self, number, receiver })
    }

    /// Gives a reply to whoever waits for it.
    pub(super) fn settle(&self, id: &RequestId, outcome: Outcome) {
        let waiting = match id {
            RequestId::Number(number) => self.state().waiting.remove(number),
            RequestId::Text(_) => None,
        };
        if waiting.is_none_or(|sender| sender.send(outcome).is_err()) {
            self.strays.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%id, "a reply nobody waits for");
        }
    }

    /// Fails all who wait and all who will; the first end is the one that counts.
    pub(super) fn end(&self, end: &End) {
        let mut state = self.state();
        let end = state.end.get_or_insert_with(|| end.clone()).clone();
        for (_, sender) in state.waiting.drain() {
            // Whoever stopped waiting need not be told.
            let _ = sender.send(Err(Failure::Closed(end.clone())));
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    pub(super) fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One wait; dropping it withdraws it.
pub(super) struct Waiting<'a> {
    pending: &'a Pending,
    number: i64,
    receiver: oneshot::Receiver<Outcome>,
}

impl Waiting<'_> {
    pub(super) async fn outcome(mut self) -> Outcome {
        match (&mut self.receiver).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Closed(End::closed())),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pending.state().waiting.remove(&self.number);
    }
}
