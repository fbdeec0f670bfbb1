//! The task that does what is due, and what it shares with callers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_core::ids::ThreadId;
use futures_util::future::join_all;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::group::Group;
use super::order;
use super::seat::Seat;
use super::state::{Effects, State};
use super::worker::WorkerId;
use super::{PoolSettings, Starter, Stats, WorkerKey};
use crate::app_server::AppServer;
use crate::error::Error;

/// What callers and the keeper share.
pub(super) struct Shared {
    state: Mutex<State>,
    starter: Arc<dyn Starter>,
    /// The keeper has something to do.
    wake: Notify,
    /// How many calls have room.
    turns: watch::Sender<usize>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Shared {
    /// Starts the keeper.
    pub(super) fn start(settings: PoolSettings, starter: Arc<dyn Starter>) -> Arc<Self> {
        let shared = Arc::new(Self {
            state: Mutex::new(State::new(settings.checked())),
            starter,
            wake: Notify::new(),
            turns: watch::Sender::new(0),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(shared.clone().keep());
        shared
    }

    pub(super) fn starter(&self) -> &dyn Starter {
        &*self.starter
    }

    /// Ends everything when it is cancelled.
    pub(super) fn stopper(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Runs a task that [`Self::shutdown`] waits for.
    pub(super) fn track(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for room.
    pub(super) async fn seat(
        self: &Arc<Self>,
        key: &WorkerKey,
        thread: Option<ThreadId>,
    ) -> Result<Seat, Error> {
        let (reply, answer) = oneshot::channel();
        self.change(key, |group, fx| group.ask(thread, reply, fx));
        answer.await.unwrap_or(Err(Error::ShuttingDown))
    }

    /// Changes a group, and sees to what comes of it.
    pub(super) fn change<R>(
        self: &Arc<Self>,
        key: &WorkerKey,
        act: impl FnOnce(&mut Group, &mut Effects<'_>) -> R,
    ) -> R {
        let result = self.state().change(key, act);
        self.settle();
        self.wake.notify_one();
        result
    }

    pub(super) fn worker_for(&self, key: &WorkerKey, thread: &ThreadId) -> Option<AppServer> {
        self.state().group(key)?.worker_for(thread)
    }

    pub(super) fn workers(&self) -> Vec<(WorkerKey, WorkerId, AppServer)> {
        self.state().groups().flat_map(Group::workers).collect()
    }

    pub(super) fn stats(&self) -> Stats {
        self.state().stats()
    }

    /// See [`super::Pool::shutdown`].
    pub(super) async fn shutdown(self: &Arc<Self>, deadline: Duration) {
        let end = Instant::now() + deadline;
        self.state().close();
        self.settle();
        let mut turns = self.turns.subscribe();
        let patience = end - (deadline / 4).min(INTERRUPT);
        if timeout_at(patience, turns.wait_for(|&turns| turns == 0)).await.is_err() {
            for group in self.state().groups() {
                group.controls().for_each(|control| control.interrupt());
            }
            let _ = timeout_at(end, turns.wait_for(|&turns| turns == 0)).await;
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// See [`super::Pool::let_go`].
    pub(super) async fn let_go(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn keep(self: Arc<Self>) {
        let mut jobs = JoinSet::new();
        loop {
            let next = self.state().sweep();
            self.settle();
            let orders = self.state().take_orders();
            orders.into_iter().for_each(|order| drop(jobs.spawn(order.run(self.clone()))));
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = self.wake.notified() => {}
                Some(_) = jobs.join_next() => {}
                () = sleep_until(next) => {}
            }
        }
        self.state().close();
        self.settle();
        // A start that is under way takes its process with it.
        jobs.shutdown().await;
        let servers = self.state().dismiss();
        join_all(servers.iter().map(order::close)).await;
    }

    /// Tells callers what was decided about them, now that the lock is free: one that has left
    /// gives its room back, which is another change.
    fn settle(self: &Arc<Self>) {
        let verdicts = {
            let mut state = self.state();
            let turns = state.groups().map(Group::turns).sum();
            // Under the lock, so that the last count told is the last there was.
            self.turns.send_if_modified(|known| std::mem::replace(known, turns) != turns);
            state.take_verdicts()
        };
        for (reply, verdict) in verdicts {
            drop(reply.send(verdict.map(|ticket| Seat::new(self.clone(), ticket))));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long turns may take to end once they are interrupted, at most.
const INTERRUPT: Duration = Duration::from_secs(5);
