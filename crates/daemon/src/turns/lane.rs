//! A thread's queue: one turn at a time, in the order they were asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::{Inner, lock};
use crate::error::Error;
use crate::tenant::Tenant;

/// The turns of one thread.
#[derive(Debug, Default)]
pub(super) struct Lane {
    tenant: String,
    queue: VecDeque<Job>,
    /// Places that are taken and not filled yet.
    reserved: usize,
    /// Bytes of those, and of what waits.
    bytes: u64,
    /// A task sees to it.
    runs: bool,
}

impl Lane {
    fn waiting(&self) -> usize {
        self.queue.len() + self.reserved
    }
}

/// A turn to run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) turn: String,
    /// The length of its request.
    pub(super) bytes: u64,
    /// What of it is traced, below the request that asked for it.
    span: Span,
}

/// A place in a lane, given back unless it is taken.
pub(super) struct Place<'a> {
    inner: &'a Arc<Inner>,
    tenant: String,
    thread: String,
    bytes: u64,
    taken: bool,
}

impl Place<'_> {
    /// Fills the place.
    pub(super) fn take(mut self, turn: &str, adopt: bool) {
        self.taken = true;
        let mut lanes = lock(&self.inner.lanes);
        let Some(lane) = lanes.get_mut(&self.thread) else { return };
        lane.reserved -= 1;
        let span = tracing::debug_span!(
            "turn",
            turn.id = turn,
            turn.adopted = adopt,
            thread.id = self.thread,
            tenant.id = self.tenant,
            turn.state = Empty,
            otel.status_code = Empty,
        );
        lane.queue.push_back(Job { turn: turn.to_owned(), bytes: self.bytes, span });
        if !std::mem::replace(&mut lane.runs, true) {
            let (inner, tenant) = (self.inner.clone(), self.tenant.clone());
            self.inner.tasks.spawn(run(inner, tenant, self.thread.clone()));
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut lanes = lock(&self.inner.lanes);
        if let Some(lane) = lanes.get_mut(&self.thread) {
            lane.reserved -= 1;
            lane.bytes -= self.bytes;
            if lane.waiting() == 0 && !lane.runs {
                lanes.remove(&self.thread);
            }
        }
    }
}

impl Inner {
    /// A place in a thread's lane, within the tenant's limits.
    pub(super) fn reserve<'a>(
        self: &'a Arc<Self>,
        tenant: &Tenant,
        thread: &str,
        bytes: u64,
    ) -> Result<Place<'a>, Error> {
        let limits = tenant.settings.limits;
        let mut lanes = lock(&self.lanes);
        let of_tenant = lanes.values().filter(|lane| lane.tenant == tenant.id);
        let count = |(turns, bytes), lane: &Lane| (turns + lane.waiting(), bytes + lane.bytes);
        let (waiting, kept) = of_tenant.fold((0, 0), count);
        let in_thread = lanes.get(thread).map_or(0, Lane::waiting);
        let full = |what, limit: usize| Error::Limit {
            what,
            limit: limit as u64,
            retry_after: Some(std::time::Duration::from_secs(1)),
        };
        if waiting >= limits.queue {
            return Err(full("turns in the queue", limits.queue));
        }
        if in_thread >= limits.thread_queue {
            return Err(full("turns in the queue of a thread", limits.thread_queue));
        }
        // One that waits alone waits, however long it is.
        if kept > 0 && kept.saturating_add(bytes) > limits.queue_bytes {
            let limit = usize::try_from(limits.queue_bytes).unwrap_or(usize::MAX);
            return Err(full("bytes of turns in the queue", limit));
        }
        Ok(self.place(&mut lanes, &tenant.id, thread, bytes))
    }

    /// A place whatever the limits: the turn was let in before.
    pub(super) fn readmit<'a>(
        self: &'a Arc<Self>,
        tenant: &str,
        thread: &str,
        bytes: u64,
    ) -> Place<'a> {
        self.place(&mut lock(&self.lanes), tenant, thread, bytes)
    }

    fn place<'a>(
        self: &'a Arc<Self>,
        lanes: &mut std::collections::HashMap<String, Lane>,
        tenant: &str,
        thread: &str,
        bytes: u64,
    ) -> Place<'a> {
        let lane = lanes.entry(thread.to_owned()).or_default();
        lane.tenant = tenant.to_owned();
        lane.reserved += 1;
        lane.bytes += bytes;
        let (tenant, thread) = (tenant.to_owned(), thread.to_owned());
        Place { inner: self, tenant, thread, bytes, taken: false }
    }

    /// Takes a turn out of its lane before it runs.
    pub(super) fn leave(&self, thread: &str, turn: &str) {
        if let Some(lane) = lock(&self.lanes).get_mut(thread) {
            let leaving = lane.queue.iter().filter(|job| job.turn == turn);
            lane.bytes -= leaving.map(|job| job.bytes).sum::<u64>();
            lane.queue.retain(|job| job.turn != turn);
        }
    }

    fn next(&self, thread: &str) -> Option<Job> {
        let mut lanes = lock(&self.lanes);
        let lane = lanes.get_mut(thread)?;
        let job = lane.queue.pop_front();
        lane.bytes -= job.as_ref().map_or(0, |job| job.bytes);
        if job.is_none() {
            lane.runs = false;
            if lane.reserved == 0 {
                lanes.remove(thread);
            }
        }
        job
    }
}

/// Runs the turns of a thread until there are none.
async fn run(inner: Arc<Inner>, tenant: String, thread: String) {
    while let Some(job) = inner.next(&thread) {
        if inner.stop.is_cancelled() {
            return;
        }
        let run = inner.run(&tenant, &thread, &job).instrument(job.span.clone());
        if let Err(err) = run.await
            && !inner.stop.is_cancelled()
        {
            tracing::error!(turn = job.turn, %err, "a turn could not be run");
            super::close::abandon(&inner, &tenant, &job.turn, &err).await;
        }
        // Nothing more is said of it here, also where it has not ended: the next daemon finds it as
        // it was stored.
        inner.live().remove(&job.turn);
    }
}
