//! A turn begins once, whichever daemon asks for it.
//!
//! One that the backend cannot have heard of is asked for; one that it may have is looked for, and
//! asked for only if it is surely not there. Workers that keep ending make it wait, not fail.

use std::time::{Duration, Instant};

use bindery_client::error::Error as ClientError;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tracing::Instrument as _;

use super::Inner;
use super::flow::Flow;
use super::lane::Job;
use super::open::Opened;
use super::take_over::{TAKE_OVER, TAKE_OVER_PAUSE};
use crate::clock;
use crate::error::Error;
use crate::store::{Change, Paging, TurnKind, TurnState};

/// How long a turn may wait for memory to begin in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// How long a turn that the backend was asked for may take to begin when we stop.
pub(super) const STARTING: Duration = Duration::from_secs(10);

/// How often a worker may be gone before it was asked for anything.
const ATTEMPTS: u32 = 3;

/// Turns of a thread that are looked at.
const TURNS: usize = 1000;

/// What became of a beginning.
pub(super) enum Beginning {
    /// It runs.
    Begun(Opened),
    /// The worker that was asked for it is gone, in this way.
    Gone(String),
    /// Somebody wanted it stopped before it was asked for.
    Withdrawn,
    /// We stop; it is left to the next daemon.
    LetGo,
    /// It cannot begin.
    Failed(Error),
}

impl Inner {
    /// Runs one turn to its end, or until we stop.
    pub(super) async fn run(&self, tenant: &str, thread: &str, job: &Job) -> Result<(), Error> {
        let Some(row) = self.store.tenant(tenant).await? else { return Ok(()) };
        // Nothing of the turn is in memory while it waits.
        let admission = async {
            let room = self.room(&row).acquire_owned().await;
            let limit = row.settings.limits.request_bytes;
            let share = self.body_budget.share(tenant, limit, job.bytes, PATIENCE).await;
            (room, share)
        };
        let (_permit, share) = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(()),
            admitted = admission => admitted,
        };
        let Some(live) = self.live().get(&job.turn).cloned() else { return Ok(()) };
        let dequeue = live.dequeue.lock().await;
        let Some(mut scene) = self.scene(tenant, thread, &job.turn).await? else { return Ok(()) };
        // Needed to begin with; whoever takes the turn over later reads it again.
        let request = std::mem::take(&mut scene.turn.request);
        if scene.turn.state == TurnState::Queued {
            let start = Change::StartTurn { turn: job.turn.clone(), at: clock::now() };
            // Withdrawn meanwhile.
            if self.holder().commit(&scene.live, vec![start]).await? != [true] {
                return Ok(());
            }
        }
        drop(dequeue);
        let mut flow = Flow::new(self, &scene, &request).await?;
        let asked = scene.live.is_asked();
        if scene.live.stop.is_cancelled() && !asked {
            return flow.withdraw().await;
        }
        if let Some(err) = flow.confinement.broken().filter(|_| !asked) {
            return flow.fail(&err).await;
        }
        if scene.turn.kind == TurnKind::Compact {
            return flow.compact().await;
        }
        let call = tracing::debug_span!(
            "worker.call",
            otel.kind = "client",
            worker.backend = scene.thread.backend,
            turn.adopted = asked,
        );
        let share = match share {
            Ok(share) => share,
            Err(err) => return flow.fail(&err).await,
        };
        let beginning = flow.begin(request).instrument(call).await;
        drop(share);
        match beginning {
            Beginning::Begun(opened) => flow.run(opened).await,
            Beginning::Gone(why) => flow.lost(Vec::new(), &why).await,
            Beginning::Withdrawn => flow.withdraw().await,
            Beginning::LetGo => Ok(()),
            Beginning::Failed(err) => flow.fail(&err).await,
        }
    }
}

