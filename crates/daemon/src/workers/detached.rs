//! Workers that outlive us: started behind a guard, found again by their sockets.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error as ClientError;
use bindery_client::pool::{Starter, WorkerKey};
use bindery_client::transport::address::Address;
use bindery_client::transport::dial::{Dial, Peer, Token};
use bindery_client::transport::stdio::Launch;
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, Command};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bound::{hides_too_little, still_fits, worker_key, worker_secret};
use super::folder::Folder;
use super::hidden::hide_from_engine;
use super::login::log_in;
use super::{Kind, Kinds, Obituaries, Program};
use crate::clock;
use crate::config::Config;
use crate::error::Error;
use crate::private::{make_file, make_folder};
use crate::secret;
use crate::store::{Change, Store, WorkerRow};
use crate::tenant::Tenant;

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
    config: Config,
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
    /// Kinds whose worker was started when tenants had other folders.
    for_others: Mutex<HashSet<WorkerKey>>,
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
        make_folder(&workers)?;
        let lease = config.data.join("lease");
        let file = make_file(&lease).map_err(|err| Error::io(&lease, err))?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(renew(file, stop.clone()));
        Ok(Arc::new(Self {
            config: config.clone(),
            program,
            store,
            kinds,
            obituaries,
            workers,
            lease,
            patience: Duration::from_secs(config.workers.orphan_seconds.max(2)),
            with_parent: config.exit_with_parent,
            inputs: Mutex::default(),
            for_others: Mutex::default(),
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
        let tenant = self.tenant(&kind).await?;
        for row in self.rows(&kind).await.map_err(failed)? {
            if !still_fits(&row.key, key.launch(), &tenant) {
                tracing::info!(worker = row.id, "worker has other settings than its tenant now");
                self.bury(&row, &kind).await;
                continue;
            }
            match dial_again(&Folder::new(&self.workers, &row.id), &row).await {
                Ok(server) => {
                    tracing::info!(worker = row.id, tenant = row.tenant, "worker found again");
                    log_in(&server, key.launch()).await?;
                    let all = self.store.tenants().await.map_err(failed)?;
                    if hides_too_little(&row.key, &all) {
                        self.for_others().insert(key);
                    }
                    return Ok(server);
                }
                Err(err) => {
                    tracing::info!(worker = row.id, %err, "worker is gone");
                    self.bury(&row, &kind).await;
                }
            }
        }
        self.launch(&kind, key.launch(), &tenant).await
    }

    async fn tenant(&self, kind: &Kind) -> Result<Tenant, ClientError> {
        let tenant = self.store.tenant(&kind.tenant).await.map_err(failed)?;
        tenant.ok_or_else(|| failed("a worker of no known tenant"))
    }

    async fn launch(
        &self,
        kind: &Kind,
        launch: &Launch,
        tenant: &Tenant,
    ) -> Result<AppServer, ClientError> {
        self.obituaries.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        let id = secret::random("", 6).map_err(failed)?;
        let folder = Folder::new(&self.workers, &id);
        let socket = folder.socket(&id);
        let spawned =
            |source| ClientError::Spawn { program: launch.program.display().to_string(), source };
        let made = |path: &Path| make_folder(path).map_err(std::io::Error::other);
        made(folder.path()).map_err(spawned)?;
        socket.parent().map(made).transpose().map_err(spawned)?;
        let all = self.store.tenants().await.map_err(failed)?;
        let row = WorkerRow {
            id: id.clone(),
            tenant: kind.tenant.clone(),
            backend: kind.backend.clone(),
            key: worker_key(launch, tenant, &all),
            socket: socket.display().to_string(),
            secret: worker_secret(kind).map_err(failed)?,
            started: clock::now(),
        };
        // Written down first: whoever comes after us must find what we have started.
        self.store.commit(vec![Change::AddWorker(row.clone())]).await.map_err(failed)?;
        let mut hiding = launch.clone();
        hide_from_engine(&mut hiding, &self.program.executable, &self.config, tenant, &all);
        let mut input = self.spawn_guard(&row, &folder, &hiding).map_err(spawned)?;
        if let (Some(secret), Some(input)) = (&row.secret, &mut input) {
            input.write_all(format!("{secret}\n").as_bytes()).await.map_err(spawned)?;
        }
        if let Some(input) = input.filter(|_| self.with_parent) {
            self.inputs().insert(id.clone(), input);
        }
        match reach(&folder, &row, launch).await {
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
        row: &WorkerRow,
        folder: &Folder,
        launch: &Launch,
    ) -> std::io::Result<Option<ChildStdin>> {
        // The guard cuts it short when it grows too long.
        drop(make_file(&folder.log())?);
        let log = File::options().append(true).open(folder.log())?;
        let mut command = Command::new(&self.program.executable);
        command.args(&self.program.guard).arg("--folder").arg(folder.path());
        command.arg("--lease").arg(&self.lease);
        command.arg("--patience").arg(self.patience.as_secs().to_string());
        let has_secret = row.secret.is_some();
        command.args(self.with_parent.then_some("--with-parent"));
        command.args(has_secret.then_some("--pass-secret"));
        let needs_input = self.with_parent || has_secret;
        command.stdin(if needs_input { Stdio::piped() } else { Stdio::null() });
        command.arg("--").arg(&launch.program).args(&launch.args);
        command.arg("--listen").arg(format!("unix://{}", row.socket));
        command.args(has_secret.then_some("--token-stdin"));
        command.env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let stop = self.stop.clone();
        // Reaps it. A guard that outlives us is reaped by whoever takes over our children.
        self.tasks.spawn(async move {
            tokio::select! {
                _ = child.wait() => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(input)
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

    /// Whether the worker of this kind was started when tenants had other folders; told once.
    pub(super) fn take_started_for_others(&self, key: &WorkerKey) -> bool {
        self.for_others().remove(key)
    }

    fn for_others(&self) -> std::sync::MutexGuard<'_, HashSet<WorkerKey>> {
        self.for_others.lock().unwrap_or_else(PoisonError::into_inner)
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
async fn reach(
    folder: &Folder,
    row: &WorkerRow,
    launch: &Launch,
) -> Result<AppServer, ClientError> {
    let begin = Instant::now();
    loop {
        if let Some(status) = folder.obituary() {
            return Err(ClientError::Closed { status, stderr: String::new() });
        }
        if worker(folder).is_ok() && tokio::net::UnixStream::connect(&row.socket).await.is_ok() {
            let server = dial(folder, row).await?;
            log_in(&server, launch).await?;
            return Ok(server);
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
async fn dial_again(folder: &Folder, row: &WorkerRow) -> Result<AppServer, ClientError> {
    for _ in 1..DIALS {
        match dial(folder, row).await {
            Err(err) if lasts(&row.socket).await => {
                tracing::debug!(%err, "a worker that lives does not greet yet");
            }
            dialled => return dialled,
        }
    }
    dial(folder, row).await
}

/// How often a worker that lives is dialled.
const DIALS: u32 = 4;

async fn dial(folder: &Folder, row: &WorkerRow) -> Result<AppServer, ClientError> {
    let mut dial = Dial::new(Address::Unix(Some(row.socket.clone().into())));
    dial.token = row.secret.as_ref().map(Token::new);
    dial.deadline = GREET;
    // A link in the place of the socket would lead to another tenant's worker.
    dial.peer = Some(worker(folder)?);
    // Over a socket of this machine a connection is lost with its worker, or for a reason that a
    // new turn of ours finds out; both are seen to by whoever runs the turn.
    let options = ConnectOptions { reconnect: Duration::ZERO, ..ConnectOptions::default() };
    AppServer::dial(&dial, &options).await
}

/// The worker of a folder, as its guard has written it down: it leads the group of its processes.
fn worker(folder: &Folder) -> Result<Peer, ClientError> {
    let group = fs::read_to_string(folder.pid()).ok().and_then(|pid| pid.trim().parse().ok());
    let group = group.ok_or_else(|| failed("its guard has not said which process it is"))?;
    Ok(Peer { user: rustix::process::geteuid().as_raw(), group })
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
