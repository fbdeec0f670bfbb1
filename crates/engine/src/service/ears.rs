//! Everyone who is connected and greeted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::line::{self, Line};
use super::outbox::Outbox;

/// Names a connection.
pub(crate) type ConnectionId = u64;

/// One who listens.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) id: ConnectionId,
    pub(crate) outbox: Outbox,
    /// What it does not want to hear.
    pub(crate) deaf_to: HashSet<String>,
    /// Who it says it is.
    pub(crate) client: Client,
    /// Whether it asked for the experimental API.
    pub(crate) experimental: bool,
}

/// Who a client says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Ear {
    /// Tells, unless it does not want to know.
    pub(crate) fn tell(&self, method: &str, line: &Line) {
        if !self.deaf_to.contains(method) {
            self.outbox.put(line.clone());
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Ears(Mutex<HashMap<ConnectionId, Arc<Ear>>>);

impl Ears {
    pub(crate) fn add(&self, ear: Arc<Ear>) {
        self.lock().insert(ear.id, ear);
    }

    pub(crate) fn remove(&self, id: ConnectionId) {
        self.lock().remove(&id);
    }

    /// Tells everyone.
    pub(crate) fn tell(&self, method: &str, params: &Value) {
        self.pass(method, &line::notice(method, params));
    }

    /// Tells everyone what is written already.
    pub(crate) fn pass(&self, method: &str, line: &Line) {
        let ears: Vec<Arc<Ear>> = self.lock().values().cloned().collect();
        ears.iter().for_each(|ear| ear.tell(method, line));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Ear>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
