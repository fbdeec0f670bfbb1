//! The guard: the parent of a worker, small, and the one who ends it.
//!
//! It runs the worker's command and waits. It ends the worker, and what that has started, when it
//! is told to, when the daemon's lease has not been renewed for a while, or, on request, as soon as
//! its standard input is closed, which is when whoever started it is gone.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bindery_client::transport::group::{Group, describe};

use super::folder::Folder;

/// How often to look.
const GLANCE: Duration = Duration::from_millis(100);

/// How long a worker may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What a worker may say before it is forgotten.
const LONGEST_LOG: u64 = 1 << 20;

/// How an end by the guard's own decision begins.
pub(super) const ENDED: &str = "its guard ended it";

/// What to guard.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The worker's folder.
    pub folder: PathBuf,
    /// The file that the daemon touches while it lives.
    pub lease: PathBuf,
    /// How long it may stay untouched.
    pub patience: Duration,
    /// End with our standard input.
    pub with_parent: bool,
    /// Pass the first line of our standard input, a secret, on to the worker's.
    pub pass_secret: bool,
    /// The worker's program and its arguments.
    pub command: Vec<OsString>,
}

/// Runs the worker to its end.
pub fn run(watch: &Watch) -> std::io::Result<()> {
    let folder = Folder::at(watch.folder.clone());
    let Some((program, args)) = watch.command.split_first() else {
        return Err(std::io::Error::other("no command to guard"));
    };
    let mut command = Command::new(program);
    let secret = watch.pass_secret.then(read_secret).transpose()?;
    let input = if secret.is_some() { Stdio::piped() } else { Stdio::null() };
    command.args(args).stdin(input).stdout(Stdio::null()).process_group(0);
    let started = command.spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(err) => {
            let status = format!("cannot start `{}`: {err}", program.display());
            return std::fs::write(folder.exit(), status);
        }
    };
    if let (Some(secret), Some(mut input)) = (secret, child.stdin.take()) {
        // A worker that ends before it reads is told of below, by how it ended.
        let _ = input.write_all(secret.as_bytes());
    }
    let group = Group::new(child.id());
    if let Err(err) = std::fs::write(folder.pid(), child.id().to_string()) {
        // Nobody could find it, or see that it ends.
        end(&mut child, &group)?;
        group.release();
        return Err(err);
    }
    let ended = guard(watch, &folder, &mut child, &group)?;
    group.release();
    // If nobody will ever read it, it goes with the data folder.
    std::fs::write(folder.exit(), ended)
}

/// The first line of our standard input: neither a command line nor a file, which commands of the
/// worker could read.
fn read_secret() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line)
}

fn guard(
    watch: &Watch,
    folder: &Folder,
    child: &mut Child,
    group: &Group,
) -> std::io::Result<String> {
    let closed = watch.with_parent.then(closed_input);
    let mut lease = Lease::new(&watch.lease);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(describe(status));
        }
        let alone = closed.as_ref().is_some_and(|closed| closed.load(Ordering::Relaxed));
        if alone || folder.stop().exists() {
            return Ok(describe(end(child, group)?));
        }
        if lease.age() > watch.patience {
            end(child, group)?;
            let patience = watch.patience.as_secs();
            return Ok(format!("{ENDED}: no daemon came back within {patience} s"));
        }
        shorten(&folder.log());
        // While it lives; afterwards nobody knows what it has started.
        group.remember();
        std::thread::sleep(GLANCE);
    }
}

fn end(child: &mut Child, group: &Group) -> std::io::Result<ExitStatus> {
    let begin = Instant::now();
    group.terminate();
    while begin.elapsed() < GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(GLANCE);
    }
    group.kill();
    child.wait()
}

/// Empties a log that has grown too long; it is written at its end, wherever that is.
fn shorten(log: &Path) {
    if std::fs::metadata(log).is_ok_and(|file| file.len() > LONGEST_LOG) {
        let _ = std::fs::File::options().write(true).open(log).and_then(|file| file.set_len(0));
    }
}

/// Set once our standard input is closed.
fn closed_input() -> Arc<AtomicBool> {
    let closed = Arc::new(AtomicBool::new(false));
    let flag = closed.clone();
    // Ends with the process.
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while matches!(std::io::stdin().read(&mut buffer), Ok(count) if count > 0) {}
        flag.store(true, Ordering::Relaxed);
    });
    closed
}

/// How long the lease has not been renewed, by a clock that stands while the machine sleeps.
struct Lease<'a> {
    path: &'a Path,
    seen: Option<SystemTime>,
    since: Instant,
}

impl<'a> Lease<'a> {
    fn new(path: &'a Path) -> Self {
        Self { path, seen: None, since: Instant::now() }
    }

    fn age(&mut self) -> Duration {
        let touched = std::fs::metadata(self.path).and_then(|file| file.modified()).ok();
        if touched.is_some() && touched != self.seen {
            (self.seen, self.since) = (touched, Instant::now());
        }
        self.since.elapsed()
    }
}
