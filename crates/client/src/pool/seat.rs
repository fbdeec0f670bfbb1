//! The right to run a turn on a worker, given back when the turn is truly over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bindery_core::call::CallOptions;
use bindery_core::ids::ThreadId;
use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_core::wire::app_server::reply::ThreadOpened;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::group::Group;
use super::keeper::Shared;
use super::state::{Effects, Ticket};
use crate::answerer::Answerer;
use crate::app_server::AppServer;
use crate::error::Error;
use crate::model::{Call, ModelSettings, Threads};
use crate::turn::{Adoption, Turn, TurnControl};

/// Room for one call.
pub(super) struct Seat {
    shared: Arc<Shared>,
    ticket: Ticket,
}

impl Seat {
    pub(super) fn new(shared: Arc<Shared>, ticket: Ticket) -> Self {
        Self { shared, ticket }
    }

    pub(super) fn server(&self) -> &AppServer {
        &self.ticket.server
    }

    /// Runs a call, in a task of its own: a caller that goes away in the middle must not leave a
    /// turn that nobody hears of.
    pub(super) async fn run(
        self,
        options: CallOptions,
        settings: ModelSettings,
    ) -> Result<Call, Failure> {
        let seat = Arc::new(self);
        let (reply, outcome) = oneshot::channel();
        let left = CancellationToken::new();
        let _leave = left.clone().drop_guard();
        let shared = seat.shared.clone();
        shared.track(async move {
            let call = seat.call(options, settings, left).await;
            // Dropped unseen, the turn is interrupted.
            drop(reply.send(call));
        });
        outcome.await.unwrap_or(Err(Failure { error: Error::ShuttingDown, again: false }))
    }

    /// Goes on with a turn that runs already; it keeps the seat to its end.
    pub(super) fn adopt(
        self,
        options: &CallOptions,
        settings: ModelSettings,
        thread: ThreadId,
        adoption: Adoption,
    ) -> Result<Turn, Error> {
        let seat = Arc::new(self);
        let answerer = Arc::new(Held { answerer: settings.answerer, _seat: seat.clone() });
        let model = seat.ticket.model.with(ModelSettings { answerer, ..settings });
        let turn = model.adopt(options, thread, adoption).map_err(|err| seat.failed(err))?;
        seat.opened(turn.thread_id(), Some(turn.control()));
        Ok(turn)
    }

    /// Starts the spare threads that calls like this want, in a task of its own too.
    pub(super) async fn prepare(
        self,
        options: CallOptions,
        settings: ModelSettings,
    ) -> Result<(), Error> {
        let (reply, outcome) = oneshot::channel();
        let shared = self.shared.clone();
        shared.track(async move { drop(reply.send(self.fill(options, settings).await)) });
        outcome.await.unwrap_or(Err(Error::ShuttingDown))
    }

    async fn fill(&self, options: CallOptions, settings: ModelSettings) -> Result<(), Error> {
        let Some(start) = self.rehearse(&options, settings).await else { return Ok(()) };
        let worker = self.ticket.worker;
        let mut failed = Ok(());
        for _ in 0..self.change(|group, fx| group.declare(worker, &start, fx)) {
            let outcome = self.ticket.admission.admit(self.server().start_thread(&start)).await;
            let outcome = outcome.map_err(Arc::new);
            failed = outcome.as_ref().map(drop).map_err(|err| Error::Worker(err.clone()));
            let outcome = outcome.map_err(Error::Worker);
            self.change(|group, fx| group.filled(worker, start.clone(), outcome, fx));
        }
        failed
    }

    async fn call(
        self: Arc<Self>,
        options: CallOptions,
        settings: ModelSettings,
        left: CancellationToken,
    ) -> Result<Call, Failure> {
        let answerer = Arc::new(Held { answerer: settings.answerer, _seat: self.clone() });
        let again = Arc::new(AtomicBool::new(false));
        let threads = Arc::new(Warm { seat: self.clone(), left, again: again.clone() });
        let settings = ModelSettings { answerer, threads, ..settings };
        let outcome = self.ticket.model.with(settings).stream(&options).await;
        match outcome {
            Ok(call) => {
                self.opened(call.turn.thread_id(), Some(call.turn.control()));
                Ok(call)
            }
            Err(error) => {
                let again = again.load(Ordering::Relaxed);
                Err(Failure { error: self.failed(error), again })
            }
        }
    }

