//! All that a pool knows, behind one lock that is never held while waiting.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::ThreadId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::admission::Admission;
use super::group::{Group, SeatId};
use super::order::Order;
use super::seat::Seat;
use super::worker::WorkerId;
use super::{PoolSettings, Stats, WorkerKey};
use crate::app_server::AppServer;
use crate::error::Error;
use crate::model::LanguageModel;

/// What a caller is given with its room.
pub(super) struct Ticket {
    pub(super) key: WorkerKey,
    pub(super) seat: SeatId,
    pub(super) worker: WorkerId,
    pub(super) server: AppServer,
    pub(super) model: Arc<LanguageModel>,
    /// The thread it was asked for.
    pub(super) thread: Option<ThreadId>,
    pub(super) admission: Arc<Admission>,
}

/// An answer to a caller, to be sent once the lock is free.
pub(super) type Verdict = (Reply, Result<Ticket, Error>);

/// Where a caller waits. It is sent the seat itself, which gives its room back when a caller that
/// left drops it unseen.
pub(super) type Reply = oneshot::Sender<Result<Seat, Error>>;

/// All that a pool knows.
pub(super) struct State {
    settings: PoolSettings,
    groups: HashMap<WorkerKey, Group>,
    closing: bool,
    restarts: u64,
    next: u64,
    /// How long a call holds its room, on average.
    pace: Duration,
    sweep_at: Instant,
    orders: Vec<Order>,
    verdicts: Vec<Verdict>,
}

/// What a change of a group may use, and what it brings about.
pub(super) struct Effects<'a> {
    pub(super) settings: &'a PoolSettings,
    pub(super) now: Instant,
    pub(super) closing: bool,
    /// To be done by the keeper.
    pub(super) orders: &'a mut Vec<Order>,
    /// Spare threads of the whole pool; counted before a sweep only.
    pub(super) spares: usize,
    pub(super) pace: Duration,
    verdicts: &'a mut Vec<Verdict>,
    took: &'a mut Duration,
    restarts: &'a mut u64,
    next: &'a mut u64,
    sweep_at: &'a mut Instant,
}

impl Effects<'_> {
    /// A name that was never used.
    pub(super) fn id(&mut self) -> u64 {
        *self.next += 1;
        *self.next
    }

    /// There is something to look at then.
    pub(super) fn due(&mut self, at: Instant) {
        *self.sweep_at = at.min(*self.sweep_at);
    }

    pub(super) fn answer(&mut self, reply: Reply, verdict: Result<Ticket, Error>) {
        self.verdicts.push((reply, verdict));
    }

    /// A call held its room for so long.
    pub(super) fn took(&mut self, time: Duration) {
        *self.took = (*self.took * 7 + time) / 8;
    }

    pub(super) fn restarted(&mut self) {
        *self.restarts += 1;
    }
}

/// Until turns have shown how long they take.
const PACE: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            groups: HashMap::new(),
            closing: false,
            restarts: 0,
            next: 0,
            pace: PACE,
            sweep_at: far(),
            orders: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Changes the group of a key.
    pub(super) fn change<R>(
        &mut self,
        key: &WorkerKey,
        act: impl FnOnce(&mut Group, &mut Effects<'_>) -> R,
    ) -> R {
        let group = self.groups.entry(key.clone()).or_insert_with(|| Group::new(key.clone()));
        let mut effects = Effects {
            settings: &self.settings,
            now: Instant::now(),
            closing: self.closing,
            orders: &mut self.orders,
            spares: 0,
            pace: self.pace,
            verdicts: &mut self.verdicts,
            took: &mut self.pace,
            restarts: &mut self.restarts,
            next: &mut self.next,
            sweep_at: &mut self.sweep_at,
        };
        act(group, &mut effects)
    }

    /// Does what is due, and says when to come again.
    pub(super) fn sweep(&mut self) -> Instant {
        let now = Instant::now();
        // A pool that closes lets everything go at once, soon.
        if self.closing {
            return far();
        }
        if now < self.sweep_at {
            return self.sweep_at;
        }
        self.sweep_at = far();
        let mut spares: usize = self.groups.values().map(Group::spares).sum();
        let keys: Vec<_> = self.groups.keys().cloned().collect();
        for key in keys {
            spares = self.change(&key, |group, fx| {
                fx.spares = spares;
                group.sweep(fx);
                fx.spares
            });
        }
        self.groups.retain(|_, group| !group.is_empty(now));
        self.sweep_at
    }

    /// Takes no more callers, and tells so to those who wait.
    pub(super) fn close(&mut self) {
        self.closing = true;
        let keys: Vec<_> = self.groups.keys().cloned().collect();
        for key in keys {
            self.change(&key, |group, fx| group.refuse_all(fx, || Error::ShuttingDown));
        }
    }

    /// Takes all workers out, to be ended.
    pub(super) fn dismiss(&mut self) -> Vec<AppServer> {
        self.groups.values_mut().flat_map(Group::dismiss).collect()
    }

    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    pub(super) fn take_verdicts(&mut self) -> Vec<Verdict> {
        std::mem::take(&mut self.verdicts)
    }

    pub(super) fn group(&self, key: &WorkerKey) -> Option<&Group> {
        self.groups.get(key)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats { restarts: self.restarts, ..Stats::default() };
        self.groups.values().for_each(|group| group.count(&mut stats));
        stats
    }
}

/// Later than anything that is ever due.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(30 * 24 * 3600)
}
