//! Repositories and projects below a writable folder.
//!
//! Each command starts with a look at the nearest folders. All of them are looked through when a
//! folder is seen for the first time, and again when something that was found is not where it was:
//! a command may have moved it deeper.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names that are protected at any depth where they are there: a repository or a project can lie
/// within another.
pub(super) const NESTED: [&str; 4] = [".git", ".codex", ".agents", ".bindery"];

/// How deep every command looks, and in how many folders at most.
const NEAR: ScanBound = ScanBound { depth: 4, folders: 20_000 };

/// The same for a look at everything.
const FAR: ScanBound = ScanBound { depth: usize::MAX, folders: 100_000 };

/// Roots of which is remembered what was found.
const MOST_ROOTS: usize = 256;

/// Never looked through: it holds copies of published packages.
const SKIPPED: &str = "node_modules";

#[derive(Clone, Copy)]
struct ScanBound {
    depth: usize,
    folders: usize,
}

/// A place as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownPlace {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// What was found below roots, by root.
static KNOWN: Mutex<Option<HashMap<PathBuf, Vec<KnownPlace>>>> = Mutex::new(None);

/// Repositories and projects below a folder.
pub(super) fn nested(root: &Path) -> Vec<PathBuf> {
    let mut guard = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let roots = guard.get_or_insert_default();
    let known = roots.remove(root);
    let unmoved = known.filter(|known| known.iter().all(KnownPlace::is_there));
    let mut found: BTreeSet<PathBuf> = match unmoved {
        Some(known) => {
            let near = scan(root, NEAR);
            known.into_iter().map(|place| place.path).chain(near).collect()
        }
        None => scan(root, FAR).into_iter().collect(),
    };
    found.retain(|path| path.symlink_metadata().is_ok());
    if roots.len() >= MOST_ROOTS {
        roots.clear();
    }
    roots.insert(root.to_owned(), found.iter().filter_map(|path| KnownPlace::at(path)).collect());
    found.into_iter().collect()
}

impl KnownPlace {
    fn at(path: &Path) -> Option<Self> {
        let about = path.symlink_metadata().ok()?;
        Some(Self { path: path.to_owned(), device: about.dev(), inode: about.ino() })
    }

    fn is_there(&self) -> bool {
        Self::at(&self.path).as_ref() == Some(self)
    }
}

/// The nearest ones first.
fn scan(root: &Path, bound: ScanBound) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = VecDeque::from([(root.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((folder, depth)) = open.pop_front() {
        seen += 1;
        if seen > bound.folders {
            break;
        }
        if is_git_folder(&folder) {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if depth > 0 && NESTED.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                // A link cannot be protected itself; what it leads to is.
                let path = entry.path();
                found.extend(if kind.is_symlink() { path.canonicalize().ok() } else { Some(path) });
            } else if kind.is_dir() && depth < bound.depth && name != SKIPPED && name != ".git" {
                open.push_back((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// A repository without a working tree has git's own files in the folder itself.
pub(super) fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_moved_is_found_again_however_deep() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let deep = root.join("a/b/c/d/e/f/g");
        fs::create_dir_all(deep.join("own/.git")).unwrap();
        fs::create_dir_all(root.join("near/.git")).unwrap();
        assert_eq!(nested(&root), [deep.join("own/.git"), root.join("near/.git")]);
        fs::rename(root.join("near"), deep.join("far")).unwrap();
        assert_eq!(nested(&root), [deep.join("far/.git"), deep.join("own/.git")]);
        fs::rename(deep.join("own"), deep.join("other")).unwrap();
        assert_eq!(nested(&root), [deep.join("far/.git"), deep.join("other/.git")]);
        // One that a command has just made is found where every command looks.
        fs::create_dir_all(root.join("new/.codex")).unwrap();
        assert!(nested(&root).contains(&root.join("new/.codex")));
        fs::remove_dir_all(&deep).unwrap();
        assert_eq!(nested(&root), [root.join("new/.codex")]);
    }
}
