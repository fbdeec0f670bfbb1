//! Codex processes: one for each tenant and backend, on a socket, outliving the daemon.
//!
//! A worker serves the app-server protocol on a unix socket. It is the child of a small guard
//! (`guard`), not of ours: when the daemon is gone it goes on, and the next daemon finds it in the
//! store. The pool of the client decides when one is started and when it is idle.

mod bound;

mod environment;

pub(crate) mod hidden;

pub(crate) mod login;

pub(crate) mod memory;

pub(crate) mod tenant_watch;

#[cfg(unix)]
mod detached;

#[cfg(unix)]
mod folder;

#[cfg(unix)]
pub mod guard;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_client::app_server::AppServer;
use bindery_client::error::Error as ClientError;
use bindery_client::locate::{Located, locate};
use bindery_client::model::ModelSettings;
use bindery_client::pool::{
    Lease, Pool, PoolSettings, PoolWorker, PooledModel, Starter, Stats, WorkerKey,
};
use bindery_client::transport::stdio::Launch;
use bindery_client::version::Version;
use bindery_core::ids::ThreadId;

use crate::config::{Backend, Config};
use crate::error::Error;
use crate::store::Store;
use crate::tenant::{Tenant, check_codex_home};

/// How long a Codex may take to say its version.
const VERSION: Duration = Duration::from_secs(5);

/// How to start programs of ours.
#[derive(Clone, Debug)]
pub struct Program {
    /// Our own executable.
    pub executable: PathBuf,
    /// What makes it a guard.
    pub guard: Vec<OsString>,
    /// What makes it an app-server.
    pub engine: Vec<OsString>,
}

impl Program {
    /// The `bindery` that runs now.
    pub fn current() -> std::io::Result<Self> {
        Ok(Self {
            executable: std::env::current_exe()?,
            guard: vec!["guard".into()],
            engine: vec!["app-server".into()],
        })
    }
}

/// Whose worker, and of which kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) tenant: String,
    pub(crate) backend: String,
}

/// The kinds behind the pool's keys; the starter reads them.
pub(crate) type Kinds = Arc<Mutex<HashMap<WorkerKey, Kind>>>;

/// How the last worker of a kind ended.
pub(crate) type Obituaries = Arc<Mutex<HashMap<Kind, String>>>;

/// All workers; clones share them.
#[derive(Clone)]
pub struct Workers {
    pool: Pool,
    kinds: Kinds,
    obituaries: Obituaries,
    codex: Option<Located>,
    program: Program,
    config: Arc<Config>,
    store: Option<Arc<dyn Store>>,
    #[cfg(unix)]
    detached: Option<Arc<detached::Detached>>,
}

impl Workers {
    /// Finds the workers that are left from before, and keeps the lease on them from now on.
    #[cfg(unix)]
    pub fn start(
        config: &Arc<Config>,
        program: Program,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let (kinds, obituaries) = (Kinds::default(), Obituaries::default());
        let detached = detached::Detached::new(
            config,
            program.clone(),
            store.clone(),
            kinds.clone(),
            obituaries.clone(),
        )?;
        let starter = Arc::new(detached::Handle(detached.clone()));
        let mut workers = Self::with(config, program, starter, kinds, obituaries);
        workers.detached = Some(detached);
        workers.store = Some(store);
        Ok(workers)
    }

    /// Without unix sockets, workers are children and end with the daemon.
    #[cfg(not(unix))]
    pub fn start(
        config: &Arc<Config>,
        program: Program,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let starter = Arc::new(bindery_client::pool::Spawn::default());
        let kinds = Kinds::default();
        let mut workers = Self::with(config, program, starter, kinds, Obituaries::default());
        workers.store = Some(store);
        Ok(workers)
    }

    /// Workers of which none is started: to see what there would be.
    pub(crate) fn described(config: &Arc<Config>, program: Program) -> Self {
        let starter = Arc::new(bindery_client::pool::Spawn::default());
        Self::with(config, program, starter, Kinds::default(), Obituaries::default())
    }

    fn with(
        config: &Arc<Config>,
        program: Program,
        starter: Arc<dyn Starter>,
        kinds: Kinds,
        obituaries: Obituaries,
    ) -> Self {
        let settings = PoolSettings {
            // One process of a home at a time: Codex lets only one write to a thread.
            workers: 1,
            turns_per_worker: config.workers.turns,
            queue: 4096,
            warm: 0,
            warm_total: 0,
            idle: Duration::from_secs(config.workers.idle_seconds),
            thread_idle: Duration::from_secs(config.workers.idle_thread_seconds),
            ..PoolSettings::default()
        };
        Self {
            pool: Pool::with_starter(settings, starter),
            kinds,
            obituaries,
            codex: locate(config.workers.codex.as_deref()).ok(),
            program,
            config: config.clone(),
            store: None,
            #[cfg(unix)]
            detached: None,
        }
    }

