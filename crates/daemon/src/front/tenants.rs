//! A front for each tenant, with workers of its own.
//!
//! The workers are plain children: a call's turn ends with the request that reads it, so nothing of
//! it need outlive the daemon.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_client::interrupts::Interrupts;
use bindery_client::pool::{Pool, PoolSettings, Stats, WorkerKey};
use bindery_client::transport::stdio::Launch;
use bindery_core::spec::PROVIDER_KEY;
use futures_util::future::join_all;
use serde_json::{Map, Value};

use super::reach::{self, Reach};
use super::request::{CallRequest, FrontSettings};
use super::{Front, answers};
use crate::config::Config;
use crate::error::Error;
use crate::files::TenantFiles;
use crate::tenant::{Caller, Tenant, ThreadFolder, bound_codex, roots_of};
use crate::workers::Workers;

/// The fronts of all tenants; clones share them.
#[derive(Clone)]
pub struct Fronts {
    config: Arc<Config>,
    workers: Workers,
    fronts: Arc<Mutex<HashMap<String, Front>>>,
}

/// A call that may be made, and where.
pub struct Admitted {
    /// The tenant's front.
    pub front: Front,
    /// The kind of worker.
    pub key: WorkerKey,
    /// `codex` or `engine`.
    pub backend: &'static str,
    /// The call.
    pub request: CallRequest,
    /// Whose files it may name, and where it runs; none where nothing is held to a root.
    pub bounds: Option<Bounds>,
}

/// What a call is held to.
pub struct Bounds {
    /// The folder it runs in.
    pub folder: ThreadFolder,
    /// The tenant's files.
    pub files: TenantFiles,
}

impl Fronts {
    /// Fronts on workers like these.
    pub fn new(config: Arc<Config>, workers: Workers) -> Self {
        Self { config, workers, fronts: Arc::default() }
    }

    /// The front of a tenant. Must be called within a runtime, whose tasks then own its workers.
    pub fn of(&self, tenant: &Tenant) -> Front {
        let mut fronts = self.fronts();
        let front = fronts.entry(tenant.id.clone()).or_insert_with(|| {
            let settings = self.pool_settings(tenant);
            let reach = Reach::new(self.workers.clone(), tenant.id.clone());
            let pool = Pool::with_starter(settings, Arc::new(reach));
            Front::new(pool, Interrupts::default())
        });
        front.clone()
    }

    fn pool_settings(&self, tenant: &Tenant) -> PoolSettings {
        let all = PoolSettings::default();
        // An app's own daemon has nobody to share with.
        let mine = self.config.exit_with_parent;
        let turns = if mine { all.turns_per_worker } else { tenant.settings.limits.turns };
        PoolSettings {
            // One process of a home at a time: Codex lets only one write to a thread.
            workers: 1,
            turns_per_worker: turns.max(1),
            queue: tenant.settings.limits.queue,
            idle: Duration::from_secs(self.config.workers.idle_seconds),
            thread_idle: Duration::from_secs(self.config.workers.idle_thread_seconds),
            ..all
        }
    }

    /// The front of a tenant that has called before.
    pub fn known(&self, tenant: &Tenant) -> Option<Front> {
        self.fronts().get(&tenant.id).cloned()
    }

    /// The pools of all fronts.
    pub(crate) fn pools(&self) -> Vec<Pool> {
        self.fronts().values().map(|front| front.pool.clone()).collect()
    }

    /// Counts of all fronts' workers, as of now.
    pub fn stats(&self) -> impl Iterator<Item = Stats> {
        let all: Vec<Stats> = self.fronts().values().map(Front::stats).collect();
        all.into_iter()
    }

    /// Checks what a call asks for, and finds its worker.
    pub fn admit(&self, caller: &Caller, mut request: CallRequest) -> Result<Admitted, Error> {
        let tenant = &*caller.tenant;
        request.check_settings()?;
        let (backend, key) = self.place(tenant, &request.settings)?;
        let front = self.of(tenant);
        let bounds = match self.config.exit_with_parent {
            true => None,
            false => {
                let folder = check(tenant, backend, &mut request)?;
                let files = TenantFiles::new(&self.config, tenant);
                let options = request.options();
                files.check(&options)?;
                let (interrupts, contributors) = (&front.interrupts, &front.contributors);
                answers::check_brought(caller, interrupts, contributors, &options)?;
                Some(Bounds { folder, files })
            }
        };
        Ok(Admitted { front, key, backend, request, bounds })
    }