impl Flow<'_> {
    /// Begins the turn, or finds it where it runs.
    pub(super) async fn begin(&mut self, request: Value) -> Beginning {
        let (begin, mut attempts) = (Instant::now(), 0);
        let mut request = Some(request);
        loop {
            let err = match self.attempt(request.take()).await {
                Ok(opened) => return Beginning::Begun(opened),
                Err(err) => err,
            };
            self.scene.live.leave_start();
            attempts += 1;
            if let Err(end) = self.go_on(err, begin, attempts).await {
                return end;
            }
        }
    }

    /// One attempt; when we stop, it is given up unless the backend was asked already.
    async fn attempt(&self, request: Option<Value>) -> Result<Opened, Error> {
        let inner = self.inner;
        let opening = self.open_or_find(request);
        tokio::pin!(opening);
        tokio::select! {
            biased;
            opened = &mut opening => return opened,
            () = inner.stop.cancelled() => {}
        }
        if !self.scene.live.is_starting() {
            return Err(Error::Stopping);
        }
        timeout(STARTING, opening).await.unwrap_or(Err(Error::Stopping))
    }

    async fn open_or_find(&self, request: Option<Value>) -> Result<Opened, Error> {
        let (inner, live) = (self.inner, &self.scene.live);
        let row = &self.scene.turn;
        let missing = || Error::not_found("turn", row.id.as_str());
        let found = inner.scene(&row.tenant, &row.thread, &row.id).await?;
        let mut scene = found.ok_or_else(missing)?;
        let stored = std::mem::take(&mut scene.turn.request);
        let request = request.unwrap_or(stored);
        if scene.turn.backend_turn.is_none() && live.is_asked() {
            match (inner.find_begun(&scene).await?, &live.gone) {
                (Some(found), _) => scene.turn.backend_turn = Some(found.id),
                (None, Some(why)) => return Err(gone(why).into()),
                (None, None) => {
                    tracing::info!(turn = row.id, "the turn had not begun; it is asked for again");
                    live.set_asked(false);
                }
            }
        }
        match scene.turn.backend_turn.is_some() {
            true => inner.adopt(&scene, request).await,
            false => inner.open(&scene, request).await,
        }
    }

    /// Whether to try again after this, and how it ends if not.
    async fn go_on(&self, err: Error, begin: Instant, attempts: u32) -> Result<(), Beginning> {
        let live = &self.scene.live;
        if self.inner.stop.is_cancelled() {
            return Err(Beginning::LetGo);
        }
        if let Some(pause) = pause_of(&err) {
            tracing::info!(turn = self.scene.turn.id, %err, "the turn waits for a worker");
            return self.pause(pause).await;
        }
        if live.is_asked() {
            if !is_lost(&err) {
                return Err(Beginning::Failed(err));
            }
            if let Some(why) = self.fate().await {
                return Err(Beginning::Gone(why));
            }
            if begin.elapsed() > TAKE_OVER {
                return Err(Beginning::Failed(err));
            }
            return self.pause(TAKE_OVER_PAUSE).await;
        }
        if is_unwritten(&err) && self.forget_session().await.map_err(Beginning::Failed)? {
            return Ok(());
        }
        if is_lost(&err) && attempts < ATTEMPTS { Ok(()) } else { Err(Beginning::Failed(err)) }
    }

    /// How the worker that was asked has ended, if it has.
    async fn fate(&self) -> Option<String> {
        if let Some(why) = &self.scene.live.gone {
            return Some(why.clone());
        }
        let (tenant, backend) = (&self.scene.tenant, &self.scene.thread.backend);
        self.inner.workers.is_gone(tenant, backend).await
    }

    async fn pause(&self, pause: Duration) -> Result<(), Beginning> {
        let live = &self.scene.live;
        tokio::select! {
            () = sleep(pause) => Ok(()),
            () = self.inner.stop.cancelled() => Err(Beginning::LetGo),
            () = live.stop.cancelled(), if !live.is_asked() => Err(Beginning::Withdrawn),
        }
    }

    /// Takes a thread for new whose session was never written down: its worker ended, or its daemon
    /// did, before the first turn had begun. One that has run, or that came from elsewhere, is not.
    async fn forget_session(&self) -> Result<bool, Error> {
        let thread = &self.scene.thread;
        let page = Paging { before: None, limit: TURNS };
        let turns = self.inner.store.turns(&thread.tenant, &thread.id, page).await?;
        let is_ours = turns.iter().any(|turn| turn.mark.is_some());
        if !is_ours || turns.iter().any(|turn| turn.state == TurnState::Completed) {
            return Ok(false);
        }
        let unbind = Change::UnbindThread { thread: thread.id.clone(), at: clock::now() };
        self.inner.holder().commit(&self.scene.live, vec![unbind]).await?;
        Ok(true)
    }
}

fn gone(status: &str) -> ClientError {
    ClientError::Closed { status: status.to_owned(), stderr: String::new() }
}

/// How long to wait for room or for a worker, if that is all that is missing.
fn pause_of(err: &Error) -> Option<Duration> {
    let Error::Client(ClientError::BackOff { retry_after, .. }) = err else { return None };
    Some(*retry_after)
}

/// Whether the connection, and not the request, has failed.
fn is_lost(err: &Error) -> bool {
    use ClientError::{Closed, Connect, Timeout};
    matches!(err, Error::Client(Closed { .. } | Connect { .. } | Timeout { .. }))
}

/// Whether the backend knows nothing of the session.
fn is_unwritten(err: &Error) -> bool {
    let Error::Client(ClientError::Rpc { method, message, .. }) = err else { return false };
    let unwritten = message.contains("no rollout found") || message.ends_with("is empty");
    method == "thread/resume" && unwritten
}
