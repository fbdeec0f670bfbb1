//! Workers that outlive us: started behind a guard, found again by their sockets.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error as ClientError;
use bindery_client::pool::{Starter, WorkerKey};
use bindery_client::transport::address::Address;
use bindery_client::transport::dial::Dial;
use bindery_client::transport::stdio::Launch;
use futures_util::future::BoxFuture;
use tokio::process::{ChildStdin, Command};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::folder::Folder;
use super::{Kind, Kinds, Obituaries, Program};
use crate::clock;
use crate::config::Config;
use crate::error::Error;
use crate::secret;
use crate::store::{Change, Store, WorkerRow};

/// How often the lease is renewed.
const RENEW: Duration = Duration::from_millis(500);

/// How long a worker may take until it listens: it loads configuration, on a busy machine.
const START: Duration = Duration::from_secs(60);

/// How long a worker that listens may take to greet.
const GREET: Duration = Duration::from_secs(10);

/// How long a guard may take to end its worker.
const END: Duration = Duration::from_secs(10);

/// How long a guard may take to notice that its worker has ended.
const MOMENT: Duration = Duration::from_millis(500);

/// Starts workers behind guards.
pub(super) struct Detached {
    program: Program,
    store: Arc<dyn Store>,
    kinds: Kinds,
    obituaries: Obituaries,
    workers: PathBuf,
    lease: PathBuf,
    patience: Duration,
    with_parent: bool,
    /// Held open for guards that end with us.
    inputs: Mutex<HashMap<String, ChildStdin>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Detached {
    pub(super) fn new(
        config: &Config,
        program: Program,
        store: Arc<dyn Store>,
        kinds: Kinds,
        obituaries: Obituaries,
    ) -> Result<Arc<Self>, Error> {
        let workers = config.data.join("workers");
        make_private(&workers).map_err(|err| Error::io(&workers, err))?;
        let lease = config.data.join("lease");
        let file = File::create(&lease).map_err(|err| Error::io(&lease, err))?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(renew(file, stop.clone()));
        Ok(Arc::new(Self {
            program,
            store,
            kinds,
            obituaries,
            workers,
            lease,
            patience: Duration::from_secs(config.workers.orphan_seconds.max(2)),
            with_parent: config.exit_with_parent,
            inputs: Mutex::default(),
            stop,
            tasks,
        }))
    }

    /// Whether a worker of this kind answers.
    pub(super) async fn lives(&self, kind: &Kind) -> bool {
        let Ok(rows) = self.rows(kind).await else { return false };
        for row in rows {
            if lasts(&row.socket).await {
                return true;
            }
        }
        false
    }

    /// How a worker of this kind that was left from before has ended, if it has.
    pub(super) async fn fate(&self, kind: &Kind) -> Option<String> {
        if self.lives(kind).await {
            return None;
        }
        for row in self.rows(kind).await.unwrap_or_default() {
            if let Some(obituary) = self.obituary(&Folder::new(&self.workers, &row.id)).await {
                return Some(obituary);
            }
        }
        Some("nobody knows how".to_owned())
    }

    /// The process of the worker of this kind.
    pub(super) async fn process_of(&self, key: &WorkerKey) -> Option<u32> {
        let rows = self.rows(&self.kind(key)?).await.ok()?;
        let found =
            rows.iter().find_map(|row| process(&Folder::new(&self.workers, &row.id), &row.socket));
        found.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
    }

    /// Lets the lease run out, or ends all workers at once.
    pub(super) async fn stop(&self, end: bool) {
        if end {
            let rows = self.store.workers().await.unwrap_or_default();
            futures_util::future::join_all(rows.iter().map(|row| self.end(row))).await;
        }
        self.stop.cancel();
        self.tasks.close();
        if end {
            self.tasks.wait().await;
        }
    }

    async fn rows(&self, kind: &Kind) -> Result<Vec<WorkerRow>, Error> {
        let rows = self.store.workers().await?.into_iter();
        let is = |row: &WorkerRow| row.tenant == kind.tenant && row.backend == kind.backend;
        Ok(rows.filter(is).collect())
    }

    /// One that is left from before, or a new one.
    async fn provide(&self, key: WorkerKey) -> Result<AppServer, ClientError> {
        let kind = self.kind(&key).ok_or_else(|| failed("a worker of no known kind"))?;
        for row in self.rows(&kind).await.map_err(failed)? {
            match dial_again(&row.socket).await {
                Ok(server) => {
                    tracing::info!(worker = row.id, tenant = row.tenant, "worker found again");
                    return Ok(server);
                }
                Err(err) => {
                    tracing::info!(worker = row.id, %err, "worker is gone");
                    self.bury(&row, &kind).await;
                }
            }
        }
        self.launch(&kind, key.launch()).await
    }

    async fn launch(&self, kind: &Kind, launch: &Launch) -> Result<AppServer, ClientError> {
        self.obituaries.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        let id = secret::random("", 6).map_err(failed)?;
        let folder = Folder::new(&self.workers, &id);
        let socket = folder.socket(&id);
        let spawned =
            |source| ClientError::Spawn { program: launch.program.display().to_string(), source };
        make_private(folder.path()).map_err(spawned)?;
        socket.parent().map(make_private).transpose().map_err(spawned)?;
        let row = WorkerRow {
            id: id.clone(),
            tenant: kind.tenant.clone(),
            backend: kind.backend.clone(),
            key: secret::hash(&format!("{:?}{:?}", launch.program, launch.args)),
            socket: socket.display().to_string(),
            started: clock::now(),
        };
        // Written down first: whoever comes after us must find what we have started.
        self.store.commit(vec![Change::AddWorker(row.clone())]).await.map_err(failed)?;
        self.spawn_guard(&id, &folder, &socket, launch).map_err(spawned)?;
        match reach(&folder, &row.socket).await {
            Ok(server) => {
                tracing::info!(worker = id, tenant = kind.tenant, "worker started");
                Ok(server)
            }
            Err(err) => {
                self.bury(&row, kind).await;
                Err(err)
            }
        }
    }

    fn spawn_guard(
        &self,
        id: &str,
        folder: &Folder,
        socket: &Path,
        launch: &Launch,
    ) -> std::io::Result<()> {
        // The guard cuts it short when it grows too long.
        let log = File::options().create(true).append(true).open(folder.log())?;
        let mut command = Command::new(&self.program.executable);
        command.args(&self.program.guard).arg("--folder").arg(folder.path());
        command.arg("--lease").arg(&self.lease);
        command.arg("--patience").arg(self.patience.as_secs().to_string());
        if self.with_parent {
            command.arg("--with-parent").stdin(Stdio::piped());
        } else {
            command.stdin(Stdio::null());
        }
        command.arg("--").arg(&launch.program).args(&launch.args);
        command.arg("--listen").arg(format!("unix://{}", socket.display()));
        command.env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        let mut child = command.spawn()?;
        if let Some(input) = child.stdin.take() {
            self.inputs().insert(id.to_owned(), input);
        }
        let stop = self.stop.clone();
        // Reaps it. A guard that outlives us is reaped by whoever takes over our children.
        self.tasks.spawn(async move {
            tokio::select! {
                _ = child.wait() => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Tells a guard to end its worker, and sees to it that it did.
    async fn end(&self, row: &WorkerRow) {
        let folder = Folder::new(&self.workers, &row.id);
        let _ = fs::write(folder.stop(), "");
        let begin = Instant::now();
        while !folder.exit().exists() && begin.elapsed() < END {
            // Without a guard nobody will say that it has ended.
            if !folder.path().exists() || !process_runs(&folder, &row.socket) {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
        kill_process(&folder, &row.socket);
        let change = Change::RemoveWorker { id: row.id.clone() };
        if let Err(err) = self.store.commit(vec![change]).await {
            tracing::warn!(worker = row.id, %err, "a worker cannot be forgotten");
        }
        self.inputs().remove(&row.id);
        folder.remove(Path::new(&row.socket));
    }

    /// A worker that does not answer any more.
    async fn bury(&self, row: &WorkerRow, kind: &Kind) {
        let folder = Folder::new(&self.workers, &row.id);
        if let Some(obituary) = self.obituary(&folder).await {
            let mut all = self.obituaries.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(kind.clone(), obituary);
        }
        self.end(row).await;
    }

    /// What its guard says of its end, for which that needs a moment.
    async fn obituary(&self, folder: &Folder) -> Option<String> {
        let begin = Instant::now();
        while folder.obituary().is_none() && begin.elapsed() < MOMENT && folder.path().exists() {
            sleep(Duration::from_millis(10)).await;
        }
        folder.obituary()
    }

    fn kind(&self, key: &WorkerKey) -> Option<Kind> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn inputs(&self) -> std::sync::MutexGuard<'_, HashMap<String, ChildStdin>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is closed: one that had nothing to do is ended, one that is gone forgotten.
    async fn closed(&self, key: &WorkerKey, idle: bool) {
        let Some(kind) = self.kind(key).filter(|_| !self.stop.is_cancelled()) else { return };
        for row in self.rows(&kind).await.unwrap_or_default() {
            if idle || !lasts(&row.socket).await {
                self.bury(&row, &kind).await;
            }
        }
    }
}

/// A moment is given to a process that was killed: its socket may take connections still.
async fn lasts(socket: &str) -> bool {
    for _ in 0..5 {
        if tokio::net::UnixStream::connect(socket).await.is_err() {
            return false;
        }
        sleep(Duration::from_millis(20)).await;
    }
    true
}

/// The starter that the pool asks.
pub(super) struct Handle(pub(super) Arc<Detached>);

impl Starter for Handle {
    fn owns(&self, _: &WorkerKey) -> bool {
        true
    }

    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, ClientError>> {
        let (detached, key) = (self.0.clone(), key.clone());
        Box::pin(async move { detached.provide(key).await })
    }

    fn ended(&self, key: &WorkerKey, idle: bool) -> BoxFuture<'static, ()> {
        let (detached, key) = (self.0.clone(), key.clone());
        Box::pin(async move { detached.closed(&key, idle).await })
    }
}

async fn renew(file: File, stop: CancellationToken) {
    loop {
        if let Err(err) = file.set_modified(SystemTime::now()) {
            tracing::error!(%err, "the lease on the workers cannot be renewed");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(RENEW) => {}
        }
    }
}

/// Waits until it listens.
async fn reach(folder: &Folder, socket: &str) -> Result<AppServer, ClientError> {
    let begin = Instant::now();
    loop {
        if let Some(status) = folder.obituary() {
            return Err(ClientError::Closed { status, stderr: String::new() });
        }
        if tokio::net::UnixStream::connect(socket).await.is_ok() {
            return dial(socket).await;
        }
        if begin.elapsed() > START {
            let what = "the start of a worker".to_owned();
            return Err(ClientError::Timeout { what, after: START });
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Dials a worker that was there before. One that takes connections lives, and may only be busy:
/// given up too soon, it would be ended with all its turns.
async fn dial_again(socket: &str) -> Result<AppServer, ClientError> {
    for _ in 1..DIALS {
        match dial(socket).await {
            Err(err) if lasts(socket).await => {
                tracing::debug!(%err, "a worker that lives does not greet yet");
            }
            dialled => return dialled,
        }
    }
    dial(socket).await
}

/// How often a worker that lives is dialled.
const DIALS: u32 = 4;

async fn dial(socket: &str) -> Result<AppServer, ClientError> {
    let mut dial = Dial::new(Address::Unix(Some(socket.into())));
    dial.deadline = GREET;
    // Over a socket of this machine a connection is lost with its worker, or for a reason that a
    // new turn of ours finds out; both are seen to by whoever runs the turn.
    let options = ConnectOptions { reconnect: Duration::ZERO, ..ConnectOptions::default() };
    AppServer::dial(&dial, &options).await
}

/// Makes a folder that only we can look into.
fn make_private(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The number in the folder is the worker's only if the process of that number has its socket among
/// its arguments.
fn process(folder: &Folder, socket: &str) -> Option<rustix::process::Pid> {
    let pid: i32 = fs::read_to_string(folder.pid()).ok()?.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    line.contains(socket).then(|| rustix::process::Pid::from_raw(pid))?
}

fn process_runs(folder: &Folder, socket: &str) -> bool {
    // Before the number is written, nobody knows.
    !folder.pid().exists() || process(folder, socket).is_some()
}

fn kill_process(folder: &Folder, socket: &str) {
    if folder.exit().exists() {
        return;
    }
    if let Some(pid) = process(folder, socket) {
        tracing::warn!(pid = pid.as_raw_nonzero().get(), "a worker without a guard is ended");
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn failed(why: impl std::fmt::Display) -> ClientError {
    ClientError::Closed { status: why.to_string(), stderr: String::new() }
}
