//! An empty folder that stands where a protected one could be made, for as long as a command runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exec::keeper::{forget_folder, watch_folder};

/// Where they stand, and how many rely on each.
static STANDING: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

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
    /// Makes one, or shares one of ours that stands.
    pub(super) fn at(path: &Path) -> Site {
        let mut standing = standing();
        if !standing.contains_key(path) {
            if path.symlink_metadata().is_ok() {
                return Site::Taken;
            }
            // Told before: this process may be killed at any time.
            watch_folder(path);
            if let Err(error) = fs::create_dir(path) {
                forget_folder(path);
                let taken = error.kind() == ErrorKind::AlreadyExists;
                return if taken { Site::Taken } else { Site::Unfit };
            }
        }
        *standing.entry(path.to_owned()).or_default() += 1;
        Site::Ours(Self(Arc::new(Place { path: path.to_owned() })))
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
        let left = standing.get_mut(&self.path).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            standing.remove(&self.path);
            // Only an empty folder is removed; one that somebody has filled stays.
            let _ = fs::remove_dir(&self.path);
            forget_folder(&self.path);
        }
    }
}

fn standing() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
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
