//! The workers of one key, the threads on them, and who waits for room.
//!
//! Nothing here waits or does anything: a change tells by its [`Effects`] what is to be done.

mod sweep;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_core::wire::app_server::reply::ThreadOpened;
use tokio::time::Instant;

use super::health::Health;
use super::order::Order;
use super::spare::{REFILL, Spare, Wishes};
use super::state::{Effects, Reply, Ticket};
use super::worker::{Pin, Worker, WorkerId};
use super::{Stats, WorkerKey};
use crate::app_server::AppServer;
use crate::error::Error;
use crate::turn::TurnControl;

/// Names a seat; never used twice in a pool.
pub(super) type SeatId = u64;

/// Everything of one key.
pub(super) struct Group {
    key: WorkerKey,
    workers: BTreeMap<WorkerId, Worker>,
    starting: usize,
    queue: VecDeque<Waiter>,
    pins: HashMap<ThreadId, Pin>,
    seats: HashMap<SeatId, Seated>,
    health: Health,
    wishes: Wishes,
}

/// A caller that waits for room; one that went away has closed its end of `reply`.
struct Waiter {
    id: u64,
    thread: Option<ThreadId>,
    reply: Reply,
}

/// A call that has room.
struct Seated {
    worker: WorkerId,
    thread: Option<ThreadId>,
    control: Option<TurnControl>,
    since: Instant,
}

impl Group {
    pub(super) fn new(key: WorkerKey) -> Self {
        Self {
            key,
            workers: BTreeMap::new(),
            starting: 0,
            queue: VecDeque::new(),
            pins: HashMap::new(),
            seats: HashMap::new(),
            health: Health::default(),
            wishes: Wishes::default(),
        }
    }

    /// A caller wants room; the answer comes as a verdict, now or later.
    pub(super) fn ask(&mut self, thread: Option<ThreadId>, reply: Reply, fx: &mut Effects<'_>) {
        if fx.closing {
            return fx.answer(reply, Err(Error::ShuttingDown));
        }
        let id = fx.id();
        self.queue.push_back(Waiter { id, thread, reply });
        self.pump(fx);
        // Whoever waits for a worker that is being started does not wait for anybody else's turn.
        let room = fx.settings.queue + self.starting * fx.settings.turns_per_worker;
        let turned_away = self.queue.len() > room;
        if turned_away && self.queue.back().is_some_and(|last| last.id == id) {
            let waiting = self.queue.len() - 1;
            let retry_after = self.retry_after(waiting, fx);
            let busy = || Err(Error::PoolBusy { waiting, retry_after });
            self.queue.pop_back().into_iter().for_each(|waiter| fx.answer(waiter.reply, busy()));
        }
    }

    /// A call is over, or was given up.
    pub(super) fn release(&mut self, seat: SeatId, fx: &mut Effects<'_>) {
        let Some(seated) = self.seats.remove(&seat) else { return };
        fx.took(fx.now - seated.since);
        self.let_go(seated.worker, seated.thread.as_ref(), fx);
        self.pump(fx);
    }

    /// The call has this thread open, and runs a turn that can be stopped by `control`.
    pub(super) fn opened(
        &mut self,
        seat: SeatId,
        thread: &ThreadId,
        control: Option<TurnControl>,
        fx: &mut Effects<'_>,
    ) {
        let Some(seated) = self.seats.get_mut(&seat) else { return };
        let (worker, before) = (seated.worker, seated.thread.replace(thread.clone()));
        if control.is_some() {
            seated.control = control;
        }
        // First the new hold, then the old one goes: the load must not dip in between.
        if before.as_ref() != Some(thread) {
            self.hold(worker, Some(thread), fx);
            self.let_go(worker, before.as_ref(), fx);
        }
        if let Some(pin) = self.pins.get_mut(thread).filter(|pin| pin.worker == worker) {
            (pin.opened, pin.subscribed, pin.dismissed) = (true, true, false);
        }
    }

    /// A worker is there.
    pub(super) fn started(&mut self, server: AppServer, fx: &mut Effects<'_>) -> WorkerId {
        self.starting -= 1;
        let id = fx.id();
        self.workers.insert(id, Worker::new(server, fx.settings.starts, fx.now));
        fx.due(fx.now + fx.settings.idle);
        self.pump(fx);
        id
    }

    /// Whether a worker was let go because it had nothing to do.
    pub(super) fn is_ending(&self, id: WorkerId) -> bool {
        self.workers.get(&id).is_some_and(|worker| worker.ending)
    }

    /// A worker could not be started.
    pub(super) fn not_started(&mut self, reason: Arc<Error>, fx: &mut Effects<'_>) {
        self.starting -= 1;
        self.health.failed(reason.clone(), Duration::ZERO, fx.now, &fx.settings.back_off);
        if self.workers.is_empty() && self.starting == 0 {
            self.refuse_all(fx, || Error::Worker(reason.clone()));
        }
        self.pump(fx);
    }

