//! A process that outlives ours when ours is killed, and ends what ours had started.
//!
//! Whatever a process does at its end it does not do when it is killed. So our program is started
//! once more beside the first command, to wait on a pipe that closes with this process, however
//! that ends. What carries its name is ended then.

use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::family::{MARK, end_marked};
use super::session::lead_session_blocking;
use crate::sandbox::SUBCOMMAND;

/// The argument that makes our program a keeper; the name follows it.
pub(crate) const KEEP: &str = "--keep";

/// How long it may take until the last of them is gone.
const PATIENCE: Duration = Duration::from_secs(10);

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
static KEEPER: OnceLock<Option<Keeper>> = OnceLock::new();

struct Keeper {
    name: String,
    /// Held to the end of this process, by whatever it ends.
    _life: ChildStdin,
}

/// Names the program that can be a keeper: one that calls [`crate::sandbox::enter`].
pub(crate) fn offer(program: &Path) {
    // One is enough for a process; a second offer changes nothing.
    let _ = PROGRAM.set(program.to_owned());
}

/// The name of this process's keeper, who is started when it is first asked for. None where no
/// program was offered or processes cannot be found by what they carry.
pub(super) fn name() -> Option<&'static str> {
    let program = PROGRAM.get().filter(|_| cfg!(target_os = "linux"))?;
    KEEPER.get_or_init(|| start(program)).as_ref().map(|keeper| keeper.name.as_str())
}

fn start(program: &Path) -> Option<Keeper> {
    let name = uuid::Uuid::now_v7().simple().to_string();
    let mut command = Command::new(program);
    command.args([SUBCOMMAND, KEEP, &name]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A session of its own: what ends all of ours is to leave it alone.
    lead_session_blocking(&mut command);
    match command.spawn() {
        Ok(mut child) => Some(Keeper { name, _life: child.stdin.take()? }),
        Err(err) => {
            tracing::warn!(%err, "commands may outlive this process if it is killed");
            None
        }
    }
}

/// Waits for the end of whoever started this process, then ends what carries the name.
pub(crate) fn keep(name: &str) -> ! {
    // An error is an end as well.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let mark = format!("{MARK}={name}.");
    let began = Instant::now();
    while end_marked(&mark) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::process::exit(0)
}
