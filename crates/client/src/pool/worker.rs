//! One worker, and the threads bound to it.

use std::sync::Arc;

use tokio::time::Instant;

use super::admission::Admission;
use super::spare::Spares;
use crate::app_server::AppServer;
use crate::model::{LanguageModel, ModelSettings};

/// Names a worker; never used twice in a pool.
pub(super) type WorkerId = u64;

/// A running app-server.
pub(super) struct Worker {
    /// The connection.
    pub(super) server: AppServer,
    /// Remembers which threads are open; every call borrows it with settings of its own.
    pub(super) model: Arc<LanguageModel>,
    /// Lets a few threads be started at a time.
    pub(super) admission: Arc<Admission>,
    /// Threads that run a turn, and calls whose thread is not known yet.
    pub(super) load: usize,
    /// When it was started.
    pub(super) born: Instant,
    /// When it last had something to do.
    pub(super) used: Instant,
    /// It is being ended: takes no more work, and still holds its threads.
    pub(super) ending: bool,
    /// It takes no more turns, and is ended when those that run are over.
    pub(super) draining: bool,
    /// Threads started ahead.
    pub(super) spares: Spares,
}

impl Worker {
    pub(super) fn new(server: AppServer, starts: usize, now: Instant) -> Self {
        let model = Arc::new(LanguageModel::new(server.clone(), ModelSettings::default()));
        Self {
            server,
            model,
            admission: Arc::new(Admission::new(starts)),
            load: 0,
            born: now,
            used: now,
            ending: false,
            draining: false,
            spares: Spares::default(),
        }
    }
}

/// A thread bound to a worker.
#[derive(Debug)]
pub(super) struct Pin {
    /// The worker that has it loaded.
    pub(super) worker: WorkerId,
    /// Calls that use it now.
    pub(super) seats: usize,
    /// When it was last used.
    pub(super) used: Instant,
    /// Codex has opened it.
    pub(super) opened: bool,
    /// We hear of it. Codex 0.166 runs a turn on a thread that nobody hears of, in silence.
    pub(super) subscribed: bool,
    /// It is just being unsubscribed; nobody may use it before that is through.
    pub(super) leaving: bool,
    /// Nobody wants it any more.
    pub(super) dismissed: bool,
}

impl Pin {
    pub(super) fn new(worker: WorkerId, now: Instant) -> Self {
        Self {
            worker,
            seats: 0,
            used: now,
            opened: false,
            subscribed: true,
            leaving: false,
            dismissed: false,
        }
    }
}
