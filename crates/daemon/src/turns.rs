//! The runner: owns turns from the queue to their end, their log, and those who read it.
//!
//! Turns belong to the server. A thread runs one at a time, in the order they were asked for
//! (`lane`); a turn begins once, whichever daemon asks for it (`begin`, `recorder`, `find`); it is
//! opened on a worker, or taken over from a daemon that is gone (`open`); its parts are kept, then
//! shown (`flow`, `log`), when there is room for them (`hold`), for as long as its folder is where
//! it was (`confine`); in the end it has exactly one `end` event (`close`).

mod begin;

mod call;

mod close;

mod compact;

mod confine;

mod find;

mod flow;

mod hold;

mod lane;

mod length;

pub mod log;

mod open;

mod recorder;

mod recover;

mod result;

mod take_over;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_client::interrupts::Interrupts;
use bindery_client::turn::TurnControl;
use bindery_core::interrupt::Answer;
use bindery_core::wire::app_server::input::UserInput;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use self::begin::STARTING;
use self::lane::Lane;
use self::log::{Log, Reader};
use self::result::Results;
use crate::clock;
use crate::config::Config;
use crate::error::Error;
use crate::http::body_budget::BodyBudget;
use crate::interrupts::Hooks;
use crate::secret;
use crate::store::{Change, Store, StoreError, ThreadRow, TurnKind, TurnRow, TurnState};
use crate::tenant::{Caller, Tenant};
use crate::workers::Workers;

pub use self::call::steering;
pub use self::length::{check_files, check_length, json_bytes};
pub use self::result::TurnResult;

/// Runs turns; clones share it.
#[derive(Clone)]
pub struct Runner {
    inner: Arc<Inner>,
}

/// What a runner works with.
pub struct RunnerParts {
    /// What is kept.
    pub store: Arc<dyn Store>,
    /// Who runs threads.
    pub workers: Workers,
    /// Who is told.
    pub hooks: Hooks,
    /// Settings.
    pub config: Arc<Config>,
    /// Bytes of requests in memory.
    pub body_budget: BodyBudget,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workers: Workers,
    pub(crate) hooks: Hooks,
    pub(crate) config: Arc<Config>,
    /// Bytes of requests in memory, those of turns that begin included.
    body_budget: BodyBudget,
    /// Turns that wait or run here.
    live: Mutex<HashMap<String, Arc<Live>>>,
    /// Threads with turns, by name.
    lanes: Mutex<HashMap<String, Lane>>,
    /// Results of running turns, as far as they are gathered.
    results: Results,
    /// How many turns a tenant may run, by its name.
    rooms: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Set when turns are to be let go.
    stop: CancellationToken,
    /// Turns that the backend was asked for, and whose names there are not kept yet.
    starting: TaskTracker,
    tasks: TaskTracker,
}

/// A turn that waits or runs here.
pub(crate) struct Live {
    pub(crate) log: Arc<Log>,
    /// Its questions, while it runs.
    pub(crate) interrupts: Interrupts,
    /// Set when somebody wants it stopped.
    pub(crate) stop: CancellationToken,
    /// How the worker that ran it before us has ended, if it has.
    pub(crate) gone: Option<String>,
    control: Mutex<Option<TurnControl>>,
    /// The backend may have been asked for it.
    asked: AtomicBool,
    /// Held while it is being asked.
    start: Mutex<Option<TaskTrackerToken>>,
    /// Held by whoever takes it out of the queue, to begin it or to end it.
    dequeue: tokio::sync::Mutex<()>,
}

impl Live {
    fn new(turn: &TurnRow) -> Self {
        Self {
            log: Arc::new(Log::new(&turn.id, turn.last)),
            interrupts: Interrupts::default(),
            stop: CancellationToken::new(),
            gone: None,
            control: Mutex::default(),
            asked: AtomicBool::new(turn.mark.is_some() || turn.backend_turn.is_some()),
            start: Mutex::default(),
            dequeue: tokio::sync::Mutex::default(),
        }
    }

    /// Whether the backend may have been asked for it.
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    fn set_asked(&self, asked: bool) {
        self.asked.store(asked, Ordering::SeqCst);
    }

    /// From now on whoever stops us waits for its start.
    fn enter_start(&self, starts: &TaskTracker) {
        *lock(&self.start) = Some(starts.token());
    }

    /// Its start is over, one way or another.
    fn leave_start(&self) {
        drop(lock(&self.start).take());
    }

    fn is_starting(&self) -> bool {
        lock(&self.start).is_some()
    }

