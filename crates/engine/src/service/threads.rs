//! The threads that are loaded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::crowd::Crowd;
use super::refused::Refused;
use crate::thread::{Thread, ThreadView};

/// Threads that may be loaded at once.
const MOST: usize = 4096;

/// A thread that is loaded, and what is known about it beside its history.
pub(crate) struct Loaded {
    pub(crate) thread: Thread,
    pub(crate) crowd: Arc<Crowd>,
    /// What does not change.
    pub(crate) birth: Birth,
    /// What does.
    about: Mutex<About>,
}

/// What is fixed when a thread is loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Birth {
    pub(crate) provider: String,
    pub(crate) forked_from: Option<String>,
    pub(crate) ephemeral: bool,
    pub(crate) path: Option<String>,
    pub(crate) originator: String,
    pub(crate) cli_version: String,
    pub(crate) source: Value,
    pub(crate) git: Value,
    pub(crate) created_at: i64,
    pub(crate) sources: Vec<String>,
}

/// What changes while it is loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The name a person gave it.
    pub(crate) name: Option<String>,
    /// The first words of it.
    pub(crate) preview: String,
    /// Seconds since 1970.
    pub(crate) updated_at: i64,
}

impl Loaded {
    pub(crate) fn new(thread: Thread, crowd: Arc<Crowd>, birth: Birth, about: About) -> Self {
        Self { thread, crowd, birth, about: Mutex::new(about) }
    }

    pub(crate) fn about(&self) -> MutexGuard<'_, About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn view(&self) -> ThreadView {
        self.thread.snapshot().await
    }
}

/// All of them, by name.
#[derive(Default)]
pub(crate) struct Threads(Mutex<HashMap<String, Arc<Loaded>>>);

impl Threads {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Loaded>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn has_room(&self) -> Result<(), Refused> {
        if self.lock().len() < MOST { Ok(()) } else { Err(Refused::overloaded()) }
    }

    pub(crate) fn add(&self, loaded: Arc<Loaded>) {
        self.lock().insert(loaded.thread.id().to_owned(), loaded);
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Loaded>> {
        self.lock().remove(id)
    }

    /// Names, in order.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.lock().keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn all(&self) -> Vec<Arc<Loaded>> {
        self.lock().values().cloned().collect()
    }

    /// Takes out those that nobody has listened to and that have done nothing for so long.
    pub(crate) fn take_idle(&self, after: Duration) -> Vec<Arc<Loaded>> {
        let now = Instant::now();
        let mut threads = self.lock();
        let is_idle = |loaded: &Loaded| {
            loaded.crowd.idle_since().is_some_and(|since| now.duration_since(since) >= after)
        };
        let idle: Vec<String> = threads
            .iter()
            .filter(|(_, loaded)| is_idle(loaded))
            .map(|(id, _)| id.clone())
            .collect();
        idle.iter().filter_map(|id| threads.remove(id)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Loaded>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
