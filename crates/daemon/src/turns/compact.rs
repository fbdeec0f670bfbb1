//! A compaction: a turn of which nothing is told but how it ended.

use std::time::Duration;

use bindery_core::part::Part;
use bindery_core::usage::Unified;
use tokio::time::sleep;

use super::close::{Ending, finish};
use super::flow::Flow;
use super::open::session;
use crate::error::Error;

/// How often to look whether one that was found is over.
const GLANCE: Duration = Duration::from_millis(100);

impl Flow<'_> {
    /// Compacts the thread, or waits for a compaction that was asked for before.
    pub(super) async fn compact(self) -> Result<(), Error> {
        let inner = self.inner;
        let compacted = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return Ok(()),
            compacted = self.compacted() => compacted,
        };
        self.scene.live.leave_start();
        match (compacted, &self.scene.live.gone) {
            (Ok(()), _) => self.end_compaction().await,
            (Err(_), _) if inner.stop.is_cancelled() => Ok(()),
            (Err(_), Some(why)) => self.lost(Vec::new(), why).await,
            (Err(err), None) => self.fail(&err).await,
        }
    }

    async fn end_compaction(mut self) -> Result<(), Error> {
        let start = Part::StreamStart { warnings: Vec::new() };
        let parts = [start, finish(Unified::Stop, "completed")];
        self.end(&parts, Ending::success(), None, "the turn has ended").await
    }

    async fn compacted(&self) -> Result<(), Error> {
        let (inner, scene) = (self.inner, self.scene);
        while scene.live.is_asked() {
            match inner.find_begun(scene).await? {
                Some(found) if found.status == "inProgress" => sleep(GLANCE).await,
                Some(found) if found.status == "completed" => return Ok(()),
                Some(found) => {
                    let message = format!("the compaction ended: {}", found.status);
                    return Err(Error::Conflict { code: "compaction", message });
                }
                None => break,
            }
        }
        let recorder = inner.recorder(scene);
        let mark = recorder.own_mark();
        recorder.write(session(&scene.thread)?.to_string(), mark).await?;
        inner.compact(scene).await
    }
}
