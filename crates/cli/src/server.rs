//! Starting the Codex that a command works with.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bindery::client::locate::{Located, locate};
use bindery::{AppServer, ConnectOptions, Launch};

/// Which Codex to use.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WhichCodex {
    /// The Codex to use, instead of the one in `BINDERY_CODEX` or on `PATH`
    #[arg(long, value_name = "PATH", help_heading = "Codex")]
    pub(crate) codex: Option<PathBuf>,
}

impl WhichCodex {
    /// Finds it.
    pub(crate) fn locate(&self) -> Result<Located, bindery::Error> {
        locate(self.codex.as_deref())
    }

    /// Finds it, starts it in a folder and greets it.
    pub(crate) async fn start(&self, cwd: &Path) -> anyhow::Result<AppServer> {
        let mut launch = Launch::codex(&self.locate()?);
        launch.cwd = Some(cwd.to_owned());
        Ok(AppServer::spawn(&launch, &ConnectOptions::default()).await?)
    }
}

/// A folder the user named, without links and dots.
pub(crate) fn folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = named.unwrap_or(Path::new("."));
    let folder = path.canonicalize().with_context(|| format!("no folder `{}`", path.display()))?;
    anyhow::ensure!(folder.is_dir(), "`{}` is not a folder", path.display());
    Ok(folder)
}