    /// The backend of threads that do not choose.
    pub fn default_backend(&self) -> &'static str {
        match self.config.workers.backend {
            Backend::Codex => "codex",
            Backend::Engine => "engine",
            // A Codex that was named is what is wanted, also where it is not.
            Backend::Auto if self.codex.is_some() || self.config.workers.codex.is_some() => "codex",
            Backend::Auto => "engine",
        }
    }

    /// The backend of threads that do not choose, with its version where it says one.
    pub async fn describe(&self) -> String {
        let backend = self.default_backend();
        let Some(codex) = self.codex.as_ref().filter(|_| backend == "codex") else {
            return backend.to_owned();
        };
        match version_of(codex).await {
            Ok(version) => format!("{backend} {version}"),
            Err(_) => backend.to_owned(),
        }
    }

    /// Whether the Codex behind this backend, if it is one, can be run and is not too old.
    pub(crate) async fn check_codex(&self, backend: &str) -> Result<(), Error> {
        let Some(codex) = self.codex.as_ref().filter(|_| backend == "codex") else { return Ok(()) };
        let version = version_of(codex).await.map_err(|why| Error::Config {
            what: format!("Codex at `{}`", codex.path.display()),
            why: format!("{why}; choose another with `--codex`"),
        })?;
        Ok(version.check()?)
    }

    /// The Codex that was found.
    pub fn codex(&self) -> Option<&Located> {
        self.codex.as_ref()
    }

    /// The backend of this name, if there is one here.
    pub fn backend(&self, name: Option<&str>) -> Result<&'static str, Error> {
        match name {
            None | Some("auto") => self.backend(Some(self.default_backend())),
            Some("codex") if self.codex.is_some() => Ok("codex"),
            Some("codex") => {
                let missing = locate(self.config.workers.codex.as_deref()).err();
                Err(missing.map_or(Error::Stopping, Error::Client))
            }
            Some("engine") => Ok("engine"),
            Some(other) => Err(Error::invalid(
                "backend",
                format!("`{other}` is none; use `codex`, `engine` or `auto`"),
            )),
        }
    }

    /// A language model on a tenant's worker.
    pub fn model(
        &self,
        tenant: &Tenant,
        backend: &str,
        settings: ModelSettings,
    ) -> Result<PooledModel, Error> {
        Ok(self.pool.model(self.key(tenant, backend)?, settings))
    }

    /// Room on a tenant's worker, for requests that are no turns of a model.
    pub async fn lease(
        &self,
        tenant: &Tenant,
        backend: &str,
        session: Option<&str>,
    ) -> Result<Lease, Error> {
        let thread = session.map(ThreadId::from);
        Ok(self.pool.lease(&self.key(tenant, backend)?, thread.as_ref()).await?)
    }

    /// Has a tenant's thread unloaded as soon as nothing runs in it.
    pub fn unload(&self, tenant: &Tenant, backend: &str, session: &str) -> Result<(), Error> {
        self.pool.dismiss_thread(&self.key(tenant, backend)?, &ThreadId::from(session));
        Ok(())
    }

    /// The pool, to see how much its workers use.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The process of a worker.
    pub(crate) async fn process_of(&self, worker: &PoolWorker) -> Option<u32> {
        #[cfg(unix)]
        if let Some(detached) = &self.detached
            && let Some(pid) = detached.process_of(&worker.key).await
        {
            return Some(pid);
        }
        worker.server.process()
    }

    /// Whether a connection that was lost was lost with its worker, and how that ended.
    pub async fn is_gone(&self, tenant: &Tenant, backend: &str) -> Option<String> {
        let kind = Kind { tenant: tenant.id.clone(), backend: backend.to_owned() };
        #[cfg(unix)]
        if let Some(detached) = &self.detached
            && detached.lives(&kind).await
        {
            return None;
        }
        let told = || {
            let obituaries = self.obituaries.lock().unwrap_or_else(PoisonError::into_inner);
            obituaries.get(&kind).cloned()
        };
        // Its guard needs a moment to say how it ended.
        for _ in 0..50 {
            if let Some(obituary) = told() {
                return Some(obituary);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some("nobody knows how".to_owned())
    }

    /// How a worker that a daemon before us left has ended, if it has.
    pub(crate) async fn fate(&self, tenant: &str, backend: &str) -> Option<String> {
        #[cfg(unix)]
        if let Some(detached) = &self.detached {
            let kind = Kind { tenant: tenant.to_owned(), backend: backend.to_owned() };
            return detached.fate(&kind).await;
        }
        // A child of that daemon, and gone with it.
        let _ = (tenant, backend);
        Some("with the daemon".to_owned())
    }

    /// Counts, as of now.
    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// Closes all connections; the workers, and the turns in them, go on.
    pub async fn let_go(&self) {
        self.pool.let_go().await;
    }

    /// Ends the care for workers; with `end`, the workers end too, otherwise they wait for the next
    /// daemon.
    pub async fn stop(&self, end: bool) {
        #[cfg(unix)]
        if let Some(detached) = &self.detached {
            detached.stop(end).await;
        }
        let _ = end;
    }

    /// How a tenant's worker is started, on its standard input and output.
    pub fn launch(&self, tenant: &Tenant, backend: &str) -> Result<Launch, Error> {
        let mut launch = match (backend, &self.codex) {
            ("codex", Some(codex)) => {
                if !self.config.exit_with_parent {
                    check_codex_home(tenant)?;
                }
                Launch::codex(codex)
            }
            ("codex", None) => {
                let looked = "the settings, `BINDERY_CODEX`, `PATH`".to_owned();
                return Err(Error::Client(ClientError::NotFound { looked }));
            }
            _ => {
                let mut launch = Launch::new(&self.program.executable);
                launch.args = self.program.engine.clone();
                launch
            }
        };
        let pass = &self.config.workers.pass_env;
        let home = (!self.config.exit_with_parent)
            .then(|| environment::WorkerHome::of(&self.config.data, tenant));
        if let Some(home) = &home {
            home.make()?;
            launch.args.extend(environment::withheld(pass));
        }
        bound::apply(&mut launch, tenant, backend);
        let tools = std::mem::take(&mut launch.env);
        launch.env = environment::of(pass, tenant, home.as_ref());
        launch.env.extend(tools);
        if backend == "codex" && !self.config.exit_with_parent {
            login::expect_key(&mut launch, tenant);
        }
        Ok(launch)
    }

    /// The program of the built-in engine.
    pub(crate) fn engine(&self) -> &Path {
        &self.program.executable
    }

    /// Hides from the commands of a worker of the engine what is not its tenant's.
    pub(crate) async fn hide_others(&self, launch: &mut Launch, id: &str) -> Result<(), Error> {
        let is_own = self.config.exit_with_parent;
        let Some(store) = self.store.as_ref().filter(|_| !is_own) else { return Ok(()) };
        let all = store.tenants().await?;
        let tenant = all.iter().find(|tenant| tenant.id == id);
        let tenant = tenant.ok_or_else(|| Error::not_found("tenant", id))?;
        hidden::hide_from_engine(launch, self.engine(), &self.config, tenant, &all);
        Ok(())
    }

    /// A word for the folders of all tenants; none where it cannot be known.
    async fn tenants_hash(&self) -> Option<String> {
        let tenants = self.store.as_ref()?.tenants().await.ok()?;
        Some(tenant_watch::folders_hash(&tenants))
    }

    /// Whether the worker of this kind was started when tenants had other folders; told once.
    fn was_started_for_others(&self, key: &WorkerKey) -> bool {
        #[cfg(unix)]
        return self.detached.as_ref().is_some_and(|all| all.take_started_for_others(key));
        #[cfg(not(unix))]
        false
    }

    fn key(&self, tenant: &Tenant, backend: &str) -> Result<WorkerKey, Error> {
        let key = WorkerKey::from(self.launch(tenant, backend)?);
        let kind = Kind { tenant: tenant.id.clone(), backend: backend.to_owned() };
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), kind);
        Ok(key)
    }
}

/// The version of a Codex, or why it says none.
async fn version_of(codex: &Located) -> Result<Version, String> {
    let mut command = tokio::process::Command::new(&codex.path);
    command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION, command.output()).await;
    let output = output.map_err(|_| format!("it did not say its version within {VERSION:?}"))?;
    let output = output.map_err(|err| format!("it cannot be run: {err}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.split_whitespace().find_map(Version::parse);
    version.ok_or_else(|| format!("it does not say its version ({})", output.status))
}

/// Whether a server is still there.
pub async fn answers(server: &AppServer) -> bool {
    server.list_threads(&serde_json::Map::new()).await.is_ok()
}
