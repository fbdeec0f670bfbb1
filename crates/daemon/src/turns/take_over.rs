//! A turn whose connection was lost while its worker lives is taken over again.

use std::time::{Duration, Instant};

use bindery_client::error::Error as ClientError;
use tokio::time::sleep;

use super::flow::Flow;
use super::open::{Opened, Scene};
use crate::error::Error;

/// How often in a row a turn is taken over again from a worker that lives.
const REATTACH: u32 = 5;

/// How long it may take until a turn is taken over, and the pauses between attempts: the pool lets
/// some time pass between connections that do not last.
pub(super) const TAKE_OVER: Duration = Duration::from_secs(90);
pub(super) const TAKE_OVER_PAUSE: Duration = Duration::from_millis(200);

impl Flow<'_> {
    /// The worker lives, so its turns do: takes this one over, as soon as that can be done.
    pub(super) async fn again(&mut self, attempt: u32) -> Result<Opened, String> {
        let (tenant, backend) = (&self.scene.tenant, &self.scene.thread.backend);
        if attempt > REATTACH {
            return Err("the connection is lost again and again".to_owned());
        }
        let begin = Instant::now();
        loop {
            if let Some(obituary) = self.inner.workers.is_gone(tenant, backend).await {
                return Err(obituary);
            }
            match self.take_over().await {
                Ok(opened) => return Ok(opened),
                Err(err) if is_passing(&err) && begin.elapsed() < TAKE_OVER => {
                    tracing::debug!(turn = self.scene.turn.id, %err, "not taken over yet");
                    tokio::select! {
                        () = sleep(TAKE_OVER_PAUSE) => {}
                        () = self.inner.stop.cancelled() => return Err(err.to_string()),
                    }
                }
                Err(err) => return Err(err.to_string()),
            }
        }
    }

    async fn take_over(&mut self) -> Result<Opened, Error> {
        let Scene { tenant, thread, turn, live } = self.scene;
        let scene = self.inner.scene(&tenant.id, &thread.id, &turn.id).await;
        let gone = || Error::not_found("turn", turn.id.as_str());
        let mut scene = scene?.ok_or_else(gone)?;
        let request = std::mem::take(&mut scene.turn.request);
        tracing::info!(turn = turn.id, "the connection was lost; the turn is taken over again");
        // What was asked is asked again, under the same names.
        live.interrupts.forget();
        self.changes = live.interrupts.watch();
        self.inner.adopt(&scene, request).await
    }
}

/// Whether a worker that lives may be reached later.
fn is_passing(err: &Error) -> bool {
    use ClientError::{BackOff, Closed, Connect, PoolBusy, Timeout, Worker};
    let Error::Client(err) = err else { return false };
    matches!(
        err,
        BackOff { .. }
            | PoolBusy { .. }
            | Closed { .. }
            | Connect { .. }
            | Timeout { .. }
            | Worker(_)
    )
}
