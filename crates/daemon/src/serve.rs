//! All of it together: from settings to a running server, and back down.

mod check;

mod folders;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::check::{Checked, check, is_running};
pub use self::folders::{check_folder, prepare_folders};
use crate::clock;
use crate::config::{Config, Http};
use crate::error::Error;
use crate::front::Fronts;
use crate::http::body_budget::BodyBudget;
use crate::http::connections::{ConnectionLimits, Connections};
use crate::http::limits::Used;
use crate::http::listen::Times;
use crate::http::metrics::Metrics;
use crate::http::security::Doors;
use crate::http::token_watch::TokenWatch;
use crate::http::wrong_tokens::WrongTokens;
use crate::http::{self, app::App};
use crate::interrupts::{Desk, Hooks};
use crate::private::{make_file, make_folder, remove_old_token, restrict_data};
use crate::store::sqlite::{Sqlite, Sync};
use crate::store::{Change, Store, WriteProbe};
use crate::tenant::{Policy, Role, Roles, Tenant, TenantSettings, Tenants};
use crate::turns::{Runner, RunnerParts};
use crate::workers::{Program, Workers, memory, tenant_watch};

/// The store's file in the data folder.
pub const STORE: &str = "bindery.sqlite";

/// The name of the tenant that is there from the first start.
pub const FIRST_TENANT: &str = "default";

/// The name of the token that `--announce` tells.
const ANNOUNCED: &str = "announced at a start";

/// How long the calls of fronts may take to end; their readers are gone by then.
const FRONTS: Duration = Duration::from_secs(2);

/// What is left behind when the server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Workers and the turns in them, for the next daemon.
    Workers,
    /// Nothing.
    Nothing,
}

/// How often old events are looked for.
const SWEEP: Duration = Duration::from_secs(3600);

/// A server that is ready.
pub struct Server {
    app: App,
    listener: TcpListener,
    hooks: Hooks,
    /// The token of the first tenant, if it was made just now; shown once.
    pub first_token: Option<String>,
    /// Keeps a second daemon from the same data folder.
    _lock: fs::File,
}

