//! Where patches may write without asking.

use std::path::{Path, PathBuf};

use crate::patch::Denied;
use crate::thread::{Sandbox, Standing};

/// Folders in a root that stay closed: who writes there changes what later commands do.
const CLOSED: [&str; 4] = [".git", ".codex", ".agents", ".bindery"];

/// The roots that may be written.
#[derive(Clone, Debug)]
pub(super) enum Fence {
    /// Everything was allowed by name.
    Open,
    /// Only below these.
    Roots(Vec<PathBuf>),
}

impl Fence {
    /// The fence that is in force.
    pub(super) fn of(standing: &Standing) -> Self {
        let roots = match &standing.sandbox {
            Sandbox::DangerFullAccess => return Self::Open,
            Sandbox::ReadOnly { .. } | Sandbox::ExternalSandbox { .. } => Vec::new(),
            Sandbox::WorkspaceWrite {
                writable_roots,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
                ..
            } => {
                let mut roots = vec![standing.cwd.clone()];
                roots.extend(writable_roots.iter().cloned());
                roots.extend((!exclude_slash_tmp).then(|| PathBuf::from("/tmp")));
                let tmpdir = std::env::var_os("TMPDIR").filter(|_| !exclude_tmpdir_env_var);
                roots.extend(tmpdir.map(PathBuf::from).filter(|path| path.is_absolute()));
                roots
            }
        };
        // Places are compared with links followed, so roots are too.
        let real = |root: PathBuf| root.canonicalize().unwrap_or(root);
        Self::Roots(roots.into_iter().map(real).collect())
    }

    /// Whether a place, links followed, may be written.
    pub(super) fn check(&self, place: &Path) -> Result<(), Denied> {
        let Self::Roots(roots) = self else { return Ok(()) };
        let inside = roots.iter().any(|root| {
            place.strip_prefix(root).is_ok_and(|rest| {
                let mut parts = rest.components();
                !parts.any(|part| CLOSED.iter().any(|name| part.as_os_str() == *name))
            })
        });
        if inside {
            return Ok(());
        }
        let why = format!("`{}` is outside of what may be written", place.display());
        Err(Denied { why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_root_is_open_unless_it_governs_others() {
        let fence = Fence::Roots(vec![PathBuf::from("/p")]);
        let open = |path: &str| fence.check(Path::new(path)).is_ok();
        assert!(open("/p/src/lib.rs") && open("/p/.github/x"));
        assert!(
            !open("/q/x") && !open("/px") && !open("/p/.git/hooks/x") && !open("/p/a/.codex/y")
        );
        assert!(Fence::Open.check(Path::new("/q")).is_ok());
        assert!(Fence::of(&Standing::new("m", "/p")).check(Path::new("/p/x")).is_err());
    }
}
