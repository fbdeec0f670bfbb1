//! Where patches may write without asking.

use std::path::{Path, PathBuf};

use super::Cx;
use crate::guard::policy;
use crate::patch::Denied;
use crate::sandbox::{WritableRoots, roots};
use crate::thread::Standing;

/// The roots that may be written, the same as a command's.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    cwd: PathBuf,
    roots: Result<WritableRoots, String>,
}

impl Fence {
    /// The fence that is in force.
    pub(super) fn of(cx: &Cx) -> Self {
        match cx.verify_roots() {
            Ok(()) => Self::around(&cx.standing, cx.guard.protected_folders()),
            Err(why) => Self { cwd: cx.standing.cwd.clone(), roots: Err(why) },
        }
    }

    fn around(standing: &Standing, protect: Vec<PathBuf>) -> Self {
        let tmpdir = roots::temporary_folder();
        let policy = policy(&standing.sandbox);
        let roots = WritableRoots::of(&policy, &standing.cwd, tmpdir.as_deref(), protect);
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
        let protect = || vec![root.join(".config/bindery")];
        let open = |standing: &Standing, path: PathBuf| {
            Fence::around(standing, protect()).check(&path).is_ok()
        };
        assert!(!open(&standing, root.join("x")), "nothing is open to who may only read");
        standing.sandbox = Sandbox::workspace();
        assert!(open(&standing, root.join("src/lib.rs")));
        assert!(!open(&standing, root.join(".git/hooks/x")) && !open(&standing, "/etc/x".into()));
        let closed = [
            ".config/bindery/rules.toml",
            ".aws/config",
            "sub/.git/hooks/pre-commit",
            "sub/.GIT/config",
            "sub/.codex/config.toml",
            "bare.git/hooks/x",
            "real-git/hooks/x",
            "hooks-of-mine/pre-commit",
        ];
        let make = |folder: &str| std::fs::create_dir_all(root.join(folder)).expect("a folder");
        ["bare.git/objects", "bare.git/refs", "real-git", "linked"].into_iter().for_each(make);
        std::fs::write(root.join("bare.git/HEAD"), "ref: refs/heads/x").expect("a file");
        let config = "[core]\n\thooksPath = hooks-of-mine\n";
        std::fs::write(root.join("real-git/config"), config).expect("a file");
        std::fs::write(root.join(".git"), "gitdir: real-git\n").expect("a file");
        for path in closed {
            assert!(!open(&standing, root.join(path)), "{path}");
        }
        assert!(open(&standing, root.join(".config/other")) && open(&standing, root.join("bare")));
        standing.sandbox = Sandbox::DangerFullAccess;
        assert!(open(&standing, "/etc/x".into()));
    }
}
