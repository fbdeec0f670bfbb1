//! Many users on a few Codex processes.
//!
//! A worker is one app-server; it runs many threads at once. Workers are kept by [`WorkerKey`], so
//! users with different homes or environments never meet. A thread stays with the worker that has
//! it loaded, because Codex lets no other process take it meanwhile. Read: `group` (the workers of
//! one key and who waits for them), `spare` (threads started ahead), `order` (what is to be done),
//! `keeper` (the task that does it), `seat` (the right to run a turn).

mod key;

mod starter;

mod settings;

mod health;

mod admission;

mod spare;

mod worker;

mod group;

mod state;

mod order;

mod keeper;

mod seat;

use std::sync::Arc;
use std::time::Duration;

use bindery_core::call::CallOptions;
use bindery_core::content::Generated;
use bindery_core::ids::ThreadId;
use bindery_core::map::prompt_to_turn::{ThreadChoice, plan};
use bindery_core::spec::Spec;
use tokio_util::sync::DropGuard;

use self::keeper::Shared;
use self::seat::Seat;
use crate::app_server::AppServer;
use crate::error::Error;
use crate::model::{Call, ModelSettings};
use crate::turn::{Adoption, Turn};

pub use self::key::WorkerKey;
pub use self::settings::{BackOff, PoolSettings, Stats};
pub use self::starter::{Spawn, Starter};

/// Workers and the threads on them; clones share them.
///
/// When the last clone is dropped, the models of the pool included, all workers are ended.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
    _stop: Arc<DropGuard>,
}

impl Pool {
    /// A pool of child processes. Must be called within a runtime, whose tasks then own them.
    pub fn new(settings: PoolSettings) -> Self {
        Self::with_starter(settings, Arc::new(Spawn::default()))
    }

    /// A pool of workers that come from elsewhere.
    pub fn with_starter(settings: PoolSettings, starter: Arc<dyn Starter>) -> Self {
        let shared = Shared::start(settings, starter);
        let stop = Arc::new(shared.stopper().drop_guard());
        Self { shared, _stop: stop }
    }

    /// A language model on workers of this kind; its `threads` are the pool's, whatever it says.
    pub fn model(&self, key: impl Into<WorkerKey>, settings: ModelSettings) -> PooledModel {
        PooledModel { pool: self.clone(), key: key.into(), settings }
    }

    /// Waits for room on a worker, the one that has the thread if there is one.
    pub async fn lease(&self, key: &WorkerKey, thread: Option<&ThreadId>) -> Result<Lease, Error> {
        let seat = self.shared.seat(key, thread.cloned()).await?;
        Ok(Lease { seat })
    }

    /// The worker that has this thread loaded, for requests that are no turns.
    pub fn worker_for(&self, key: &WorkerKey, thread: &ThreadId) -> Option<AppServer> {
        self.shared.worker_for(key, thread)
    }

    /// Nobody wants this thread any more: its worker unloads it as soon as nothing runs in it.
    pub fn dismiss_thread(&self, key: &WorkerKey, thread: &ThreadId) {
        self.shared.change(key, |group, fx| group.dismiss_thread(thread, fx));
    }

    /// The workers that take turns.
    pub fn workers(&self) -> Vec<PoolWorker> {
        let workers = self.shared.workers().into_iter();
        workers.map(|(key, id, server)| PoolWorker { key, id, server }).collect()
    }

    /// Has a worker take no more turns and end when those that run are over; callers wait for the
    /// next one. False if it does so already.
    pub fn drain(&self, worker: &PoolWorker) -> bool {
        self.shared.change(&worker.key, |group, fx| group.drain(worker.id, fx))
    }

    /// Counts, as of now.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Takes no more work and closes all connections at once, without stopping what runs: workers
    /// that outlive their connection go on with it.
    pub async fn let_go(&self) {
        self.shared.let_go().await;
    }

    /// Refuses new work, lets turns end, interrupts those that do not, and ends all workers, at
    /// the deadline at the latest; returns when nothing is left of them.
    pub async fn shutdown(&self, deadline: Duration) {
        self.shared.shutdown(deadline).await;
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Pool").field(&self.stats()).finish()
    }
}

/// A worker of a pool.
#[derive(Clone, Debug)]
pub struct PoolWorker {
    /// Its kind.
    pub key: WorkerKey,
    /// The connection to it.
    pub server: AppServer,
    id: worker::WorkerId,
}

/// How many workers a call may find gone.
const ATTEMPTS: u32 = 3;

/// Room on a worker, given back when dropped.
pub struct Lease {
    seat: Seat,
}

impl Lease {
    /// The worker.
    pub fn server(&self) -> &AppServer {
        self.seat.server()
    }
}

/// A language model on a pool; clones share the pool.
#[derive(Clone)]
pub struct PooledModel {
    pool: Pool,
    key: WorkerKey,
    settings: ModelSettings,
}

impl PooledModel {
    /// Runs a call and gives its parts as they come. Dropped half-way, it leaves no turn behind.
    pub async fn stream(&self, options: &CallOptions) -> Result<Call, Error> {
        let thread = match plan(options, &self.settings.plan)?.thread {
            ThreadChoice::Resume(thread) => Some(thread),
            // Codex forks a thread of any process.
            ThreadChoice::Fresh | ThreadChoice::Fork { .. } => None,
        };
        let mut attempts = 1;
        loop {
            let seat = self.pool.shared.seat(&self.key, thread.clone()).await?;
            match seat.run(options.clone(), self.settings.clone()).await {
                Ok(call) => return Ok(call),
                // A worker that was gone before it was noticed is no concern of the caller's.
                Err(failure) if failure.again && attempts < ATTEMPTS => attempts += 1,
                Err(failure) => return Err(failure.error),
            }
        }
    }

    /// Runs a call to its end; streaming and generating share one path.
    pub async fn generate(&self, options: &CallOptions, spec: Spec) -> Result<Generated, Error> {
        Ok(self.stream(options).await?.gathered(spec).await)
    }

    /// Goes on with a turn of this call that a process which is gone has started, on the worker
    /// that has its thread.
    pub async fn adopt(
        &self,
        options: &CallOptions,
        thread: ThreadId,
        adoption: Adoption,
    ) -> Result<Turn, Error> {
        let seat = self.pool.shared.seat(&self.key, Some(thread.clone())).await?;
        seat.adopt(options, self.settings.clone(), thread, adoption)
    }

    /// Starts spare threads for conversations that begin like this call, and keeps them up from
    /// now on; returns when they are there. Nothing is run.
    pub async fn prepare(&self, options: &CallOptions) -> Result<(), Error> {
        if !matches!(plan(options, &self.settings.plan)?.thread, ThreadChoice::Fresh) {
            return Ok(());
        }
        let seat = self.pool.shared.seat(&self.key, None).await?;
        seat.prepare(options.clone(), self.settings.clone()).await
    }
}
