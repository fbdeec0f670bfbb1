//! Where patches may write without asking.

use std::path::{Path, PathBuf};

use crate::guard::policy;
use crate::patch::Denied;
use crate::sandbox::WritableRoots;
use crate::thread::Standing;

/// The roots that may be written, the same as a command's.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    cwd: PathBuf,
    roots: Result<WritableRoots, String>,
}

impl Fence {
    /// The fence that is in force.
    pub(super) fn of(standing: &Standing) -> Self {
        let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
        let policy = policy(&standing.sandbox);
        let roots = WritableRoots::of(&policy, &standing.cwd, tmpdir.as_deref(), Vec::new());
        Self { cwd: standing.cwd.clone(), roots: roots.map_err(|error| error.to_string()) }
    }

    /// Whether a place, links followed, may be written.
    pub(super) fn check(&self, place: &Path) -> Result<(), Denied> {
        let roots = self.roots.as_ref().map_err(|why| Denied { why: why.clone() })?;
        let checked = roots.check(&self.cwd, place).map(|_| ());
        checked.map_err(|error| Denied { why: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Sandbox;

    #[test]
    fn a_place_in_a_root_is_open_unless_it_governs_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let mut standing = Standing::new("m", &root);
        let open = |standing: &Standing, path: PathBuf| Fence::of(standing).check(&path).is_ok();
        assert!(!open(&standing, root.join("x")), "nothing is open to who may only read");
        standing.sandbox = Sandbox::workspace();
        assert!(open(&standing, root.join("src/lib.rs")));
        assert!(!open(&standing, root.join(".git/hooks/x")) && !open(&standing, "/etc/x".into()));
        standing.sandbox = Sandbox::DangerFullAccess;
        assert!(open(&standing, "/etc/x".into()));
    }
}
