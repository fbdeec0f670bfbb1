//! The AI SDK front: a language-model call comes in, its stream parts go out as server-sent events.
//!
//! Read: [`request`] (what is asked), `settings` (what of it is the client's affair), `hub`
//! (questions on their way to the stream that shows them), `answers` (who may answer them),
//! `events` (the stream itself), `reach` (where workers are), `tenants` (one front for each),
//! `folders` (the folders that turns run in).

pub mod request;

mod settings;

mod answers;

mod hub;

mod events;

mod reach;

mod tenants;

mod folders;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_client::error::Error;
use bindery_client::interrupts::Interrupts;
use bindery_client::model::ModelSettings;
use bindery_client::pool::{Lease, Pool, Stats, WorkerKey};
use bindery_client::turn::TurnControl;
use bindery_core::ids::{ApprovalId, ThreadId};
use bindery_core::interrupt::Answer;

use self::answers::ThreadContributors;
use self::events::{Asked, Named};
pub use self::events::{Events, Frame};
use self::folders::TurnFolders;
use self::hub::Hub;
use self::request::CallRequest;
pub use self::tenants::{Admitted, Bounds, Fronts};
use crate::tenant::{Caller, Contributor};

/// The language-model calls of one tenant; clones share them.
#[derive(Clone)]
pub struct Front {
    pool: Pool,
    interrupts: Interrupts,
    hub: Hub,
    calls: Calls,
    folders: TurnFolders,
    contributors: ThreadContributors,
}

impl Front {
    /// A front on these workers. Questions are recorded in `interrupts`, to be answered by token.
    pub fn new(pool: Pool, interrupts: Interrupts) -> Self {
        let (hub, calls, folders) = (Hub::default(), Calls::default(), TurnFolders::default());
        let contributors = ThreadContributors::default();
        Self { pool, interrupts, hub, calls, folders, contributors }
    }

    /// Runs a call on workers of this kind, and says in which thread. Dropping the events
    /// interrupts the turn.
    pub async fn stream(
        &self,
        admitted: Admitted,
        contributor: Contributor,
    ) -> Result<(Events, ThreadId), Error> {
        let Admitted { key, backend, request, bounds, .. } = admitted;
        let settings = self.settings(&request, bounds.as_ref());
        let options = request.options();
        let call = self.pool.model(key, settings).stream(&options).await?;
        let thread = call.turn.thread_id().clone();
        self.contributors.add(&thread, contributor);
        let named = self.calls.enter(call.turn.control());
        let folder = bounds.map(|bounds| bounds.folder);
        let folder = self.folders.enter(call.turn.thread_id(), call.opened.is_some(), folder);
        let questions = self.hub.listen(call.turn.thread_id());
        let questions = Asked::new(questions, self.interrupts.clone());
        Ok((Events::new(call, (named, folder), questions, backend, &request), thread))
    }

    /// Starts a worker and spare threads for conversations that begin like this call.
    pub async fn prepare(&self, admitted: Admitted) -> Result<(), Error> {
        let Admitted { key, request, bounds, .. } = admitted;
        let settings = self.settings(&request, bounds.as_ref());
        self.pool.model(key, settings).prepare(&request.options()).await
    }

    fn settings(&self, request: &CallRequest, bounds: Option<&Bounds>) -> ModelSettings {
        let mut settings = settings::of(&request.settings, &self.hub, &self.interrupts);
        if let Some(bounds) = bounds {
            settings.input = Arc::new(bounds.files.clone());
        }
        settings
    }

    /// The running turn of a call, to steer or stop it.
    pub fn control(&self, call_id: &str) -> Option<TurnControl> {
        self.calls.get(call_id)
    }

    /// Room on a worker, for requests that are no calls.
    pub async fn lease(&self, key: &WorkerKey) -> Result<Lease, Error> {
        self.pool.lease(key, None).await
    }

    /// Counts of its workers, as of now.
    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// Lets turns end, interrupts those that do not, and ends all workers.
    pub async fn shutdown(&self, deadline: Duration) {
        self.pool.shutdown(deadline).await;
    }

    /// Adds somebody to those who have had a part in a call's thread.
    pub fn contribute(&self, control: &TurnControl, contributor: Contributor) {
        self.contributors.add(control.thread_id(), contributor);
    }

    /// Whether the caller may give this answer.
    pub fn check_answer(
        &self,
        caller: &Caller,
        token: &ApprovalId,
        answer: &Answer,
    ) -> Result<(), crate::error::Error> {
        answers::check_open(caller, &self.interrupts, &self.contributors, token, answer)
    }

    /// Where the questions of these calls are answered.
    pub fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// Calls under way, by a name that only their caller is told.
#[derive(Clone, Default)]
struct Calls {
    running: Arc<Mutex<HashMap<String, TurnControl>>>,
}

impl Calls {
    fn enter(&self, control: TurnControl) -> Named {
        let call_id = format!("call_{}", uuid::Uuid::now_v7().simple());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(call_id.clone(), control);
        drop(running);
        Named { call_id, calls: self.clone() }
    }

    fn get(&self, call_id: &str) -> Option<TurnControl> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(call_id).cloned()
    }

    fn leave(&self, call_id: &str) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(call_id);
    }
}