impl Server {
    /// Opens the store, takes up what was left, and listens.
    pub async fn start(config: Config, program: Program) -> Result<Self, Error> {
        let config = Arc::new(absolute(config)?);
        make_data(&config.data)?;
        restrict_data(&config.data)?;
        let lock = lock(&config.data)?;
        let store = open_store(&config)?;
        let tenants = Tenants::new(store.clone());
        let first_token = first_tenant(&config, &tenants).await?;
        if remove_old_token(&config.data)? {
            tracing::warn!(
                "the token of the first start was kept in clear in the data folder and is removed \
                 from there; it stays valid, but commands may have read it: \
                 `bindery tenant revoke` makes it void, \
                 `bindery tenant token {FIRST_TENANT} --admin` makes another"
            );
        }
        check_tokens(&config, &tenants).await?;
        warn_of_folders(&config, &tenants).await?;
        let workers = Workers::start(&config, program, store.clone())?;
        let hooks = Hooks::new(store.clone(), &config.webhooks);
        let body_budget = BodyBudget::new(config.http.request_bytes);
        let runner = Runner::new(RunnerParts {
            store: store.clone(),
            workers,
            hooks: hooks.clone(),
            config: config.clone(),
            body_budget: body_budget.clone(),
        });
        let listening = TcpListener::bind(config.listen).await;
        let listener = listening.map_err(|err| unheard(&config, &err))?;
        runner.recover().await?;
        let desk = Desk::new(store.clone(), runner.clone());
        let stop = CancellationToken::new();
        let fronts = Fronts::new(config.clone(), runner.workers().clone());
        let address = listener.local_addr().map_err(|err| Error::Internal(err.to_string()))?;
        let (doors, used) = (Doors::new(address, &config.http), Used::default());
        let token_watch = TokenWatch::new(store.clone(), stop.clone());
        let app = App {
            connections: Connections::new(connection_limits(&config.http)),
            wrong_tokens: WrongTokens::default(),
            body_budget,
            config,
            store,
            write_probe: WriteProbe::default(),
            tenants,
            runner,
            desk,
            fronts,
            doors,
            used,
            keys: http::idempotency::Keys::default(),
            metrics: Metrics::default(),
            token_watch,
            stop,
        };
        Ok(Self { app, listener, hooks, first_token, _lock: lock })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// A token of the first tenant for whoever started us and is told where we are: that of the
    /// first start, or one that is made for this start and voids the one before it.
    pub async fn announced_token(&self) -> Result<Option<String>, Error> {
        if let Some(token) = &self.first_token {
            return Ok(Some(token.clone()));
        }
        let tenants = &self.app.tenants;
        let Ok(tenant) = tenants.find(FIRST_TENANT).await else { return Ok(None) };
        for token in tenants.tokens(&tenant).await? {
            if token.name == ANNOUNCED && token.revoked.is_none() {
                tenants.revoke(&token.id).await?;
            }
        }
        tenants.token(&tenant, ANNOUNCED, Roles::new(Role::ALL)).await.map(Some)
    }

    /// What is behind the API.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Serves until `stop` says what to leave behind, then lets go.
    pub async fn run(
        self,
        stop: impl Future<Output = Leave> + Send + 'static,
    ) -> Result<(), Error> {
        let Self { app, listener, hooks, .. } = self;
        let tasks = TaskTracker::new();
        tasks.spawn(hooks.run(app.stop.clone()));
        tasks.spawn(forget(app.clone()));
        tasks.spawn(memory::watch(
            app.runner.workers().clone(),
            app.fronts.clone(),
            app.config.workers.memory_limit,
            app.metrics.clone(),
            app.stop.clone(),
        ));
        let (workers, fronts) = (app.runner.workers().clone(), app.fronts.clone());
        if !app.config.exit_with_parent {
            tasks.spawn(tenant_watch::watch(workers, fronts, app.stop.clone()));
        }
        let http = &app.config.http;
        let times = Times {
            read: Duration::from_secs(http.read_seconds.max(1)),
            silent: Duration::from_secs(http.silent_seconds.max(1)),
            grace: Duration::from_secs(http.stop_seconds),
        };
        let closing = app.stop.clone();
        // Streams end when the server stops; their readers come back to the next one.
        let stopper = tasks.spawn(async move {
            let leave = stop.await;
            closing.cancel();
            leave
        });
        let (router, connections) = (http::router(app.clone()), app.connections.clone());
        http::listen::serve(listener, router, times, connections, app.stop.clone()).await;
        tracing::info!("stopping");
        tokio::join!(app.runner.stop(), app.fronts.shutdown(FRONTS));
        let leave = stopper.await.unwrap_or(Leave::Workers);
        let end = leave == Leave::Nothing || app.config.exit_with_parent;
        app.runner.workers().stop(end).await;
        tasks.close();
        tasks.wait().await;
        Ok(app.store.close().await?)
    }
}

/// Warns of folders of tenants that will not do; the others are served.
async fn warn_of_folders(config: &Config, tenants: &Tenants) -> Result<(), Error> {
    for tenant in exposed(&config.data, tenants).await? {
        tracing::warn!(tenant, "its threads can write to our data; choose another `--data`");
    }
    for tenant in tenants.list().await? {
        folders::problems(&tenant).iter().for_each(|problem| tracing::warn!("{problem}"));
    }
    Ok(())
}

/// Connections for which there are descriptors, besides those that we need ourselves.
fn connection_limits(http: &Http) -> ConnectionLimits {
    let room = descriptors().saturating_sub(OWN_DESCRIPTORS).max(64);
    let silent = http.silent_connections.clamp(1, room / 4);
    ConnectionLimits {
        requests: http.connections.clamp(1, room - silent),
        silent,
        unknown_of_address: http.unknown_per_address.clamp(1, silent),
    }
}

/// Descriptors for the store, for workers and for files.
const OWN_DESCRIPTORS: usize = 256;

/// More are of no use to us.
const MOST_DESCRIPTORS: u64 = 65_536;

/// How many descriptors we may have, when we have asked for as many as we are allowed.
#[cfg(unix)]
fn descriptors() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < wanted) {
        let before = limit.current;
        limit.current = Some(wanted);
        if let Err(err) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%err, "the limit of open files cannot be raised");
            limit.current = before;
        }
    }
    usize::try_from(limit.current.unwrap_or(MOST_DESCRIPTORS)).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn descriptors() -> usize {
    MOST_DESCRIPTORS as usize
}

fn unheard(config: &Config, err: &std::io::Error) -> Error {
    let why = match err.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("{err}; another program listens there: end it, or choose another `--listen`")
        }
        _ => err.to_string(),
    };
    Error::Config { what: format!("listen on {}", config.listen), why }
}

/// Opens the store in the data folder.
pub fn open_store(config: &Config) -> Result<Arc<dyn Store>, Error> {
    let sync = match config.store.survive_power_failure {
        true => Sync::Machine,
        false => Sync::Process,
    };
    let key_file = config.store.key_file.as_deref().ok_or_else(|| Error::Config {
        what: "store.key_file".to_owned(),
        why: "name a file for the key of the store".to_owned(),
    })?;
    if key_file.starts_with(&config.data) {
        return Err(Error::Config {
            what: "store.key_file".to_owned(),
            why: format!(
                "`{}` lies in the data folder, and whoever has that would have the key, too; \
                 choose another place",
                key_file.display()
            ),
        });
    }
    Ok(Arc::new(Sqlite::open(&config.data.join(STORE), sync, key_file)?))
}

/// Makes the data folder, for our eyes only.
pub fn make_data(data: &Path) -> Result<(), Error> {
    let is_new = !data.exists();
    make_folder(data)?;
    if !is_new {
        return Ok(());
    }
    // It may lie in somebody's repository, where what is in it must not be committed.
    let ignore = data.join(".gitignore");
    fs::write(&ignore, "*\n").map_err(|err| Error::io(&ignore, err))
}

