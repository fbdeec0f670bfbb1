//! Places in writable folders that stay read-only: from them programs are run later, or rules and
//! secrets are read. Commands, patches and the text for the model all go by this list.

use std::path::{Component, Path, PathBuf};

use super::nested::{NESTED, is_git_folder, nested};
use crate::git::{self, MOST_BYTES, text};

/// Entries of a writable folder, whether they are there or could be made.
pub const PROTECTED: [&str; 5] = [".git", ".codex", ".agents", ".bindery", ".aws"];

/// Entries of the user's home, should it be writable as a whole.
#[rustfmt::skip]
const IN_HOME: [&str; 27] = [
    ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cache/bindery",
    ".cargo/bin", ".cargo/config.toml",
    ".cargo/env", ".config/autostart", ".config/environment.d", ".config/fish", ".config/git",
    ".config/systemd", ".docker", ".gitconfig", ".gnupg", ".kube", ".local/bin", ".netrc",
    ".npmrc", ".pam_environment", ".profile", ".ssh", ".zlogin", ".zprofile", ".zshenv", ".zshrc",
];

/// What is protected in a writable folder.
pub(super) fn in_root(root: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = PROTECTED.iter().map(|name| root.join(name)).collect();
    all.extend(nested(root));
    all.extend(in_home(root));
    let repositories = all.iter().filter(|path| path.ends_with(".git"));
    let led_to: Vec<PathBuf> = repositories.flat_map(|entry| behind(entry)).collect();
    all.extend(led_to);
    all
}

/// What of it is there, in a folder for temporary files. Its folders are not looked through.
pub(super) fn in_temporary_root(root: &Path) -> Vec<PathBuf> {
    let names = PROTECTED.iter().map(|name| root.join(name));
    names.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Whether a file in a writable folder is protected. Names are compared without case, as some file
/// systems do.
pub(super) fn is_protected(root: &Path, file: &Path) -> bool {
    let Ok(below) = file.strip_prefix(root) else { return true };
    let names = below.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase());
    let names: Vec<String> = names.collect();
    let first = names.first().is_some_and(|name| PROTECTED.contains(&name.as_str()));
    let deep = names.iter().any(|name| NESTED.contains(&name.as_str()));
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let repository = |folder: &Path| {
        is_git_folder(folder)
            || behind(&folder.join(".git")).iter().any(|place| file.starts_with(place))
    };
    first || deep || folders.into_iter().any(repository) || is_protected_in_home(root, file)
}

fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())?.canonicalize().ok()
}

/// Entries of the home that are there, if it lies in this folder.
fn in_home(root: &Path) -> Vec<PathBuf> {
    let Some(home) = home().filter(|home| home.starts_with(root)) else { return Vec::new() };
    let entries = IN_HOME.iter().chain(&PROTECTED).map(|name| home.join(name));
    entries.filter(|path| path.symlink_metadata().is_ok()).collect()
}

fn is_protected_in_home(root: &Path, file: &Path) -> bool {
    let Some(home) = home().filter(|home| home.starts_with(root)) else { return false };
    IN_HOME.iter().chain(&PROTECTED).any(|name| file.starts_with(home.join(name)))
}

/// Where a `.git` leads: through a link, as a file of a worktree or of a submodule, to what
/// worktrees share, to files that the configuration includes, and to the hooks that it names.
fn behind(entry: &Path) -> Vec<PathBuf> {
    let Some(worktree) = entry.parent() else { return Vec::new() };
    let Ok(real) = entry.canonicalize() else { return Vec::new() };
    let mut places = Vec::new();
    let folder = if real.is_file() { named_in(&real, worktree) } else { Some(real.clone()) };
    let Some(folder) = folder else { return Vec::new() };
    if real.is_file() || entry.is_symlink() {
        places.push(folder.clone());
        places.push(real);
    }
    let common = text(&folder.join("commondir"), MOST_BYTES)
        .and_then(|common| folder.join(common.trim()).canonicalize().ok());
    let config = common.as_deref().unwrap_or(&folder).join("config");
    places.extend(common);
    places.extend(configured([config, folder.join("config.worktree")], worktree));
    places
}

/// Files and folders that git's configuration names for a working tree: that of its repository, of
/// the user and of the system. All conditions count as met.
fn configured(files: [PathBuf; 2], worktree: &Path) -> Vec<PathBuf> {
    let home = home();
    let files = files.into_iter().chain(git::shared_files(home.as_deref()));
    let reach = git::ConfigReach::of(files, home.as_deref());
    let named = reach.hooks.into_iter().map(|hooks| worktree.join(hooks)).chain(reach.included);
    // Both where it is named and where that leads, should there be a link on the way.
    let places = named.map(|path| lexical(&path));
    places.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect()
}

/// The folder that a `.git` file names.
fn named_in(file: &Path, worktree: &Path) -> Option<PathBuf> {
    let text = text(file, MOST_BYTES)?;
    let named = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    worktree.join(named).canonicalize().ok()
}

/// A path without `.` and `..`. What it names may not be there, so links are not followed.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