    /// The backend of a call with these settings, and the kind of worker that it runs on.
    pub fn place(
        &self,
        tenant: &Tenant,
        settings: &FrontSettings,
    ) -> Result<(&'static str, WorkerKey), Error> {
        let FrontSettings { codex_home, env, app_server, .. } = settings;
        let own = codex_home.is_some() || env.is_some() || app_server.is_some();
        if own && !self.config.exit_with_parent {
            let names = "`codexHome`, `env` and `appServer`";
            return Err(Error::Forbidden(format!("{names} are for a daemon of the caller's own")));
        }
        if let Some(server) = app_server {
            return Ok(("codex", reach::key(server)?));
        }
        let backend = self.workers.backend(settings.backend.as_deref())?;
        Ok((backend, self.key(tenant, backend, settings)?))
    }

    fn key(
        &self,
        tenant: &Tenant,
        backend: &str,
        settings: &FrontSettings,
    ) -> Result<WorkerKey, Error> {
        let mut launch = self.workers.launch(tenant, backend)?;
        if self.config.exit_with_parent {
            // It is the caller's own daemon, so what is in our environment came from the caller.
            let env = settings.env.iter().flatten();
            launch.env.extend(env.map(|(name, value)| (name.into(), value.into())));
            let home = settings.codex_home.as_ref();
            launch.env.extend(home.map(|home| ("CODEX_HOME".into(), home.into())));
        } else {
            seal(&mut launch);
        }
        Ok(launch.into())
    }

    /// Lets turns end, interrupts those that do not, and ends all workers.
    pub async fn shutdown(&self, deadline: Duration) {
        let fronts: Vec<Front> = self.fronts().drain().map(|(_, front)| front).collect();
        join_all(fronts.iter().map(|front| front.shutdown(deadline))).await;
    }

    fn fronts(&self) -> MutexGuard<'_, HashMap<String, Front>> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out of a child's environment what it is not given by name.
fn seal(launch: &mut Launch) {
    let given = |name: &OsString| launch.env.iter().any(|(known, _)| known == name);
    launch.env_remove = std::env::vars_os().map(|(name, _)| name).filter(|n| !given(n)).collect();
}

/// Holds a call to the tenant's policy and root.
fn check(tenant: &Tenant, backend: &str, request: &mut CallRequest) -> Result<ThreadFolder, Error> {
    let settings = &tenant.settings;
    let mut options = request.options();
    let metadata = options.provider_options.get_or_insert_default();
    let own = match metadata.remove(PROVIDER_KEY) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(own)) => own,
        Some(_) => return Err(Error::invalid("providerOptions.codex", "it must be an object")),
    };
    // Other names that the planner reads the same options under.
    if ALIASES.iter().any(|alias| metadata.contains_key(*alias)) {
        let why = format!("options go under `{PROVIDER_KEY}`");
        return Err(Error::invalid("providerOptions", why));
    }
    let mut own = own;
    // A thread that leaves nothing behind is nobody's harm.
    let ephemeral = own.remove("ephemeral");
    settings.policy.check(&own)?;
    own.extend(ephemeral.map(|value| ("ephemeral".to_owned(), value)));
    let cwd = match own.get("cwd") {
        None => None,
        Some(Value::String(cwd)) => Some(cwd.as_str()),
        Some(_) => return Err(Error::invalid("cwd", "it must be text")),
    };
    let folder = ThreadFolder::choose(&settings.root, cwd)?;
    settings.policy.confine(settings, folder.path(), &mut own)?;
    let folder = folder.with_roots(&roots_of(&own))?;
    own.insert("cwd".to_owned(), Value::from(folder.path().display().to_string()));
    if backend == "codex" {
        bound_codex(tenant, folder.path(), &mut own);
    }
    metadata.insert(PROVIDER_KEY.to_owned(), Value::Object(own));
    request.set(options);
    Ok(folder)
}

/// Names beside ours under which options are read.
pub(super) const ALIASES: [&str; 2] = ["bindery", "@janole/ai-sdk-provider-codex-asp"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_what_it_is_given_and_nothing_else() {
        let mut launch = Launch::new("codex");
        launch.env.push(("PATH".into(), "/bin".into()));
        seal(&mut launch);
        let ours: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
        assert!(ours.len() > 1, "there is nothing to keep back");
        let kept = ours.iter().filter(|name| !launch.env_remove.contains(name));
        assert_eq!(kept.collect::<Vec<_>>(), ["PATH"]);
    }
}
