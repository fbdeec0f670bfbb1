//! What a command may write, what stays read-only in it and what is hidden, as every mechanism
//! needs it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::exec::Command;

use super::SandboxError;
use super::hidden::{HiddenPaths, ResolvedHiddenPaths};
use super::placeholder::{Placeholder, Site};
use super::roots::WritableRoots;

/// The limits of one command.
pub(super) struct Plan {
    pub(super) roots: Vec<PathBuf>,
    /// Read-only although they lie in a root.
    pub(super) protect: Vec<PathBuf>,
    /// Links resolved; all of them exist.
    pub(super) hidden: Vec<PathBuf>,
    /// Seen, though not writable, in what is hidden.
    pub(super) shown: Vec<PathBuf>,
    pub(super) network: NetworkAccess,
    pub(super) tty: bool,
    /// Folders made so that nothing else can be made in their place.
    pub(super) placeholders: Vec<Placeholder>,
}

/// What of the network a command reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NetworkAccess {
    Closed,
    /// Other machines, through the proxy that takes the listener on this socket.
    Bridged(PathBuf),
    /// All that this process reaches, this machine among it.
    Host,
}

/// What becomes of one path in a file system made for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    /// Nothing of it is seen.
    Hidden,
    Writable,
    ReadOnly,
}

impl Plan {
    /// Of a command that may write nowhere.
    pub(super) fn nothing() -> Self {
        Self {
            roots: Vec::new(),
            protect: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            network: NetworkAccess::Closed,
            tty: false,
            placeholders: Vec::new(),
        }
    }

    /// `mounts` says that the mechanism protects by mounting over what it protects.
    pub(super) fn new(
        command: &Command,
        network: NetworkAccess,
        roots: &WritableRoots,
        hidden: &HiddenPaths,
        mounts: bool,
    ) -> Result<Self, SandboxError> {
        let mut plan = Self {
            roots: roots.roots().iter().map(|root| root.path.clone()).collect(),
            network,
            tty: command.tty,
            ..Self::nothing()
        };
        plan.hide(hidden);
        plan.refuse_hidden_folders(&command.cwd)?;
        for path in roots.protected() {
            if plan.is_hidden(&path) {
                continue;
            }
            match mounts {
                true => plan.protect_by_mount(path)?,
                false if path.exists() => plan.protect.push(path),
                false => {}
            }
        }
        Ok(plan)
    }

    /// Hides what is there. What lies in a hidden folder is gone with it: nothing can be mounted
    /// over it.
    fn hide(&mut self, paths: &HiddenPaths) {
        let mut paths = paths.resolve();
        for list in [&mut paths.hidden, &mut paths.shown] {
            list.retain(|path| path.exists());
            list.sort();
        }
        self.shown = paths.shown;
        for path in paths.hidden {
            if !self.is_hidden(&path) {
                self.hidden.push(path);
            }
        }
        // All else is seen anyway, and what a root holds must stay writable.
        let around = |shown: &Path, paths: &[PathBuf]| {
            let around = paths.iter().filter(|path| shown.starts_with(path) && *path != shown);
            around.map(|path| path.components().count()).max()
        };
        let (hidden, roots) = (&self.hidden, &self.roots);
        self.shown.retain(|shown| {
            let in_hidden = around(shown, hidden);
            in_hidden.is_some()
                && around(shown, roots) <= in_hidden
                && !hidden.contains(shown)
                && !roots.contains(shown)
        });
    }

    /// A folder that is hidden, or in a hidden one and no root, cannot be run in.
    fn refuse_hidden_folders(&self, cwd: &Path) -> Result<(), SandboxError> {
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let hidden_root = self.roots.iter().find(|root| self.hidden.contains(root));
        match hidden_root {
            Some(root) => Err(SandboxError::Hidden(root.clone())),
            None if self.is_hidden(&cwd) => Err(SandboxError::Hidden(cwd)),
            None => Ok(()),
        }
    }

