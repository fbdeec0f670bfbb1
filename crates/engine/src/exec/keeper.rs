//! A process that outlives ours when ours is killed, and ends what ours had started.
//!
//! Whatever a process does at its end it does not do when it is killed. So our program is started
//! once more beside the first command, to wait on a pipe that closes with this process, however
//! that ends. What carries its name is ended then, and the folders it was told of are removed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::family::{MARK, end_marked};
use super::session::lead_session_blocking;
use crate::sandbox::{SUBCOMMAND, remove_abandoned};

/// The argument that makes our program a keeper; the name follows it.
pub(crate) const KEEP: &str = "--keep";

/// How long it may take until the last of them is gone.
const PATIENCE: Duration = Duration::from_secs(10);

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
static KEEPER: OnceLock<Option<Keeper>> = OnceLock::new();

struct Keeper {
    name: String,
    /// Held to the end of this process, by whatever it ends.
    life: Mutex<ChildStdin>,
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

/// Has an empty folder removed if this process is killed.
pub(crate) fn watch_folder(path: &Path) {
    tell(b'+', path);
}

/// The folder is gone, or somebody else's by now.
pub(crate) fn forget_folder(path: &Path) {
    tell(b'-', path);
}

fn tell(sign: u8, path: &Path) {
    let Some(keeper) = name().and(KEEPER.get()).and_then(Option::as_ref) else { return };
    let message = [&[sign], path.as_os_str().as_bytes(), &[0]].concat();
    let mut life = keeper.life.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(err) = life.write_all(&message) {
        tracing::warn!(%err, "an empty folder may be left behind if this process is killed");
    }
}

fn start(program: &Path) -> Option<Keeper> {
    let name = uuid::Uuid::now_v7().simple().to_string();
    let mut command = Command::new(program);
    command.args([SUBCOMMAND, KEEP, &name]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A session of its own: what ends all of ours is to leave it alone.
    lead_session_blocking(&mut command);
    match command.spawn() {
        Ok(mut child) => Some(Keeper { name, life: Mutex::new(child.stdin.take()?) }),
        Err(err) => {
            tracing::warn!(%err, "commands may outlive this process if it is killed");
            None
        }
    }
}

/// Waits for the end of whoever started this process, then ends what carries the name.
pub(crate) fn keep(name: &str) -> ! {
    let folders = watched(&mut std::io::stdin().lock());
    let mark = format!("{MARK}={name}.");
    let began = Instant::now();
    while end_marked(&mark) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    for folder in folders {
        // One that somebody has filled stays, and one that another engine relies on.
        remove_abandoned(&folder);
    }
    std::process::exit(0)
}

/// The folders that are left when the other end closes. An error is an end as well.
fn watched(messages: &mut dyn BufRead) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut message = Vec::new();
    while matches!(messages.read_until(0, &mut message), Ok(1..)) {
        // The end of a message that was cut is no folder.
        if message.pop() == Some(0) {
            let sign = message.first().copied();
            let path = PathBuf::from(OsString::from_vec(message.split_off(message.len().min(1))));
            match sign {
                Some(b'+') => folders.insert(path),
                _ => folders.remove(&path),
            };
        }
        message.clear();
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_watched_until_they_are_forgotten() {
        let left = |messages: &[u8]| watched(&mut &messages[..]).into_iter().collect::<Vec<_>>();
        assert_eq!(left(b"+/a b/.git\0+/c\0-/a b/.git\0"), [PathBuf::from("/c")]);
        assert_eq!(left(b"+/a\0+/cut"), [PathBuf::from("/a")]);
        assert_eq!(left(b"\0-\0-/never\0"), Vec::<PathBuf>::new());
    }
}