    /// What the model would start a thread with for this call; none if it would start none. It is
    /// asked and stopped, because nobody else must know how settings and calls are merged.
    async fn rehearse(
        &self,
        options: &CallOptions,
        settings: ModelSettings,
    ) -> Option<ThreadStart> {
        let rehearsal = Arc::new(Rehearsal::default());
        let settings = ModelSettings { threads: rehearsal.clone(), ..settings };
        drop(self.ticket.model.with(settings).stream(options).await);
        let mut start = rehearsal.start.lock().unwrap_or_else(PoisonError::into_inner);
        start.take()
    }

    fn opened(&self, thread: &ThreadId, control: Option<TurnControl>) {
        self.change(|group, fx| group.opened(self.ticket.seat, thread, control, fx));
    }

    fn failed(&self, err: Error) -> Error {
        if let Error::Closed { status, stderr } = &err {
            // Known here before the keeper hears of it; nobody else should find it gone.
            let reason = Error::Closed { status: status.clone(), stderr: stderr.clone() };
            self.change(|group, fx| group.ended(self.ticket.worker, reason, fx));
        }
        let Some(thread) = &self.ticket.thread else { return err };
        match &err {
            Error::Rpc { method, message, .. } if method == "thread/resume" => {
                let held = message.contains("already has an active writer");
                if held { Error::ThreadHeld { thread: thread.to_string() } } else { err }
            }
            // Not refused, so the worker may have it loaded, and nobody else can have it.
            _ => {
                self.opened(thread, None);
                err
            }
        }
    }

    fn change<R>(&self, act: impl FnOnce(&mut Group, &mut Effects<'_>) -> R) -> R {
        self.shared.change(&self.ticket.key, act)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.change(|group, fx| group.release(self.ticket.seat, fx));
    }
}

/// Why a call did not start.
pub(super) struct Failure {
    /// The reason.
    pub(super) error: Error,
    /// The worker was gone before anything was done: another may do it.
    pub(super) again: bool,
}

/// An answerer that keeps the seat. A turn has its answerer to its very end, also when its reader
/// has left and Codex is still being stopped; so long does it take up room.
struct Held {
    answerer: Arc<dyn Answerer>,
    _seat: Arc<Seat>,
}

impl Answerer for Held {
    fn answer(&self, interrupt: Interrupt) -> BoxFuture<'static, Option<Answer>> {
        self.answerer.answer(interrupt)
    }

    fn leaves(&self, interrupt: &Interrupt) -> bool {
        self.answerer.leaves(interrupt)
    }
}

/// Takes spare threads first, and starts others when it is their turn.
struct Warm {
    seat: Arc<Seat>,
    /// Set when the caller has left.
    left: CancellationToken,
    /// Set when the worker was gone before it started a thread.
    again: Arc<AtomicBool>,
}

impl Threads for Warm {
    fn start(
        &self,
        server: &AppServer,
        start: ThreadStart,
    ) -> BoxFuture<'static, Result<ThreadOpened, Error>> {
        let (seat, left, server) = (self.seat.clone(), self.left.clone(), server.clone());
        let again = self.again.clone();
        Box::pin(async move {
            let worker = seat.ticket.worker;
            let spare = seat.change(|group, fx| group.take_spare(worker, &start, fx));
            let opened = match spare {
                Some(opened) => opened,
                None => {
                    let outcome = seat.ticket.admission.admit(server.start_thread(&start)).await;
                    again.store(matches!(outcome, Err(Error::Closed { .. })), Ordering::Relaxed);
                    outcome?
                }
            };
            // Bound at once: should the turn not start, the thread is let go when it is idle.
            seat.opened(&opened.thread.id, None);
            if left.is_cancelled() { Err(Error::ShuttingDown) } else { Ok(opened) }
        })
    }
}

/// Starts nothing and remembers what it was to start.
#[derive(Default)]
struct Rehearsal {
    start: Mutex<Option<ThreadStart>>,
}

impl Threads for Rehearsal {
    fn start(
        &self,
        _: &AppServer,
        start: ThreadStart,
    ) -> BoxFuture<'static, Result<ThreadOpened, Error>> {
        let mut known = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(start);
        Box::pin(std::future::ready(Err(Error::ShuttingDown)))
    }
}