    /// Whether it lies in a hidden folder, and in nothing within that folder that is seen.
    fn is_hidden(&self, path: &Path) -> bool {
        let seen = self.roots.iter().chain(&self.shown).cloned().collect();
        ResolvedHiddenPaths { hidden: self.hidden.clone(), shown: seen }.hides(path)
    }

    fn protect_by_mount(&mut self, path: PathBuf) -> Result<(), SandboxError> {
        match Placeholder::at(&path) {
            Site::Ours(placeholder) => self.placeholders.push(placeholder),
            Site::Taken if path.is_symlink() => return Err(SandboxError::ProtectedLink(path)),
            Site::Taken => {}
            Site::Unfit => return Ok(()),
        }
        self.protect.push(path);
        Ok(())
    }
}

/// Every path with its view, outer ones first: what is deeper lies over what holds it.
///
/// A mount cannot be moved, but the folder that holds it could be, and another be put in its place.
/// So every folder between a writable one and what is read-only or hidden in it is a mount, too.
pub(super) fn views(
    roots: &[PathBuf],
    read_only: impl IntoIterator<Item = PathBuf>,
    hidden: &[PathBuf],
) -> Vec<(PathBuf, View)> {
    let of = |paths: &[PathBuf], view| -> Vec<_> {
        paths.iter().map(|path| (path.clone(), view)).collect()
    };
    let mut views = of(roots, View::Writable);
    views.extend(read_only.into_iter().map(|path| (path, View::ReadOnly)));
    views.extend(of(hidden, View::Hidden));
    views.extend(holders(&views).into_iter().map(|path| (path, View::Writable)));
    views.sort();
    views
}

/// The folders that lie in a writable one and hold something that is not.
fn holders(views: &[(PathBuf, View)]) -> BTreeSet<PathBuf> {
    let view_at = |path: &Path| views.iter().find(|(at, _)| at == path).map(|(_, view)| *view);
    let is_in_writable = |path: &&Path| path.ancestors().find_map(view_at) == Some(View::Writable);
    let guarded = views.iter().filter(|(_, view)| *view != View::Writable);
    let above = guarded.flat_map(|(path, _)| path.ancestors().skip(1));
    let unseen = above.filter(|path| view_at(path).is_none());
    unseen.filter(is_in_writable).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_hidden_folder_is_not_hidden_again() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let at = |path: &str| place.join(path);
        for folder in ["data/workers/w", "data/work/keys"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let mut plan = Plan { roots: vec![at("data/work")], ..Plan::nothing() };
        let named = ["data/workers/w", "data", "data/work/keys", "data/none"].map(at).to_vec();
        let shown = ["data/workers/w", "data/work/keys/mine", "data/work", "data/none", "free"];
        for folder in ["data/workers/w/log", "data/work/keys/mine", "free"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        plan.hide(&HiddenPaths::new(named.clone()).except(shown.map(at)));
        // A root stays visible in a hidden folder, so what is hidden in the root is told apart.
        assert_eq!(plan.hidden, [at("data"), at("data/work/keys"), at("data/workers/w")]);
        assert_eq!(plan.shown, [at("data/work/keys/mine")]);
        plan.hidden.clear();
        plan.hide(&HiddenPaths::new(named));
        assert_eq!(plan.hidden, [at("data"), at("data/work/keys")]);
    }

    #[test]
    fn what_holds_a_guarded_place_cannot_be_moved() {
        let path = |path: &str| PathBuf::from(path);
        let read_only = ["/w/.git", "/w/.git/own", "/w/a/b/.git", "/x/y"].map(path);
        let views = views(&["/w".into()], read_only, &["/w/c/secret".into()]);
        let writable = views.into_iter().filter(|(_, view)| *view == View::Writable);
        let writable: Vec<_> = writable.map(|(path, _)| path).collect();
        assert_eq!(writable, ["/w", "/w/a", "/w/a/b", "/w/c"].map(path));
    }
}
