//! `bindery guard`: the parent of a worker; started by `bindery serve`, not by people.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bindery_daemon::workers::guard::{Watch, run};

/// Run a worker, and end it when its daemon does not come back
#[derive(Debug, clap::Args)]
pub struct Guard {
    /// The worker's folder
    #[arg(long)]
    folder: PathBuf,
    /// The file that the daemon touches
    #[arg(long)]
    lease: PathBuf,
    /// How long it may stay untouched, in seconds
    #[arg(long)]
    patience: u64,
    /// End with the standard input
    #[arg(long)]
    with_parent: bool,
    /// Pass the first line of the standard input on to the worker's
    #[arg(long)]
    pass_secret: bool,
    /// The worker
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Guard {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let watch = Watch {
            folder: self.folder,
            lease: self.lease,
            patience: Duration::from_secs(self.patience),
            with_parent: self.with_parent,
            pass_secret: self.pass_secret,
            command: self.command,
        };
        run(&watch)?;
        Ok(ExitCode::SUCCESS)
    }
}
