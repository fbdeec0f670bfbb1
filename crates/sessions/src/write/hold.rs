//! One writer for each thread, whoever they are.
//!
//! Codex 0.166 locks `thread-writer-locks/<thread>.lock` in its home as long as it has a thread
//! open, and takes the file away when it lets go; `.coordination.lock` is locked for the moment of
//! either, so that nobody locks a file that is just being removed. We do the same, so neither
//! writes into the other's thread. A writer that locks nothing, as older ones do, is seen on Linux
//! by the file it has open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::place;
use crate::Error;
use crate::error::record_error;

/// The folder of the locks in a home.
const FOLDER: &str = "thread-writer-locks";

/// How long others may take to lock or unlock: they need microseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The right to write a thread, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    folder: PathBuf,
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Hold {
    /// Takes hold of a thread.
    pub fn take(home: &Path, thread: &str) -> Result<Self, Error> {
        let folder = home.join(FOLDER);
        let path = folder.join(format!("{thread}.lock"));
        let coordination = coordinate(&folder)?;
        let lock = open(&path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Held { thread: thread.to_owned(), process: None });
            }
            Err(TryLockError::Error(source)) => return Err(Error::Record { path, source }),
        }
        drop(coordination);
        Ok(Self { folder, path, _lock: lock })
    }

    /// Takes hold of a thread whose file exists.
    pub fn take_file(home: &Path, thread: &str, file: &Path) -> Result<Self, Error> {
        let hold = Self::take(home, thread)?;
        match writer_of(file) {
            Some(id) => Err(Error::Held { thread: thread.to_owned(), process: Some(id) }),
            None => Ok(hold),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A lock file that stays does no harm: whoever comes next locks it.
        if let Ok(_coordination) = coordinate(&self.folder) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn coordinate(folder: &Path) -> Result<File, Error> {
    let path = folder.join(".coordination.lock");
    let file = open(&path)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => {
                return Err(Error::Record { path, source: std::io::Error::from(error) });
            }
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    place::open(options.create(true).truncate(false).write(true), path).map_err(record_error(path))
}

/// A process other than this one that has the file open for writing.
#[cfg(target_os = "linux")]
fn writer_of(file: &Path) -> Option<u32> {
    let file = file.canonicalize().ok()?;
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // Processes of others cannot be looked into; nor could they write here, as a rule.
    ids.filter(|id| *id != own).find(|id| writes(*id, &file))
}

#[cfg(not(target_os = "linux"))]
fn writer_of(_file: &Path) -> Option<u32> {
    None
}

#[cfg(target_os = "linux")]
fn writes(process: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file)).any(
        |entry| {
            let name = entry.file_name();
            let info = format!("/proc/{process}/fdinfo/{}", name.to_string_lossy());
            let info = fs::read_to_string(info).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            // The last octal digit holds the mode: 0 is reading.
            flags
                .and_then(|flags| flags.trim().chars().last())
                .is_some_and(|last| last.to_digit(8).is_some_and(|mode| mode & 3 != 0))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_writer_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let hold = Hold::take(home.path(), "t1").unwrap();
        let other = Hold::take(home.path(), "t2").unwrap();
        let error = Hold::take(home.path(), "t1").unwrap_err();
        assert_eq!(error.code(), "held");
        assert_eq!(error.to_string(), "thread `t1` is being written by another process");
        assert!(error.hint().unwrap().contains("fork"));
        drop(hold);
        drop(other);
        assert!(!home.path().join(FOLDER).join("t1.lock").exists());
        Hold::take(home.path(), "t1").unwrap();
    }

    #[test]
    fn a_lock_that_a_killed_process_left_is_nobodys() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(FOLDER)).unwrap();
        fs::write(home.path().join(FOLDER).join("t1.lock"), "").unwrap();
        Hold::take(home.path(), "t1").unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_writer_that_locks_nothing_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("rollout.jsonl");
        fs::write(&path, "{}\n").unwrap();
        let out = OpenOptions::new().append(true).open(&path).unwrap();
        let mut other = std::process::Command::new("cat");
        let mut other = other.stdin(std::process::Stdio::piped()).stdout(out).spawn().unwrap();
        let error = Hold::take_file(home.path(), "t1", &path).unwrap_err();
        assert_eq!(error.code(), "held");
        assert!(error.to_string().contains(&other.id().to_string()));
        drop(other.stdin.take());
        other.wait().unwrap();
        Hold::take_file(home.path(), "t1", &path).unwrap();
    }
}