    /// Steers and stops it, once it runs.
    pub(crate) fn control(&self) -> Option<TurnControl> {
        lock(&self.control).clone()
    }

    fn set_control(&self, control: TurnControl) {
        *lock(&self.control) = Some(control);
    }
}

/// Stands before the caller's key of a prompt.
const TURN_KEY: &str = "create_turn ";

/// What to run.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// What it does.
    pub kind: TurnKind,
    /// A call of the AI SDK, or the target of a review.
    pub request: Value,
    /// The caller's name for it, after that of the operation: the same again gives the same turn.
    pub key: Option<String>,
}

impl Runner {
    /// A runner on these workers.
    pub fn new(parts: RunnerParts) -> Self {
        let RunnerParts { store, workers, hooks, config, body_budget } = parts;
        let inner = Inner {
            store,
            workers,
            hooks,
            config,
            body_budget,
            live: Mutex::default(),
            lanes: Mutex::default(),
            results: Results::default(),
            rooms: Mutex::default(),
            stop: CancellationToken::new(),
            starting: TaskTracker::new(),
            tasks: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes up what a daemon before us left: turns that run are taken over, those that wait wait
    /// again.
    pub async fn recover(&self) -> Result<usize, Error> {
        recover::recover(&self.inner).await
    }

    /// Puts a turn into the queue of its thread; true if it is new, false if its key was known.
    pub async fn submit(
        &self,
        caller: &Caller,
        thread: &ThreadRow,
        new: NewTurn,
    ) -> Result<(TurnRow, bool), Error> {
        let (inner, tenant) = (&self.inner, &*caller.tenant);
        if inner.stop.is_cancelled() {
            return Err(Error::Stopping);
        }
        check_length("the prompt", &new.request)?;
        let turn = row(tenant, thread, new);
        if let Some(known) = inner.known(&turn).await? {
            return Ok((known, false));
        }
        if thread.archived {
            let message = format!("thread `{}` is archived", thread.id);
            return Err(Error::Conflict { code: "thread_archived", message });
        }
        let bytes = json_bytes(&turn.request);
        let place = inner.reserve(tenant, &thread.id, bytes)?;
        let contributor = caller.as_contributor();
        let changes = vec![
            Change::AddContributor { thread: thread.id.clone(), contributor },
            Change::AddTurn(Box::new(turn.clone())),
        ];
        match inner.store.commit(changes).await {
            Ok(_) => {}
            // Somebody else was quicker with the same key.
            Err(StoreError::Conflict(why)) => {
                if let Some(known) = inner.known(&turn).await? {
                    return Ok((known, false));
                }
                // Or the thread was deleted meanwhile.
                let gone = inner.store.thread(&tenant.id, &thread.id).await?.is_none();
                let gone = gone.then(|| Error::not_found("thread", thread.id.as_str()));
                return Err(gone.unwrap_or(StoreError::Conflict(why).into()));
            }
            Err(err) => return Err(err.into()),
        }
        inner.live().insert(turn.id.clone(), Arc::new(Live::new(&turn)));
        place.take(&turn.id, false);
        Ok((turn, true))
    }

    /// Adds to a turn that runs.
    pub async fn steer(
        &self,
        caller: &Caller,
        turn: &TurnRow,
        input: Vec<UserInput>,
    ) -> Result<(), Error> {
        let live = self.inner.live().get(&turn.id).cloned();
        let control = live.and_then(|live| live.control());
        let Some(control) = control else {
            let message = format!("turn `{}` does not run", turn.id);
            return Err(Error::Conflict { code: "turn_not_running", message });
        };
        let (thread, contributor) = (turn.thread.clone(), caller.as_contributor());
        // Before the model hears of it: whoever adds to a turn must not approve what comes of it.
        self.inner.store.commit(vec![Change::AddContributor { thread, contributor }]).await?;
        Ok(control.steer(input).await?)
    }

    /// Stops a turn that waits or runs; its readers hear of its end.
    pub async fn interrupt(&self, turn: &TurnRow) -> Result<(), Error> {
        let live = self.inner.live().get(&turn.id).cloned();
        let Some(live) = live else {
            let message = format!("turn `{}` is over", turn.id);
            return Err(Error::Conflict { code: "turn_over", message });
        };
        live.stop.cancel();
        // One that has not begun has nobody else to end it.
        close::withdraw(&self.inner, turn, &live).await
    }

    /// Reads a turn's events after this number, to its end.
    pub fn read(&self, turn: &str, after: u64) -> Reader {
        let log = self.inner.live().get(turn).map(|live| live.log.clone());
        Reader::new(self.inner.store.clone(), turn, after, log)
    }

    /// Gives an answer, which the store has taken, to the turn that waits for it.
    ///
    /// A turn that is just being taken over finds it in the store.
    pub fn deliver(&self, turn: &str, token: &str, answer: Answer) -> Result<(), Error> {
        use bindery_client::interrupts::AnswerError;
        let live = self.inner.live().get(turn).cloned();
        let over = |message: String| Error::Interrupt { code: "interrupt_over", message };
        let Some(live) = live else {
            return Err(over(format!("interrupt `{token}` is over: the turn has ended")));
        };
        match live.interrupts.answer(&token.into(), answer) {
            Ok(()) | Err(AnswerError::Unknown(_) | AnswerError::Answered(_)) => Ok(()),
            Err(err) => Err(over(err.to_string())),
        }
    }

    /// What has come of a turn so far: its last words and the files it changed.
    pub async fn result(&self, turn: &TurnRow) -> Result<TurnResult, Error> {
        self.inner.result(turn).await
    }

    /// Keeps the results of turns that ended before this time, so that their events may go.
    pub async fn keep_results(&self, before: clock::Millis) -> Result<(), Error> {
        self.inner.keep_results(before).await
    }

    /// The turn that was started under the same key for the same request.
    pub async fn known(
        &self,
        caller: &Caller,
        thread: &ThreadRow,
        new: &NewTurn,
    ) -> Result<Option<TurnRow>, Error> {
        self.inner.known(&row(&caller.tenant, thread, new.clone())).await
    }

    /// Turns that wait or run.
    pub fn live(&self) -> usize {
        self.inner.live().len()
    }

    /// Why turns are held, if any is.
    pub fn held(&self) -> Option<String> {
        self.inner.live().values().find_map(|live| live.log.held())
    }

    /// The webhooks.
    pub fn hooks(&self) -> &Hooks {
        &self.inner.hooks
    }

    /// The workers.
    pub fn workers(&self) -> &Workers {
        &self.inner.workers
    }

    /// Takes no more turns, and lets those that run go: they run on in their workers. Those that
    /// the backend was just asked for are waited for, until it is kept where they are.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.starting.close();
        if timeout(STARTING, self.inner.starting.wait()).await.is_err() {
            tracing::warn!("turns that are being started are left to the next daemon to find");
        }
        self.inner.workers.let_go().await;
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        // Whoever still reads hears that nothing more comes from here.
        self.inner.live().clear();
    }
}

impl Inner {
    pub(crate) fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
        lock(&self.live)
    }

