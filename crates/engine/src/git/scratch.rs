//! A folder that is private to us and removed with its last use.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

#[derive(Debug)]
pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(super) fn new() -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for parent in parents() {
            let random = getrandom::u64().map_err(|err| io::Error::other(err.to_string()))?;
            let folder = parent.join(format!("bindery-git-{random:016x}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where it can be, the best first. Commands can write in folders for temporary files, so these
/// come last.
fn parents() -> Vec<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(absolute);
    let cache = std::env::home_dir().filter(absolute).map(|home| home.join(".cache/bindery"));
    // Where it cannot be made the next one is taken.
    let _ = cache.as_ref().map(fs::create_dir_all);
    session.into_iter().chain(cache).chain([std::env::temp_dir()]).collect()
}
