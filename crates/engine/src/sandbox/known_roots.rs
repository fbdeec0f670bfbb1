//! The writable folders of a thread, each as it was when the thread first named it.
//!
//! Roots are named by paths. A command that may write in the folder above one can put a link in
//! its place, and the next command would be let into whatever the link leads to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Policy, SandboxError, roots};

/// What the roots of a thread led to.
#[derive(Debug, Default)]
pub struct KnownRoots {
    seen: Mutex<BTreeMap<PathBuf, Seen>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// A folder, by the numbers of its device and of itself.
    Folder { device: u64, inode: u64 },
    /// Nothing; once it is there it has to be here, not behind a link.
    Missing { expected: PathBuf },
}

impl KnownRoots {
    /// Says which root leads elsewhere than before. One that is new is remembered as it is now.
    pub fn verify(&self, policy: &Policy, workspace: &Path) -> Result<(), SandboxError> {
        if *policy == Policy::FullAccess {
            return Ok(());
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = roots::paths(policy, workspace, roots::temporary_folder().as_deref());
        let roots = roots.into_iter().map(|(path, _)| path);
        for path in roots.chain([workspace.to_owned()]) {
            let now = look(&path);
            let known = seen.entry(path.clone()).or_insert_with(|| now.clone());
            match (&*known, &now) {
                (known, now) if known == now => {}
                (Seen::Missing { expected }, Seen::Folder { .. })
                    if path.canonicalize().is_ok_and(|found| found == *expected) =>
                {
                    *known = now;
                }
                _ => return Err(SandboxError::RootReplaced(path)),
            }
        }
        Ok(())
    }
}

fn look(path: &Path) -> Seen {
    match fs::metadata(path) {
        Ok(about) => Seen::Folder { device: about.dev(), inode: about.ino() },
        Err(_) => Seen::Missing { expected: expected(path) },
    }
}

/// Where a missing folder would be: below the nearest one that is there.
fn expected(path: &Path) -> PathBuf {
    let above = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match above {
        Some((folder, real)) => real.join(path.strip_prefix(folder).unwrap_or(path)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_root_that_leads_elsewhere_later_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let above = folder.path().canonicalize().unwrap();
        let (workspace, late, linked) =
            (above.join("workspace"), above.join("late"), above.join("linked"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(above.join("elsewhere")).unwrap();
        let policy = Policy::WorkspaceWrite {
            roots: vec![late.clone(), linked.clone()],
            network: false,
            exclude_slash_tmp: true,
            exclude_tmpdir: true,
        };
        let known = KnownRoots::default();
        let verify = |policy: &Policy| known.verify(policy, &workspace);
        verify(&policy).unwrap();
        fs::create_dir(&late).unwrap();
        verify(&policy).unwrap();
        symlink("elsewhere", &linked).unwrap();
        assert!(matches!(verify(&policy), Err(SandboxError::RootReplaced(path)) if path == linked));
        fs::remove_file(&linked).unwrap();
        verify(&policy).unwrap();
        fs::rename(&workspace, above.join("away")).unwrap();
        symlink("elsewhere", &workspace).unwrap();
        for policy in [&policy, &Policy::ReadOnly] {
            let verified = verify(policy);
            assert!(matches!(verified, Err(SandboxError::RootReplaced(path)) if path == workspace));
        }
        verify(&Policy::FullAccess).unwrap();
        fs::remove_file(&workspace).unwrap();
        symlink("away", &workspace).unwrap();
        verify(&policy).unwrap();
    }
}
