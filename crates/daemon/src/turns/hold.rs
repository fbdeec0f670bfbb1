//! What cannot be written now is held until it can: a full disk stops no turn for good.
//!
//! While it lasts nothing more is taken from the worker, readers are told why, and whoever wants
//! the turn stopped is heard.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Inner, Live};
use crate::error::Error;
use crate::store::{Change, Store, StoreError};

/// The pause before the next attempt; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Writes changes of turns, however long that takes.
#[derive(Clone)]
pub(super) struct Holder {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    starting: TaskTracker,
}

impl Inner {
    pub(super) fn holder(&self) -> Holder {
        Holder {
            store: self.store.clone(),
            stop: self.stop.clone(),
            starting: self.starting.clone(),
        }
    }
}

impl Holder {
    /// Whether turns are to be let go.
    pub(super) fn stops(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Turns that the backend is being asked for.
    pub(super) fn starts(&self) -> &TaskTracker {
        &self.starting
    }

    /// Commits what belongs to a turn, as soon as it can be written; fails if we stop before.
    pub(super) async fn commit(
        &self,
        live: &Live,
        changes: Vec<Change>,
    ) -> Result<Vec<bool>, Error> {
        let (mut pause, mut told) = (FIRST_PAUSE, false);
        loop {
            match self.store.commit(changes.clone()).await {
                Err(StoreError::Unwritable(why)) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::error!(why, "a turn is held until it can be written");
                    }
                    live.log.hold(Some(why));
                }
                outcome => {
                    live.log.hold(None);
                    return Ok(outcome?);
                }
            }
            self.wait(live, pause).await?;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits; a turn that somebody wants stopped is stopped meanwhile.
    async fn wait(&self, live: &Live, pause: Duration) -> Result<(), Error> {
        let (stopping, control) = (live.stop.is_cancelled(), live.control());
        let waiting = sleep(pause);
        tokio::pin!(waiting);
        tokio::select! {
            () = &mut waiting => return Ok(()),
            () = self.stop.cancelled() => return Err(Error::Stopping),
            () = live.stop.cancelled(), if !stopping => {}
        }
        if let Some(control) = control {
            control.interrupt();
        }
        tokio::select! {
            () = waiting => Ok(()),
            () = self.stop.cancelled() => Err(Error::Stopping),
        }
    }
}