fn absolute(mut config: Config) -> Result<Config, Error> {
    let data = std::path::absolute(&config.data);
    config.data = data.map_err(|err| Error::io(&config.data, err))?;
    Ok(config)
}

/// Two daemons on one folder would both run its turns.
fn lock(data: &Path) -> Result<fs::File, Error> {
    let path = data.join("lock");
    let file = make_file(&path).map_err(|err| Error::io(&path, err))?;
    file.try_lock().map_err(|_| Error::Config {
        what: data.display().to_string(),
        why: "another daemon uses this data folder".to_owned(),
    })?;
    Ok(file)
}

/// At the first start there is a tenant, and a token for it.
async fn first_tenant(config: &Config, tenants: &Tenants) -> Result<Option<String>, Error> {
    if !tenants.list().await?.is_empty() {
        return Ok(None);
    }
    let here = || std::env::current_dir().map_err(|err| Error::io(Path::new("."), err));
    let root = config.root.clone().map_or_else(here, Ok)?;
    check_folder("root", &root)?;
    let mut settings = TenantSettings::new(codex_home(config)?, root);
    // The first tenant is whoever starts the daemon, who may do all this anyway.
    settings.policy = Policy { full_access: true, config: true, escalation: None };
    let tenant: Tenant = tenants.add(FIRST_TENANT, settings).await?;
    let token = tenants.token(&tenant, "first start", Roles::new(Role::ALL)).await?;
    Ok(Some(token))
}

/// Tenants whose root holds the data folder: what runs in their threads may write to it.
async fn exposed(data: &Path, tenants: &Tenants) -> Result<Vec<String>, Error> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let data = real(data);
    let inside = |tenant: &Tenant| data.starts_with(real(&tenant.settings.root));
    let all = tenants.list().await?.into_iter();
    Ok(all.filter(inside).map(|tenant| tenant.name).collect())
}

/// Where others can reach us there must be something to tell them apart by.
async fn check_tokens(config: &Config, tenants: &Tenants) -> Result<(), Error> {
    if config.listen.ip().is_loopback() {
        return Ok(());
    }
    for tenant in tenants.list().await? {
        if tenants.tokens(&tenant).await?.iter().any(|token| token.revoked.is_none()) {
            return Ok(());
        }
    }
    Err(Error::Config {
        what: format!("listen on {}", config.listen),
        why: format!(
            "others could reach it there, and there is no valid token; \
             `bindery tenant token {FIRST_TENANT} --data {}` makes one",
            config.data.display()
        ),
    })
}

fn codex_home(config: &Config) -> Result<PathBuf, Error> {
    if let Some(home) = &config.codex_home {
        return Ok(home.clone());
    }
    if let Some(home) = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()) {
        return Ok(home.into());
    }
    let home = std::env::home_dir().ok_or_else(|| Error::Config {
        what: "codex_home".to_owned(),
        why: "there is no home folder; say where Codex keeps its files".to_owned(),
    })?;
    Ok(home.join(".codex"))
}

/// Forgets the events of turns that ended long ago, and uploads that nobody has used since.
async fn forget(app: App) {
    let days = i64::from(app.config.store.retention_days);
    if days == 0 {
        return;
    }
    loop {
        let before = clock::now() - days * 24 * 3600 * 1000;
        // What came of a turn stays when its events go.
        let forgotten = async {
            app.runner.keep_results(before).await?;
            app.store.commit(vec![Change::Forget { before }]).await.map_err(Error::from)
        };
        if let Err(err) = forgotten.await {
            tracing::error!(%err, "old events are not forgotten");
        }
        let kept = Duration::from_secs(days.unsigned_abs() * 24 * 3600);
        let before = SystemTime::now().checked_sub(kept).unwrap_or(SystemTime::UNIX_EPOCH);
        if let Err(err) = http::uploads::sweep(&app, before).await {
            tracing::error!(%err, "old uploads are not removed");
        }
        tokio::select! {
            () = app.stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_kept_with_what_it_opens() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        make_data(&data).unwrap();
        let mut config = Config { data: data.clone(), ..Config::default() };
        for key_file in [None, Some(data.join("store.key"))] {
            config.store.key_file = key_file;
            assert_eq!(open_store(&config).err().unwrap().code(), "config");
        }
        assert!(!data.join(STORE).exists());
    }

    #[test]
    fn a_data_folder_is_ignored_by_git_and_one_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/bindery-data");
        make_data(&data).unwrap();
        assert_eq!(fs::read_to_string(data.join(".gitignore")).unwrap(), "*\n");
        fs::write(data.join(".gitignore"), "mine").unwrap();
        make_data(&data).unwrap();
        assert_eq!(fs::read_to_string(data.join(".gitignore")).unwrap(), "mine");
    }
}
