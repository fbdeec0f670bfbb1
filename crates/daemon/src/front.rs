//! The AI SDK front: a language-model call comes in, its stream parts go out as server-sent events.
//!
//! Read: [`request`] (what is asked), `options` (what of it is refused), `settings` (what of it is
//! the client's affair), `hub` (questions on their way to the stream that shows them), `events`
//! (the stream itself), `reach` (where workers are), `tenants` (one front for each).

pub mod request;

mod options;

mod settings;

mod hub;

mod events;

mod reach;

mod tenants;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_client::error::Error;
use bindery_client::interrupts::Interrupts;
use bindery_client::pool::{Lease, Pool, Stats, WorkerKey};
use bindery_client::turn::TurnControl;

use self::events::{Asked, Named};
pub use self::events::{Events, Frame};
use self::hub::Hub;
use self::request::CallRequest;
pub use self::tenants::{Admitted, Fronts, own_files};

/// The language-model calls of one tenant; clones share them.
#[derive(Clone)]
pub struct Front {
    pool: Pool,
    interrupts: Interrupts,
    hub: Hub,
    calls: Calls,
}

impl Front {
    /// A front on these workers. Questions are recorded in `interrupts`, to be answered by token.
    pub fn new(pool: Pool, interrupts: Interrupts) -> Self {
        Self { pool, interrupts, hub: Hub::default(), calls: Calls::default() }
    }

    /// Runs a call on workers of this kind. Dropping the events interrupts the turn.
    pub async fn stream(
        &self,
        key: &WorkerKey,
        backend: &str,
        request: CallRequest,
    ) -> Result<Events, Error> {
        let settings = settings::of(&request.settings, &self.hub, &self.interrupts);
        let options = request.options();
        let call = self.pool.model(key.clone(), settings).stream(&options).await?;
        let named = self.calls.enter(call.turn.control());
        let questions = self.hub.listen(call.turn.thread_id());
        let questions = Asked::new(questions, self.interrupts.clone());
        Ok(Events::new(call, named, questions, backend, &request))
    }

    /// Starts a worker and spare threads for conversations that begin like this call.
    pub async fn prepare(&self, key: &WorkerKey, request: CallRequest) -> Result<(), Error> {
        let settings = settings::of(&request.settings, &self.hub, &self.interrupts);
        self.pool.model(key.clone(), settings).prepare(&request.options()).await
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
