//! Whether a daemon of these settings would start; nothing is made or changed by looking.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{STORE, absolute, check_tokens, codex_home, open_store, unheard};
use crate::config::Config;
use crate::error::Error;
use crate::logging;
use crate::tenant::Tenants;
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
}

/// Looks at everything that a start needs.
pub async fn check(config: Config, program: Program) -> Result<Checked, Error> {
    let config = Arc::new(absolute(config)?);
    logging::check(&config.log)?;
    config.traces.otlp.as_deref().map(traces::check).transpose()?;
    let data = config.data.clone();
    let running = is_locked(&data);
    let known = if data.join(STORE).exists() {
        let store = open_store(&config)?;
        let known = count(&config, &Tenants::new(store.clone())).await;
        store.close().await?;
        Some(known?)
    } else {
        can_be_made(&data)?;
        codex_home(&config)?;
        None
    };
    if !running {
        // A daemon that runs has its address taken itself.
        TcpListener::bind(config.listen).await.map_err(|err| unheard(&config, &err))?;
    }
    let workers = Workers::described(&config, program);
    workers.backend(None)?;
    let backend = workers.describe().await;
    Ok(Checked { data, running, known, backend })
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

/// Whether a server runs on this data folder.
pub fn is_locked(data: &Path) -> bool {
    let file = std::fs::File::options().write(true).open(data.join("lock"));
    file.is_ok_and(|file| file.try_lock().is_err())
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
