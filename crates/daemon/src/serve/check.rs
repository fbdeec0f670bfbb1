//! Whether a daemon of these settings would start; nothing is made or changed by looking.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{
    STORE, absolute, check_folder, check_tokens, codex_home, folders, open_store, unheard,
};
use crate::config::Config;
use crate::error::Error;
use crate::logging;
use crate::seal::StoreKey;
use crate::tenant::{Tenants, check_codex_home};
use crate::traces;
use crate::workers::{Program, Workers};

/// What was found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Where everything is kept.
    pub data: PathBuf,
    /// A daemon uses the data folder now.
    pub running: bool,
    /// Tenants, and valid tokens of them; none before the first start, which makes both.
    pub known: Option<(usize, usize)>,
    /// What runs threads that do not choose, with its version.
    pub backend: String,
    /// What will fail, in words; a start may go well all the same.
    pub problems: Vec<String>,
}

/// Bytes that must be free for a daemon to be of use.
const FREE_BYTES: u64 = 64 * 1024 * 1024;

/// Looks at everything that a start needs.
pub async fn check(config: Config, program: Program) -> Result<Checked, Error> {
    let config = Arc::new(absolute(config)?);
    logging::check(&config.log)?;
    config.traces.otlp.as_deref().map(traces::check).transpose()?;
    let workers = Workers::described(&config, program);
    let backend = workers.backend(None)?;
    let data = config.data.clone();
    let running = is_running(&data);
    let mut problems = Vec::from_iter(disk_problem(&data));
    let known = if data.join(STORE).exists() {
        let store = open_store(&config)?;
        let tenants = Tenants::new(store.clone());
        let known = count(&config, &tenants).await;
        let all = tenants.list().await;
        store.close().await?;
        for tenant in all? {
            problems.extend(folders::problems(&tenant));
            if backend == "codex" && !config.exit_with_parent {
                let unbounded = check_codex_home(&tenant).err();
                problems.extend(unbounded.map(|err| format!("tenant `{}`: {err}", tenant.name)));
            }
        }
        Some(known?)
    } else {
        can_be_made(&data)?;
        codex_home(&config)?;
        if let Some(key) = config.store.key_file.as_deref() {
            match StoreKey::read(key)? {
                Some(_) => {}
                None => can_be_made(key.parent().unwrap_or(key))?,
            }
        }
        let here = Path::new(".");
        check_folder("root", config.root.as_deref().unwrap_or(here))?;
        None
    };
    workers.check_codex(backend).await?;
    let described = workers.describe().await;
    if !running {
        // A daemon that runs has its address taken itself.
        TcpListener::bind(config.listen).await.map_err(|err| unheard(&config, &err))?;
    }
    Ok(Checked { data, running, known, backend: described, problems })
}

async fn count(config: &Config, tenants: &Tenants) -> Result<(usize, usize), Error> {
    check_tokens(config, tenants).await?;
    let (all, mut valid) = (tenants.list().await?, 0);
    for tenant in &all {
        let tokens = tenants.tokens(tenant).await?;
        valid += tokens.iter().filter(|token| token.revoked.is_none()).count();
    }
    Ok((all.len(), valid))
}

/// Whether a daemon uses this data folder now.
pub fn is_running(data: &Path) -> bool {
    let file = std::fs::File::options().write(true).open(data.join("lock"));
    file.is_ok_and(|file| file.try_lock().is_err())
}

/// A disk without room fails every turn.
#[cfg(unix)]
fn disk_problem(data: &Path) -> Option<String> {
    let near = data.ancestors().find(|path| path.exists())?;
    let disk = rustix::fs::statvfs(near).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    (free < FREE_BYTES).then(|| {
        let path = near.display();
        format!("the disk of `{path}` has {free} bytes free, and {FREE_BYTES} are needed")
    })
}

#[cfg(not(unix))]
fn disk_problem(_: &Path) -> Option<String> {
    None
}

/// The nearest folder that is there must let us make another in it.
fn can_be_made(data: &Path) -> Result<(), Error> {
    let near = data.ancestors().find(|path| path.exists()).unwrap_or(data);
    let meta = std::fs::metadata(near).map_err(|err| Error::io(near, err))?;
    if !meta.is_dir() {
        let source = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(Error::io(near, source));
    }
    #[cfg(unix)]
    rustix::fs::access(near, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|err| Error::io(near, err.into()))?;
    Ok(())
}