    /// The turn that was started under the same key.
    async fn known(&self, turn: &TurnRow) -> Result<Option<TurnRow>, Error> {
        let Some(key) = &turn.key else { return Ok(None) };
        let Some(known) = self.store.turn_of_key(&turn.tenant, key).await? else {
            // Versions before did not keep what the key was used for.
            let Some(plain) = key.strip_prefix(TURN_KEY) else { return Ok(None) };
            let known = self.store.turn_of_key(&turn.tenant, plain).await?;
            return Ok(known.filter(|known| known.digest == turn.digest));
        };
        if known.digest != turn.digest {
            let key = key.split_once(' ').map_or(key.as_str(), |(_, key)| key);
            return Err(Error::KeyReused(key.to_owned()));
        }
        Ok(Some(known))
    }

    fn room(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut rooms = lock(&self.rooms);
        let turns = tenant.settings.limits.turns.clamp(1, Semaphore::MAX_PERMITS);
        let room = rooms.entry(tenant.id.clone());
        room.or_insert_with(|| Arc::new(Semaphore::new(turns))).clone()
    }
}

fn row(tenant: &Tenant, thread: &ThreadRow, new: NewTurn) -> TurnRow {
    let digest = new
        .key
        .as_ref()
        .map(|_| secret::hash(&format!("{} {:?} {}", thread.id, new.kind, new.request)));
    TurnRow {
        id: format!("turn_{}", Uuid::now_v7().simple()),
        thread: thread.id.clone(),
        tenant: tenant.id.clone(),
        kind: new.kind,
        state: TurnState::Queued,
        request: new.request,
        key: new.key,
        digest,
        mark: None,
        backend_turn: None,
        error: None,
        resumable: false,
        usage: None,
        result: None,
        last: 0,
        created: clock::now(),
        started: None,
        ended: None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
