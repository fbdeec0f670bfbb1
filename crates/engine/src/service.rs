//! The engine as an app-server: Codex's protocol, for as many clients as come.
//!
//! A [`Connection`] carries lines; a session reads them and serves its
//! requests in their order; `serve` holds the methods. What a thread tells goes to those who
//! listen to it (`crowd`), over whatever connections they have. Threads belong to no connection:
//! a client that is gone leaves its turns running.

pub mod bound;

pub mod connection;

mod crowd;

pub mod disk;

mod ears;

pub mod house;

mod line;

pub mod listen;

mod methods;

pub mod outbox;

mod page;

mod refused;

mod serve;

mod session;

mod shapes;

pub mod store;

pub mod supply;

mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::{Connection, Wire};
use self::crowd::Desk;
use self::ears::{ConnectionId, Ears};
pub use self::line::Line;
use self::outbox::Room;
pub use self::refused::Refused;
use self::store::Store;
use self::supply::Supply;
use self::threads::Threads;

/// The version of Codex whose protocol is spoken.
pub const CODEX_VERSION: &str = "0.166.0";

/// What a service may be told to do differently.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSettings {
    /// How much may wait for one client to read it.
    pub room: Room,
    /// A thread that is idle and has no listener is unloaded after this time.
    pub unload_after: Duration,
    /// Connections at once.
    pub connections: usize,
    /// What sessions say of where they come from, in Codex's words: `vscode` for clients of the
    /// protocol, `exec` for runs without one.
    pub source: &'static str,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            room: Room::default(),
            unload_after: Duration::from_secs(30 * 60),
            connections: 1024,
            source: "vscode",
        }
    }
}

/// A running app-server; clones share it.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

/// What all connections share.
pub(crate) struct Inner {
    pub(crate) home: String,
    pub(crate) supply: Arc<dyn Supply>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ears: Arc<Ears>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) threads: Threads,
    /// Threads run on it.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) settings: ServiceSettings,
    sessions: TaskTracker,
    next: AtomicU64,
    connected: AtomicUsize,
}

impl Service {
    /// Starts a service. Must be called within a runtime.
    pub fn start(
        supply: Arc<dyn Supply>,
        store: Arc<dyn Store>,
        settings: ServiceSettings,
    ) -> Self {
        let inner = Arc::new(Inner {
            home: supply.home().display().to_string(),
            supply,
            store,
            ears: Arc::default(),
            desk: Arc::default(),
            threads: Threads::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            settings,
            sessions: TaskTracker::new(),
            next: AtomicU64::new(0),
            connected: AtomicUsize::new(0),
        });
        inner.sessions.spawn(sweep(inner.clone()));
        Self { inner }
    }

    /// A new connection: the end that a transport needs.
    pub fn connect(&self) -> Wire {
        let (connection, wire) = connection::pair(self.inner.settings.room);
        self.attach(connection);
        wire
    }

    /// Serves a connection.
    fn attach(&self, connection: Connection) {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        self.inner.connected.fetch_add(1, Ordering::AcqRel);
        self.inner.sessions.spawn(session::run(self.inner.clone(), id, connection));
    }

    /// Whether there are as many connections as may be.
    pub fn is_full(&self) -> bool {
        self.inner.connected.load(Ordering::Acquire) >= self.inner.settings.connections
    }

    /// Set once the service is to stop.
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stop
    }

    /// Stops: hangs up on everyone, ends every thread and waits until nothing is left.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.sessions.close();
        self.inner.sessions.wait().await;
        for loaded in self.inner.threads.all() {
            self.inner.threads.remove(loaded.thread.id());
            loaded.thread.close().await;
        }
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("threads", &self.inner.threads.ids())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// A connection is gone; its threads are not.
    pub(crate) fn forget(&self, id: ConnectionId) {
        self.ears.remove(id);
        for loaded in self.threads.all() {
            loaded.crowd.leave(id);
        }
        self.connected.fetch_sub(1, Ordering::AcqRel);
    }

    /// Ends a thread that was taken out of the list, and tells everyone.
    pub(crate) async fn unload(&self, loaded: &threads::Loaded) {
        loaded.thread.close().await;
        let id = loaded.thread.id();
        let status = json!({ "type": "notLoaded" });
        let params = json!({ "threadId": id, "status": status });
        self.ears.tell("thread/status/changed", &params);
        self.ears.tell("thread/closed", &json!({ "threadId": id }));
    }
}

/// Unloads what nobody has wanted for long.
async fn sweep(inner: Arc<Inner>) {
    let after = inner.settings.unload_after;
    let pause = (after / 4).clamp(Duration::from_millis(10), Duration::from_secs(60));
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        for loaded in inner.threads.take_idle(after) {
            inner.unload(&loaded).await;
        }
    }
}
