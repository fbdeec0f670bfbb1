//! What tools keep for as long as the thread lives.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::thread::ThreadSettings;

/// Shared by the turns of a thread.
pub(crate) struct Session {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: Vec<Step>,
    files: Vec<String>,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) step: String,
    /// `pending`, `in_progress`, `completed`.
    pub(crate) status: String,
}

impl Session {
    pub(crate) fn new(_settings: &ThreadSettings) -> Self {
        Self { state: Mutex::default() }
    }

    pub(crate) fn plan(&self) -> Vec<Step> {
        self.lock().plan.clone()
    }

    pub(crate) fn set_plan(&self, plan: Vec<Step>) {
        self.lock().plan = plan;
    }

    /// Files the thread changed, the newest last.
    pub(crate) fn files(&self) -> Vec<String> {
        self.lock().files.clone()
    }

    /// The turn's diff; none while it changed nothing.
    pub(crate) fn turn_diff(&self, _turn_id: &str) -> Option<String> {
        None
    }

    /// A turn ended before its time: what it started ends with it.
    pub(crate) async fn end_turn(&self, _turn_id: &str) {}

    /// The thread ends: so does everything it started.
    pub(crate) async fn end(&self) {}

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