    /// A worker has ended. Its turns hear of it by themselves; its threads may go elsewhere.
    pub(super) fn ended(&mut self, id: WorkerId, reason: Error, fx: &mut Effects<'_>) {
        let Some(worker) = self.workers.remove(&id) else { return };
        self.pins.retain(|_, pin| pin.worker != id);
        if !worker.ending {
            fx.restarted();
            let lived = fx.now - worker.born;
            self.health.failed(Arc::new(reason), lived, fx.now, &fx.settings.back_off);
        }
        self.pump(fx);
    }

    /// A spare thread for a conversation with these settings, if there is one.
    pub(super) fn take_spare(
        &mut self,
        worker: WorkerId,
        start: &ThreadStart,
        fx: &mut Effects<'_>,
    ) -> Option<ThreadOpened> {
        if fx.settings.warm == 0 {
            return None;
        }
        self.wishes.used(start, fx.now);
        fx.due(fx.now + REFILL);
        self.workers.get_mut(&worker)?.spares.take(start)
    }

    /// Spares of these settings are wanted from now on; gives how many are missing here, and
    /// counts them as being started.
    pub(super) fn declare(
        &mut self,
        worker: WorkerId,
        start: &ThreadStart,
        fx: &mut Effects<'_>,
    ) -> usize {
        self.wishes.declare(start, fx.now);
        let Some(worker) = self.workers.get_mut(&worker) else { return 0 };
        let missing = fx.settings.warm.saturating_sub(worker.spares.count(start));
        (0..missing).for_each(|_| worker.spares.fill(start));
        missing
    }

    /// A spare thread was started, or was not.
    pub(super) fn filled(
        &mut self,
        worker: WorkerId,
        start: ThreadStart,
        outcome: Result<ThreadOpened, Error>,
        fx: &mut Effects<'_>,
    ) {
        let Some(worker) = self.workers.get_mut(&worker) else { return };
        worker.spares.filled(&start);
        match outcome {
            Ok(opened) => {
                worker.spares.put(Spare { start, opened, since: fx.now });
                fx.due(fx.now + fx.settings.warm_idle);
            }
            Err(err) => {
                tracing::debug!(%err, "no spare thread");
                self.wishes.postpone(&start, fx.now + RETRY_SPARE);
                fx.due(fx.now + RETRY_SPARE);
            }
        }
    }

    /// Codex does not tell of this thread any more; it may be used again, after a resume. One that
    /// is unloaded belongs to no worker.
    pub(super) fn left(
        &mut self,
        thread: &ThreadId,
        worker: WorkerId,
        unloaded: bool,
        fx: &mut Effects<'_>,
    ) {
        if unloaded && self.pins.get(thread).is_some_and(|pin| pin.worker == worker) {
            self.pins.remove(thread);
        }
        if let Some(pin) = self.pins.get_mut(thread).filter(|pin| pin.worker == worker) {
            (pin.leaving, pin.subscribed) = (false, false);
        }
        self.pump(fx);
    }

    /// Nobody wants this thread any more: it is unloaded as soon as nothing runs in it.
    pub(super) fn dismiss_thread(&mut self, thread: &ThreadId, fx: &mut Effects<'_>) {
        if let Some(pin) = self.pins.get_mut(thread) {
            pin.dismissed = true;
            fx.due(fx.now);
        }
    }

    /// A worker takes no more turns, and is ended when those that run are over.
    pub(super) fn drain(&mut self, id: WorkerId, fx: &mut Effects<'_>) -> bool {
        let Some(worker) = self.workers.get_mut(&id).filter(|one| !one.draining && !one.ending)
        else {
            return false;
        };
        worker.draining = true;
        fx.due(fx.now);
        true
    }

    /// Its workers that take turns.
    pub(super) fn workers(&self) -> impl Iterator<Item = (WorkerKey, WorkerId, AppServer)> {
        let fit = self.workers.iter().filter(|(_, worker)| !worker.ending && !worker.draining);
        fit.map(|(&id, worker)| (self.key.clone(), id, worker.server.clone()))
    }

    /// Everybody who waits is told this.
    pub(super) fn refuse_all(&mut self, fx: &mut Effects<'_>, why: impl Fn() -> Error) {
        self.queue.drain(..).for_each(|waiter| fx.answer(waiter.reply, Err(why())));
    }

    pub(super) fn worker_for(&self, thread: &ThreadId) -> Option<AppServer> {
        let pin = self.pins.get(thread).filter(|pin| pin.opened)?;
        Some(self.workers.get(&pin.worker)?.server.clone())
    }

    /// Takes all workers out, to be ended.
    pub(super) fn dismiss(&mut self) -> impl Iterator<Item = AppServer> + use<> {
        self.pins.clear();
        std::mem::take(&mut self.workers).into_values().map(|worker| worker.server)
    }

    pub(super) fn controls(&self) -> impl Iterator<Item = &TurnControl> {
        self.seats.values().filter_map(|seated| seated.control.as_ref())
    }

    pub(super) fn turns(&self) -> usize {
        self.seats.len()
    }

