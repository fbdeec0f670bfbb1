//! Places in writable folders that stay read-only: from them programs are run later, or rules and
//! secrets are read. Commands, patches and the text for the model all go by this list.

use std::collections::VecDeque;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::git::{self, MOST_BYTES, text};

/// Entries of a writable folder, whether they are there or could be made.
pub const PROTECTED: [&str; 5] = [".git", ".codex", ".agents", ".bindery", ".aws"];

/// Of these, the ones that are protected at any depth where they are there: a repository or a
/// project can lie within another.
const NESTED: [&str; 4] = [".git", ".codex", ".agents", ".bindery"];

/// Entries of the user's home, should it be writable as a whole.
#[rustfmt::skip]
const IN_HOME: [&str; 27] = [
    ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cache/bindery",
    ".cargo/bin", ".cargo/config.toml",
    ".cargo/env", ".config/autostart", ".config/environment.d", ".config/fish", ".config/git",
    ".config/systemd", ".docker", ".gitconfig", ".gnupg", ".kube", ".local/bin", ".netrc",
    ".npmrc", ".pam_environment", ".profile", ".ssh", ".zlogin", ".zprofile", ".zshenv", ".zshrc",
];

/// How deep nested repositories are looked for, and in how many folders at most. Deeper ones are
/// not protected from commands.
const MOST_DEPTH: usize = 4;
const MOST_FOLDERS: usize = 20_000;

/// Never looked through: it holds copies of published packages.
const SKIPPED: &str = "node_modules";

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

/// Repositories and projects below a folder, the nearest first.
fn nested(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = VecDeque::from([(root.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((folder, depth)) = open.pop_front() {
        seen += 1;
        if seen > MOST_FOLDERS {
            break;
        }
        if is_git_folder(&folder) {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if depth > 0 && NESTED.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                // A link cannot be protected itself; what it leads to is.
                let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let path = entry.path();
                found.extend(if link { path.canonicalize().ok() } else { Some(path) });
            } else if is_folder && depth < MOST_DEPTH && name != SKIPPED && name != ".git" {
                open.push_back((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// A repository without a working tree has git's own files in the folder itself.
fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// Where a `.git` leads: through a link, as a file of a worktree or of a submodule, to what
/// worktrees share, and to the hooks that the configuration names.
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
    for config in [config, folder.join("config.worktree")] {
        let named = text(&config, MOST_BYTES).into_iter().flat_map(|text| hooks_folders(&text));
        places.extend(named.map(|hooks| lexical(&worktree.join(hooks))));
    }
    places
}

/// The folder that a `.git` file names.
fn named_in(file: &Path, worktree: &Path) -> Option<PathBuf> {
    let text = text(file, MOST_BYTES)?;
    let named = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    worktree.join(named).canonicalize().ok()
}

/// Values of `core.hooksPath`.
fn hooks_folders(config: &str) -> Vec<PathBuf> {
    let values = git::values(config, "core", "hookspath").into_iter();
    let below_home = |value: &str| Some(home()?.join(value.strip_prefix("~/")?));
    values.map(|value| below_home(&value).unwrap_or_else(|| PathBuf::from(value))).collect()
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
