//! An empty folder that stands where a protected one could be made, for as long as a command runs.
//!
//! Several engines may work in one folder. A placeholder is known by its mode, and whoever relies
//! on it holds a lock on it, so that it is removed by the last of them and by nobody before: once
//! the folder is gone, so is the mount over it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::exec::keeper::{forget_folder, watch_folder};

/// The mode of a placeholder, which nobody gives to a folder of their own.
const MARK: u32 = 0o1500;

/// How often one is made anew that another engine removes meanwhile.
const MOST_TRIES: usize = 64;

/// Where they stand, and how many of this process rely on each.
static STANDING: Mutex<BTreeMap<PathBuf, Standing>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct Standing {
    count: usize,
    /// Holds the lock, where the file system has any.
    lock: Option<File>,
}

/// Removes the folder when the last command that relies on it is done with it.
#[derive(Clone, Debug)]
pub struct Placeholder(Arc<Place>);

/// What stands somewhere.
#[derive(Debug)]
pub(super) enum Site {
    /// A placeholder.
    Ours(Placeholder),
    /// Something of somebody else's.
    Taken,
    /// Nothing, and nothing can be made by us; nor by a command, which may do no more.
    Unfit,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
}

impl Placeholder {
    /// Makes one, or shares one that stands.
    pub(super) fn at(path: &Path) -> Site {
        let mut standing = standing();
        if let Some(known) = standing.get_mut(path) {
            known.count += 1;
            return Site::Ours(Self(Arc::new(Place { path: path.to_owned() })));
        }
        // Told before: this process may be killed at any time.
        watch_folder(path);
        match acquire(path) {
            Ok(Some(lock)) => {
                standing.insert(path.to_owned(), Standing { count: 1, lock });
                Site::Ours(Self(Arc::new(Place { path: path.to_owned() })))
            }
            other => {
                forget_folder(path);
                if other.is_ok() { Site::Taken } else { Site::Unfit }
            }
        }
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl PartialEq for Placeholder {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for Placeholder {}

impl Drop for Place {
    fn drop(&mut self) {
        let mut standing = standing();
        let Some(known) = standing.get_mut(&self.path) else { return };
        known.count -= 1;
        if known.count == 0 {
            let lock = standing.remove(&self.path).and_then(|known| known.lock);
            remove(&self.path, lock);
            forget_folder(&self.path);
        }
    }
}

/// Makes a placeholder or takes part in one, with its lock. `None` if something else is there.
fn acquire(path: &Path) -> io::Result<Option<Option<File>>> {
    for _ in 0..MOST_TRIES {
        match path.symlink_metadata() {
            Ok(about) if !is_marked(&about) => return Ok(None),
            Ok(_) => {}
            Err(_) => match DirBuilder::new().mode(MARK).create(path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => continue,
            },
        }
        let Ok(folder) = open(path) else { continue };
        match flock(&folder, FlockOperation::LockShared) {
            Ok(()) if is_at(&folder, path) => return Ok(Some(Some(folder))),
            // Its last user removed it before we had the lock.
            Ok(()) => {}
            Err(_) => return Ok(Some(None)),
        }
    }
    // Whatever stands there, it is not one that we can rely on.
    Ok(None)
}

/// Removes a placeholder of a process that is gone, unless another engine relies on it.
pub(crate) fn remove_abandoned(path: &Path) {
    let marked = path.symlink_metadata().is_ok_and(|about| is_marked(&about));
    if let Some(folder) = marked.then(|| open(path).ok()).flatten() {
        remove(path, Some(folder));
    }
}

/// Only an empty folder is removed; one that somebody has filled stays.
fn remove(path: &Path, lock: Option<File>) {
    let relied_on = lock.as_ref().is_some_and(|folder| {
        let alone = flock(folder, FlockOperation::NonBlockingLockExclusive);
        alone == Err(rustix::io::Errno::WOULDBLOCK) || !is_at(folder, path)
    });
    if !relied_on {
        let _ = fs::remove_dir(path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn is_marked(about: &fs::Metadata) -> bool {
    about.is_dir() && about.mode() & 0o7777 == MARK
}

/// Whether this is the folder that the path names.
fn is_at(folder: &File, path: &Path) -> bool {
    let numbers = |about: fs::Metadata| (about.dev(), about.ino());
    let (own, there) = (folder.metadata().map(numbers), path.symlink_metadata().map(numbers));
    matches!((own, there), (Ok(own), Ok(there)) if own == there)
}

fn standing() -> MutexGuard<'static, BTreeMap<PathBuf, Standing>> {
    STANDING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &Path) -> Placeholder {
        match Placeholder::at(path) {
            Site::Ours(placeholder) => placeholder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_stands_as_long_as_anybody_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        let first = made(&path);
        let second = made(&path);
        let third = second.clone();
        drop((second, third));
        assert!(path.is_dir());
        drop(first);
        assert!(!path.exists());
    }

    /// A lock belongs to whoever opened the folder, so that opening it once more is as good as
    /// another process.
    #[test]
    fn it_stands_as_long_as_another_engine_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        let first = made(&path);
        let other = open(&path).unwrap();
        flock(&other, FlockOperation::LockShared).unwrap();
        drop(first);
        assert!(path.is_dir());
        remove_abandoned(&path);
        assert!(path.is_dir());
        // The other way round: it is known as a placeholder, though others made it.
        let second = made(&path);
        drop(other);
        remove_abandoned(&path);
        assert!(path.is_dir());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_behind_is_removed_and_no_folder_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        DirBuilder::new().mode(MARK).create(&path).unwrap();
        remove_abandoned(&path);
        assert!(!path.exists());
        DirBuilder::new().mode(MARK).create(&path).unwrap();
        drop(made(&path));
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        assert!(matches!(Placeholder::at(&path), Site::Taken));
        remove_abandoned(&path);
        assert!(path.is_dir());
    }

    #[test]
    fn what_was_there_or_was_filled_stays() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Placeholder::at(folder.path()), Site::Taken));
        assert!(matches!(Placeholder::at(&folder.path().join("no/way")), Site::Unfit));
        let path = folder.path().join(".git");
        let placeholder = made(&path);
        fs::write(path.join("HEAD"), "").unwrap();
        drop(placeholder);
        assert!(path.join("HEAD").is_file());
    }
}
