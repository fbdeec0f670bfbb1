//! What neither commands nor the engine's own tools may read for a model.

use std::path::{Path, PathBuf};

/// Files and folders that are hidden, and those within them that are not.
///
/// The paths are looked up anew for every command and every file: a folder hides whatever comes to
/// lie in it later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenPaths {
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

impl HiddenPaths {
    /// Hides these.
    pub fn new(hidden: Vec<PathBuf>) -> Self {
        Self { hidden, shown: Vec::new() }
    }

    /// Shows these again, where a folder around them is hidden.
    #[must_use]
    pub fn except(mut self, shown: impl IntoIterator<Item = PathBuf>) -> Self {
        self.shown.extend(shown);
        self
    }

    /// Where they are now, with links resolved.
    pub(crate) fn resolve(&self) -> ResolvedHiddenPaths {
        let resolve = |paths: &[PathBuf]| paths.iter().map(|path| resolved(path)).collect();
        ResolvedHiddenPaths { hidden: resolve(&self.hidden), shown: resolve(&self.shown) }
    }
}

impl From<Vec<PathBuf>> for HiddenPaths {
    fn from(hidden: Vec<PathBuf>) -> Self {
        Self::new(hidden)
    }
}

/// The same with links resolved, as far as the paths are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedHiddenPaths {
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) shown: Vec<PathBuf>,
}

impl ResolvedHiddenPaths {
    /// Whether a path without links is hidden. The innermost entry around it counts; of two that
    /// are the same, the one that hides.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        let innermost = |paths: &[PathBuf]| {
            let around = paths.iter().filter(|entry| path.starts_with(entry));
            around.map(|entry| entry.components().count()).max()
        };
        innermost(&self.hidden)
            .is_some_and(|hidden| innermost(&self.shown).is_none_or(|shown| shown <= hidden))
    }
}

/// The path below the nearest folder that is there.
fn resolved(path: &Path) -> PathBuf {
    let above = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match above {
        Some((folder, real)) => match path.strip_prefix(folder) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_innermost_entry_counts_also_for_what_is_made_later() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let at = |path: &str| place.join(path);
        fs::create_dir_all(at("data/homes/own")).unwrap();
        symlink(at("data"), at("link")).unwrap();
        let hidden = HiddenPaths::new(vec![
            at("link"),
            at("data/homes/own/keys"),
            at("same"),
            at("later/key"),
        ]);
        let hidden = hidden.except([at("link/homes/own"), at("same"), place.clone()]);
        fs::create_dir_all(at("data/homes/other")).unwrap();
        fs::write(at("data/store-wal"), "").unwrap();
        let hides = |path: &str| hidden.resolve().hides(&at(path));
        for path in ["data", "data/store-wal", "data/homes/other/x", "data/homes/own/keys/k"] {
            assert!(hides(path), "{path}");
        }
        for path in ["data/homes/own", "data/homes/own/keyset", "database", "later"] {
            assert!(!hides(path), "{path}");
        }
        assert!(hides("same/x") && hides("later/key"));
        fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("later")).unwrap();
        assert!(hides("real/key"), "what is not there yet is looked up again");
    }
}
