//! Whether the store can be written, tried at most once a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{Change, Store, StoreError};
use crate::clock;

/// How long an outcome counts; anybody may ask.
const LASTING: Duration = Duration::from_secs(1);

/// Tries to write; clones share what came of it.
#[derive(Clone, Debug, Default)]
pub struct WriteProbe {
    last: Arc<Mutex<Option<Outcome>>>,
}

/// When it was tried, and why it failed, if it did.
type Outcome = (Instant, Option<String>);

impl WriteProbe {
    /// Fails as a write would.
    pub async fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|(at, _)| at.elapsed() > LASTING) {
            let outcome = store.commit(vec![Change::Probe { at: clock::now() }]).await;
            let why = match outcome {
                Err(StoreError::Unwritable(why)) => Some(why),
                outcome => outcome.map(|_| None)?,
            };
            *last = Some((Instant::now(), why));
        }
        match last.as_ref().and_then(|(_, why)| why.clone()) {
            Some(why) => Err(StoreError::Unwritable(why)),
            None => Ok(()),
        }
    }
}
