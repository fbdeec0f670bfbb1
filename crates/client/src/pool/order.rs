//! What the keeper is to do, each as a task of its own.

use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::params::ThreadStart;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::WorkerKey;
use super::admission::Admission;
use super::keeper::Shared;
use super::worker::WorkerId;
use crate::app_server::AppServer;
use crate::error::Error;
use crate::model::LanguageModel;

/// Something to do.
pub(super) enum Order {
    /// Start a worker, and watch over it to its end.
    Start { key: WorkerKey },
    /// Start a spare thread.
    Fill {
        key: WorkerKey,
        worker: WorkerId,
        server: AppServer,
        admission: Arc<Admission>,
        start: Box<ThreadStart>,
    },
    /// Hear no more of a thread that nobody uses.
    Leave {
        key: WorkerKey,
        worker: WorkerId,
        server: AppServer,
        model: Arc<LanguageModel>,
        thread: ThreadId,
    },
    /// Let go a spare thread.
    Discard { server: AppServer, thread: ThreadId },
    /// End a worker.
    End { server: AppServer },
}

impl Order {
    pub(super) async fn run(self, shared: Arc<Shared>) {
        match self {
            Self::Start { key } => start(&shared, key).await,
            Self::Fill { key, worker, server, admission, start } => {
                let outcome = admission.admit(server.start_thread(&start)).await;
                shared.change(&key, |group, fx| group.filled(worker, *start, outcome, fx));
            }
            Self::Leave { key, worker, server, model, thread } => {
                // Before, not after: whoever comes next must not take it for open.
                model.forget(&thread);
                let left = match shared.starter().owns(&key) {
                    true => server.unload_thread(&thread).await,
                    false => server.unsubscribe(&thread).await.map(|()| false),
                };
                let unloaded = left.unwrap_or_else(|err| {
                    tracing::warn!(%thread, %err, "an idle thread stays loaded");
                    false
                });
                shared.change(&key, |group, fx| group.left(&thread, worker, unloaded, fx));
            }
            Self::Discard { server, thread } => discard(&server, &thread).await,
            Self::End { server } => close(&server).await,
        }
    }
}

/// Lets go a thread that never ran. Codex 0.166 keeps no trace of one that is deleted, and a
/// session file of one that is archived; an ephemeral one cannot be deleted and is no file anyway.
pub(super) async fn discard(server: &AppServer, thread: &ThreadId) {
    let params = json!({ "threadId": thread });
    if server.request::<Value>("thread/delete", &params).await.is_err() {
        let _ = server.unsubscribe(thread).await;
    }
}

/// Ends a worker. Turns whose readers do not read are left to their readers.
pub(super) async fn close(server: &AppServer) {
    server.peer().close().await;
    let _ = timeout(READERS, server.close()).await;
}

/// How long turns may take to tell their readers of the end.
const READERS: Duration = Duration::from_secs(1);

async fn start(shared: &Arc<Shared>, key: WorkerKey) {
    let mut report = Report { shared, key: &key, open: true };
    let outcome = shared.starter().start(&key).await;
    report.open = false;
    let server = match outcome {
        Ok(server) => server,
        Err(err) => {
            let reason = Arc::new(err);
            return shared.change(&key, |group, fx| group.not_started(reason, fx));
        }
    };
    let worker = shared.change(&key, |group, fx| group.started(server.clone(), fx));
    let end = server.peer().ended().await;
    // Before it is replaced: the next one must not meet what is left of it.
    let idle = shared.change(&key, |group, _| group.is_ending(worker));
    shared.starter().ended(&key, idle).await;
    let reason = Error::Closed { status: end.status, stderr: end.stderr };
    shared.change(&key, |group, fx| group.ended(worker, reason, fx));
}

/// Whoever waits hears of a starter that panicked, too.
struct Report<'a> {
    shared: &'a Arc<Shared>,
    key: &'a WorkerKey,
    open: bool,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if self.open {
            let status = "its start was given up".to_owned();
            let reason = Arc::new(Error::Closed { status, stderr: String::new() });
            self.shared.change(self.key, |group, fx| group.not_started(reason, fx));
        }
    }
}