    pub(super) fn count(&self, stats: &mut Stats) {
        stats.workers += self.workers.len();
        stats.starting += self.starting;
        stats.threads += self.pins.len();
        stats.turns += self.seats.len();
        stats.queue += self.queue.iter().filter(|waiter| !waiter.reply.is_closed()).count();
        stats.warm += self.workers.values().map(|worker| worker.spares.ready()).sum::<usize>();
    }

    /// Gives room to whom it can, first come first served, and has workers started for the rest.
    fn pump(&mut self, fx: &mut Effects<'_>) {
        self.queue.retain(|waiter| !waiter.reply.is_closed());
        let mut at = 0;
        while at < self.queue.len() {
            // One that waits for its own worker does not hold up those behind it.
            let Some(worker) = self.place(self.queue[at].thread.as_ref(), fx) else {
                at += 1;
                continue;
            };
            let waiter = self.queue.remove(at);
            waiter.into_iter().for_each(|waiter| self.admit(waiter, worker, fx));
        }
        self.recruit(fx);
    }

    fn place(&self, thread: Option<&ThreadId>, fx: &Effects<'_>) -> Option<WorkerId> {
        let room = |worker: &Worker| {
            !worker.ending && !worker.draining && worker.load < fx.settings.turns_per_worker
        };
        if let Some(pin) = thread.and_then(|thread| self.pins.get(thread)) {
            let worker = self.workers.get(&pin.worker)?;
            // A thread that runs already takes no more room: the call goes on with its turn, or is
            // told that it is busy.
            let free = (pin.seats > 0 && !worker.ending) || room(worker);
            return (free && !pin.leaving).then_some(pin.worker);
        }
        let free = self.workers.iter().filter(|(_, worker)| room(worker));
        free.min_by_key(|(_, worker)| worker.load).map(|(&id, _)| id)
    }

    fn admit(&mut self, waiter: Waiter, worker: WorkerId, fx: &mut Effects<'_>) {
        let Waiter { thread, reply, .. } = waiter;
        self.hold(worker, thread.as_ref(), fx);
        let Some(known) = self.workers.get(&worker) else { return };
        let seat = fx.id();
        let ticket = Ticket {
            key: self.key.clone(),
            seat,
            worker,
            server: known.server.clone(),
            model: known.model.clone(),
            thread: thread.clone(),
            admission: known.admission.clone(),
        };
        let seated = Seated { worker, thread, control: None, since: fx.now };
        self.seats.insert(seat, seated);
        fx.answer(reply, Ok(ticket));
    }

    fn recruit(&mut self, fx: &mut Effects<'_>) {
        let bound = |waiter: &&Waiter| {
            waiter.thread.as_ref().is_some_and(|thread| self.pins.contains_key(thread))
        };
        let waiting = self.queue.iter().filter(|waiter| !bound(waiter)).count();
        if waiting == 0 || fx.closing {
            return;
        }
        let pause = self.health.pause(fx.now);
        if let Some((pause, reason)) = pause {
            fx.due(fx.now + pause);
            if self.workers.is_empty() && self.starting == 0 {
                self.refuse_all(fx, || Error::BackOff {
                    retry_after: pause,
                    reason: reason.clone(),
                });
            }
            return;
        }
        let most = fx.settings.workers.saturating_sub(self.workers.len());
        while self.starting < most && self.starting * fx.settings.turns_per_worker < waiting {
            self.starting += 1;
            fx.orders.push(Order::Start { key: self.key.clone() });
        }
    }

    fn hold(&mut self, id: WorkerId, thread: Option<&ThreadId>, fx: &Effects<'_>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(thread) = thread else { return worker.load += 1 };
        let pin = self.pins.entry(thread.clone()).or_insert_with(|| Pin::new(id, fx.now));
        if pin.worker == id {
            pin.seats += 1;
            worker.load += usize::from(pin.seats == 1);
        }
    }

    /// The worker may have ended since, and the thread be bound to another.
    fn let_go(&mut self, id: WorkerId, thread: Option<&ThreadId>, fx: &mut Effects<'_>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.used = fx.now;
        fx.due(fx.now + fx.settings.idle.min(fx.settings.thread_idle));
        if worker.draining {
            fx.due(fx.now);
        }
        let Some(thread) = thread else { return worker.load -= 1 };
        let Some(pin) = self.pins.get_mut(thread).filter(|pin| pin.worker == id) else { return };
        pin.used = fx.now;
        pin.seats -= 1;
        if pin.seats == 0 {
            if pin.dismissed {
                fx.due(fx.now);
            }
            worker.load -= 1;
            if !pin.opened {
                self.pins.remove(thread);
            }
        }
    }

    /// How long those who wait will take, going by what turns took lately.
    fn retry_after(&self, waiting: usize, fx: &Effects<'_>) -> Duration {
        let room = self.workers.len().max(1) * fx.settings.turns_per_worker;
        let rounds = (waiting + 1).div_ceil(room);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        fx.pace.saturating_mul(rounds).clamp(Duration::from_millis(100), Duration::from_secs(60))
    }
}

/// When to try again after a spare thread could not be started.
const RETRY_SPARE: Duration = Duration::from_secs(5);
