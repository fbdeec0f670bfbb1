//! Workers in memory, and turns whose prompts say what they do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::model::{Call, ModelSettings};
use bindery_client::pool::{Pool, PoolSettings, PooledModel, Starter, Stats, WorkerKey};
use bindery_client::transport::stdio::Launch;
use bindery_client::transport::{self, LINE_LIMIT};
use bindery_core::call::CallOptions;
use bindery_core::ids::ThreadId;
use bindery_core::interrupt::{Answer, Decision, Interrupt};
use bindery_core::map::prompt_to_turn::ThreadSource;
use bindery_core::prompt::Prompt;
use bindery_testkit::app_server::crowd::{Crowd, Part};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::stage::Told;

/// Starts workers in memory, a crowd for each key.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) crowds: Mutex<BTreeMap<String, Crowd>>,
    /// Kills the servers that run, by key.
    pub(crate) kills: Mutex<Vec<(String, CancellationToken)>>,
    /// So many starts will fail.
    pub(crate) failing: AtomicUsize,
    /// How long a worker takes to start.
    pub(crate) delay: Duration,
    /// How long a thread takes to start.
    pub(crate) thread: Duration,
}

impl Memory {
    /// What the servers of a key share and saw.
    pub(crate) fn crowd(&self, key: &str) -> Crowd {
        let mut crowds = self.crowds.lock().unwrap();
        let new = || Crowd::default().starting_in(self.thread);
        crowds.entry(key.to_owned()).or_insert_with(new).clone()
    }

    /// Kills the longest-running server of a key.
    pub(crate) fn kill(&self, key: &str) -> bool {
        let mut kills = self.kills.lock().unwrap();
        let Some(at) = kills.iter().position(|(known, _)| known == key) else { return false };
        kills.remove(at).1.cancel();
        true
    }
}

/// The key of a user in memory.
pub(crate) fn key(name: &str) -> WorkerKey {
    Launch::new(name).into()
}

impl Starter for Memory {
    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>> {
        let name = key.launch().program.display().to_string();
        let fails = |left: usize| left.checked_sub(1);
        let fails = self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok();
        let (crowd, delay, kill) = (self.crowd(&name), self.delay, CancellationToken::new());
        if !fails {
            self.kills.lock().unwrap().push((name.clone(), kill.clone()));
        }
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            if fails {
                let source = std::io::Error::other("it was to fail");
                return Err(Error::Spawn { program: name, source });
            }
            let (to, ours_from) = tokio::io::duplex(16 * 1024);
            let (ours_to, from) = tokio::io::duplex(16 * 1024);
            tokio::spawn(async move { kill.run_until_cancelled(crowd.serve(from, to)).await });
            let transport = transport::over(ours_from, ours_to, LINE_LIMIT);
            AppServer::connect(transport, &ConnectOptions::default()).await
        })
    }
}

/// A pool in memory.
pub(crate) struct Table {
    pub(crate) memory: Arc<Memory>,
    pub(crate) pool: Pool,
}

impl Table {
    pub(crate) fn new(settings: PoolSettings) -> Self {
        Self::over(Memory::default(), settings)
    }

    pub(crate) fn over(memory: Memory, settings: PoolSettings) -> Self {
        let memory = Arc::new(memory);
        let pool = Pool::with_starter(settings, memory.clone());
        Self { memory, pool }
    }

    /// A model of this user's that says yes to everything.
    pub(crate) fn model(&self, user: &str) -> PooledModel {
        self.pool.model(key(user), settings(None))
    }

    /// The same, on a thread.
    pub(crate) fn on(&self, user: &str, thread: &ThreadId) -> PooledModel {
        self.pool.model(key(user), settings(Some(thread)))
    }

    /// Waits until the counts are like this; with a paused clock time passes only in here.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Stats) -> bool) {
        for _ in 0..200_000 {
            if is(&self.pool.stats()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("never {what}: {:?}", self.pool.stats());
    }
}

/// Yes to everything, on this thread if there is one.
pub(crate) fn settings(thread: Option<&ThreadId>) -> ModelSettings {
    let mut settings = ModelSettings {
        answerer: Arc::new(|_: Interrupt| async { Some(Answer::decision(Decision::Accept)) }),
        ..ModelSettings::default()
    };
    if let Some(thread) = thread {
        settings.plan.thread = ThreadSource::Given(thread.clone());
    }
    settings
}

/// A call that does this.
pub(crate) fn call(part: &Part) -> CallOptions {
    CallOptions { prompt: Prompt::user(part.prompt()), ..CallOptions::default() }
}

/// A turn that says so many pieces.
pub(crate) fn say(tag: &str, say: usize) -> Part {
    Part { tag: tag.to_owned(), say, ..Part::default() }
}

/// Reads a call to its end; gives its thread and what it told.
pub(crate) async fn finish(call: Call) -> (ThreadId, Told) {
    let thread = call.turn.thread_id().clone();
    (thread, Told::of(call.turn).await)
}
