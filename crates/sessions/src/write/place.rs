//! Where a thread's file is: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::clock::Clock;

/// The folder of a home for sessions in use.
pub const SESSIONS: &str = "sessions";

/// The folder of a home for archived sessions: flat.
pub const ARCHIVED: &str = "archived_sessions";

/// The file of a thread that begins now.
pub fn new_file(home: &Path, thread: &str, clock: &Clock, millis: i64) -> PathBuf {
    let time = clock.file_time(millis);
    day(home, &time).join(format!("rollout-{time}-{thread}.jsonl"))
}

/// Where a file of this name lives while it is in use; none if its name has no date.
pub fn active(home: &Path, name: &str) -> Option<PathBuf> {
    let time = name.strip_prefix("rollout-")?.get(..19)?;
    let is_date = time.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 | 13 | 16 => byte == b'-',
        10 => byte == b'T',
        _ => byte.is_ascii_digit(),
    });
    is_date.then(|| day(home, time).join(name))
}

/// Where a file of this name lives once archived.
pub fn archived(home: &Path, name: &str) -> PathBuf {
    home.join(ARCHIVED).join(name)
}

/// Opens a file whose folder is made when it turns out to be missing: to ask for one that is there
/// may wait for the file system.
pub(super) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            options.open(path)
        }
        (result, _) => result,
    }
}

fn day(home: &Path, time: &str) -> PathBuf {
    let date = time.split('T').next().unwrap_or_default();
    date.split('-').fold(home.join(SESSIONS), |path, part| path.join(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_where_codex_looks_for_it() {
        let clock = Clock::of(|| 1_794_773_678_993);
        let path = new_file(Path::new("/h"), "01a1", &clock, clock.millis());
        let want = "/h/sessions/2026/11/15/rollout-2026-11-15T20-14-38-01a1.jsonl";
        assert_eq!(path, Path::new(want));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(active(Path::new("/h"), name).as_deref(), Some(Path::new(want)));
        assert_eq!(active(Path::new("/h"), "rollout-../../../../etc/passwd-1.jsonl"), None);
        assert_eq!(clock.stamp(), "2026-11-15T20:14:38.993Z");
    }
}
