//! What time brings: idle threads and workers let go, spares renewed.

use std::time::Duration;

use bindery_core::ids::ThreadId;
use tokio::time::Instant;

use super::Group;
use crate::pool::order::Order;
use crate::pool::spare::Spare;
use crate::pool::state::Effects;
use crate::pool::worker::Worker;

/// Codex 0.166 unloads a thread that nobody listens to after 30 minutes; from then on any process
/// may take it.
const LOADED: Duration = Duration::from_secs(60 * 60);

/// Threads of one key that are remembered; beyond it the longest unused are forgotten.
const PINS: usize = 16 * 1024;

impl Group {
    /// Looks at everything that has a deadline, and says when to look again.
    pub(in crate::pool) fn sweep(&mut self, fx: &mut Effects<'_>) {
        self.pump(fx);
        self.sweep_threads(fx);
        self.sweep_spares(fx);
        self.sweep_workers(fx);
    }

    /// Nothing is left to remember.
    pub(in crate::pool) fn is_empty(&self, now: Instant) -> bool {
        self.workers.is_empty()
            && self.starting == 0
            && self.queue.is_empty()
            && self.seats.is_empty()
            && self.health.pause(now).is_none()
    }

    fn sweep_threads(&mut self, fx: &mut Effects<'_>) {
        self.forget_some();
        let (now, idle) = (fx.now, fx.settings.thread_idle);
        self.pins.retain(|_, pin| pin.seats > 0 || pin.subscribed || pin.used + LOADED > now);
        let resting = self.pins.iter_mut().filter(|(_, pin)| pin.seats == 0 && !pin.leaving);
        for (thread, pin) in resting {
            if !pin.subscribed {
                fx.due(pin.used + LOADED);
            } else if pin.used + idle > now && !pin.dismissed {
                fx.due(pin.used + idle);
            } else if let Some(worker) = self.workers.get(&pin.worker).filter(|one| !one.ending) {
                pin.leaving = true;
                fx.orders.push(Order::Leave {
                    key: self.key.clone(),
                    worker: pin.worker,
                    server: worker.server.clone(),
                    model: worker.model.clone(),
                    thread: thread.clone(),
                });
            }
        }
    }

    fn forget_some(&mut self) {
        let over = self.pins.len().saturating_sub(PINS);
        if over == 0 {
            return;
        }
        let unused = self.pins.iter().filter(|(_, pin)| pin.seats == 0 && !pin.leaving);
        let mut unused: Vec<(Instant, ThreadId)> =
            unused.map(|(thread, pin)| (pin.used, thread.clone())).collect();
        unused.sort();
        for (_, thread) in unused.into_iter().take(over) {
            self.pins.remove(&thread);
        }
    }

    fn sweep_spares(&mut self, fx: &mut Effects<'_>) {
        let idle = fx.settings.warm_idle;
        if let Some(at) = self.wishes.expire(fx.now, idle) {
            fx.due(at);
        }
        for (&id, worker) in self.workers.iter_mut().filter(|(_, worker)| !worker.ending) {
            for spare in worker.spares.expire(&self.wishes, fx.now, idle) {
                fx.orders.push(discard(worker, spare));
                fx.spares -= 1;
            }
            if let Some(at) = worker.spares.next_expiry(idle) {
                fx.due(at);
            }
            for wish in self.wishes.iter() {
                let missing = fx.settings.warm.saturating_sub(worker.spares.count(&wish.start));
                if missing > 0 && wish.fill_at > fx.now {
                    fx.due(wish.fill_at);
                    continue;
                }
                for _ in 0..missing.min(fx.settings.warm_total.saturating_sub(fx.spares)) {
                    fx.spares += 1;
                    worker.spares.fill(&wish.start);
                    fx.orders.push(Order::Fill {
                        key: self.key.clone(),
                        worker: id,
                        server: worker.server.clone(),
                        admission: worker.admission.clone(),
                        start: Box::new(wish.start.clone()),
                    });
                }
            }
        }
    }

    fn sweep_workers(&mut self, fx: &mut Effects<'_>) {
        let idle = fx.settings.idle;
        for worker in self.workers.values_mut().filter(|one| !one.ending && one.load == 0) {
            if worker.used + idle > fx.now && !worker.draining {
                fx.due(worker.used + idle);
            } else {
                worker.ending = true;
                fx.orders.push(Order::End { server: worker.server.clone() });
            }
        }
    }

    /// Spare threads, ready and being started.
    pub(in crate::pool) fn spares(&self) -> usize {
        self.workers.values().map(|worker| worker.spares.len()).sum()
    }
}

fn discard(worker: &Worker, spare: Spare) -> Order {
    Order::Discard { server: worker.server.clone(), thread: spare.opened.thread.id }
}
