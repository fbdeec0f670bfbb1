//! It is written down that a turn is asked for, before it is.
//!
//! Whoever comes after a crash then knows of every turn whether the backend cannot have heard of it
//! (it is begun), or may have (it is looked for by its mark, `find`).

use std::sync::Arc;

use bindery_client::error::Error as ClientError;
use bindery_client::turn::StartRecorder;
use bindery_core::ids::ThreadId;
use futures_util::future::BoxFuture;

use super::hold::Holder;
use super::open::Scene;
use super::{Inner, Live};
use crate::clock;
use crate::error::Error;
use crate::store::Change;

/// Records the start of one turn.
#[derive(Clone)]
pub(super) struct TurnRecorder {
    holder: Holder,
    live: Arc<Live>,
    thread: String,
    turn: String,
}

impl Inner {
    pub(super) fn recorder(&self, scene: &Scene) -> TurnRecorder {
        TurnRecorder {
            holder: self.holder(),
            live: scene.live.clone(),
            thread: scene.thread.id.clone(),
            turn: scene.turn.id.clone(),
        }
    }
}

impl TurnRecorder {
    /// The mark of a turn whose caller gives it none.
    pub(super) fn own_mark(&self) -> String {
        self.turn.clone()
    }

    /// Writes down that the turn is asked for in this session, unless we stop.
    pub(super) async fn write(self, session: String, mark: String) -> Result<(), Error> {
        // Taken before we look whether we stop: who stops us waits for all who have one.
        self.live.enter_start(self.holder.starts());
        if self.holder.stops() {
            self.live.leave_start();
            return Err(Error::Stopping);
        }
        let (thread, turn, at) = (self.thread, self.turn, clock::now());
        let changes = vec![
            Change::BindThread { thread, session, at },
            Change::MarkTurn { turn, mark: mark.clone() },
        ];
        self.holder.commit(&self.live, changes).await.inspect_err(|_| self.live.leave_start())?;
        self.live.set_asked(true);
        Ok(())
    }
}

impl StartRecorder for TurnRecorder {
    fn mark(&self) -> String {
        self.own_mark()
    }

    fn record(
        &self,
        thread: ThreadId,
        mark: String,
    ) -> BoxFuture<'static, Result<(), ClientError>> {
        let recorder = self.clone();
        Box::pin(async move {
            recorder.write(thread.to_string(), mark).await.map_err(|err| match err {
                Error::Stopping => ClientError::ShuttingDown,
                other => ClientError::NotRecorded { why: other.to_string() },
            })
        })
    }
}
