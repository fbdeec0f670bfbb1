//! The folder of a thread while a turn runs in it: held open, and looked for again.

use std::path::{Path, PathBuf};

use super::paths::{confined, real_root};
use crate::error::Error;

/// The error of a thread whose folder is not where it was.
pub const FOLDER_MOVED: &str = "folder_moved";

/// A folder below a tenant's root, held open: as long as it is, no other can pass for it, because
/// the system gives its number to no new one.
#[derive(Debug)]
pub struct ThreadFolder {
    root: PathBuf,
    path: PathBuf,
    #[cfg(unix)]
    identity: Identity,
    #[cfg(unix)]
    _held: std::os::fd::OwnedFd,
    /// Further folders that a turn may write, held in the same way.
    roots: Vec<ThreadFolder>,
}

/// The device and the number of a folder.
#[cfg(unix)]
type Identity = (u64, u64);

impl ThreadFolder {
    /// The folder that a caller names (the root itself when there is none). Links that stay inside
    /// the root are resolved, once: the thread works where they lead now.
    pub fn choose(root: &Path, wanted: Option<&str>) -> Result<Self, Error> {
        let path = confined(root, wanted)?;
        Self::open(root, &path)
    }

    /// The folder that a thread was made for. There must be no link on the way, and it must lie
    /// below the root as that is now.
    pub fn open(root: &Path, path: &Path) -> Result<Self, Error> {
        let root = real_root(root)?;
        let moved = || moved(path);
        #[cfg(unix)]
        {
            let (held, identity) = look(&root, path).map_err(|_| moved())?;
            let roots = Vec::new();
            Ok(Self { root, path: path.to_owned(), identity, _held: held, roots })
        }
        #[cfg(not(unix))]
        {
            let real = path.canonicalize().map_err(|_| moved())?;
            let same = real == path && real.starts_with(&root) && real.is_dir();
            same.then(|| Self { root, path: real, roots: Vec::new() }).ok_or_else(moved)
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, with these folders below the root that a turn may write, too.
    pub fn with_roots(mut self, roots: &[PathBuf]) -> Result<Self, Error> {
        let held = roots.iter().map(|path| Self::open(&self.root, path));
        self.roots = held.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Whether all its paths still lead to what they did and to no other folder.
    pub fn is_in_place(&self) -> bool {
        self.first_moved().is_none()
    }

    /// What is said when it is not.
    pub fn moved(&self) -> Error {
        moved(self.first_moved().unwrap_or(&self.path))
    }

    /// The first of its paths that leads elsewhere.
    fn first_moved(&self) -> Option<&Path> {
        #[cfg(unix)]
        let stays = look(&self.root, &self.path).is_ok_and(|(_, now)| now == self.identity);
        #[cfg(not(unix))]
        let stays = Self::open(&self.root, &self.path).is_ok();
        if !stays {
            return Some(&self.path);
        }
        self.roots.iter().find_map(Self::first_moved)
    }
}

#[cfg(unix)]
fn look(root: &Path, path: &Path) -> std::io::Result<(std::os::fd::OwnedFd, Identity)> {
    use bindery_sessions::plain::{SEARCH, open_below};
    let held = open_below(root, path, SEARCH)?;
    let found = rustix::fs::fstat(&held)?;
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    let identity = (found.st_dev as u64, found.st_ino as u64);
    Ok((held, identity))
}

fn moved(path: &Path) -> Error {
    let message = format!("`{}` is no longer the folder that this thread may use", path.display());
    Error::Conflict { code: FOLDER_MOVED, message }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_that_was_swapped_is_found_out_and_not_opened_again() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let (root, other) = (outer.join("root"), outer.join("other"));
        fs::create_dir_all(root.join("a/sub")).unwrap();
        fs::create_dir_all(other.join("sub")).unwrap();
        let folder = ThreadFolder::choose(&root, Some("a/sub")).unwrap();
        assert!(folder.is_in_place());
        let path = folder.path().to_owned();
        let code = || ThreadFolder::open(&root, &path).unwrap_err().code();

        // A link in its place.
        fs::rename(&path, root.join("kept")).unwrap();
        symlink(&other, &path).unwrap();
        assert!(!folder.is_in_place());
        assert_eq!(code(), FOLDER_MOVED);
        // A link on the way, to a folder that has one of the same name.
        fs::remove_file(&path).unwrap();
        fs::rename(root.join("kept"), &path).unwrap();
        assert!(folder.is_in_place());
        fs::rename(root.join("a"), root.join("b")).unwrap();
        symlink(&other, root.join("a")).unwrap();
        assert!(!folder.is_in_place());
        assert_eq!(code(), FOLDER_MOVED);
        // Even one that leads back.
        fs::remove_file(root.join("a")).unwrap();
        symlink(root.join("b"), root.join("a")).unwrap();
        assert_eq!(code(), FOLDER_MOVED);
        // A folder of the same name is another one while a turn runs, and good for the next.
        fs::remove_file(root.join("a")).unwrap();
        assert_eq!(code(), FOLDER_MOVED);
        fs::create_dir_all(&path).unwrap();
        assert!(!folder.is_in_place());
        ThreadFolder::open(&root, &path).unwrap();
        // A file in its place.
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(code(), FOLDER_MOVED);
    }

    #[test]
    fn a_folder_outside_of_a_root_that_was_moved_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        for name in ["one/sub", "two/sub"] {
            fs::create_dir_all(outer.join(name)).unwrap();
        }
        let root = outer.join("root");
        symlink(outer.join("one"), &root).unwrap();
        let path = ThreadFolder::choose(&root, Some("sub")).unwrap().path().to_owned();
        ThreadFolder::open(&root, &path).unwrap();
        fs::remove_file(&root).unwrap();
        symlink(outer.join("two"), &root).unwrap();
        assert_eq!(ThreadFolder::open(&root, &path).unwrap_err().code(), FOLDER_MOVED);
    }
}
