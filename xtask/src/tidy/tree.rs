//! The tracked files of a repository, with their text.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Files by path from the root, with `/` on every platform, in order.
#[derive(Debug, Default)]
pub struct Tree {
    files: Vec<Source>,
}

/// One file.
#[derive(Debug)]
pub struct Source {
    /// From the root.
    pub path: String,
    /// Empty for what is not UTF-8, and for fixtures: they are others' words, not ours.
    pub text: String,
}

impl Source {
    /// True for Rust that we wrote.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && !is_fixture(&self.path)
    }
}

impl Tree {
    /// Reads what git tracks, and what it would track: new files count before they are added.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let output = git(root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .context("cannot start `git`; the house rules look at tracked files")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`git ls-files` failed: {errors}");
        let paths = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        // A file deleted but not yet committed is still listed.
        let paths = paths.split_terminator('\0').filter(|path| root.join(path).is_file());
        let files = paths.map(|path| (path.to_owned(), text(root, path)));
        Ok(Self::new(files))
    }

    /// A tree out of paths and texts.
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut files: Vec<_> =
            files.into_iter().map(|(path, text)| Source { path, text }).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// A tree for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())))
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The Rust that we wrote.
    pub fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files().filter(|source| source.is_rust())
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files().find(|source| source.path == path).map(|source| source.text.as_str())
    }

    /// True for a file, and for a folder with a file in it.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files().any(|source| {
            source
                .path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root);
    // Git sets these for hooks, and they would point it at another folder than `root`.
    for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command
}

fn text(root: &Path, path: &str) -> String {
    if is_fixture(path) {
        return String::new();
    }
    let bytes = std::fs::read(root.join(path)).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

fn is_fixture(path: &str) -> bool {
    path.split('/').any(|folder| folder == "fixtures")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tracked_and_new_files_but_not_ignored_or_deleted_ones() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = |arguments: &[&str]| {
            assert!(git(root).args(arguments).status().unwrap().success());
        };
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        };
        git(&["init", "--quiet"]);
        write(".gitignore", "/target\n");
        write("src/kept.rs", "//! Kept.\n");
        write("src/deleted.rs", "");
        git(&["add", "."]);
        std::fs::remove_file(root.join("src/deleted.rs")).unwrap();
        write("src/new.rs", "//! New.\n");
        write("target/built.rs", "");
        write("fixtures/theirs.rs", "anything");

        let tree = Tree::read(root).unwrap();
        let paths: Vec<_> = tree.files().map(|source| source.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "fixtures/theirs.rs", "src/kept.rs", "src/new.rs"]);
        assert_eq!(tree.text("src/kept.rs"), Some("//! Kept.\n"));
        assert_eq!(tree.text("fixtures/theirs.rs"), Some(""));
        assert_eq!(tree.rust().count(), 2);
    }

    #[test]
    fn has_files_and_folders_by_their_whole_name() {
        let tree = Tree::of(&[("crates/core/src/lib.rs", "")]);
        for path in ["crates", "crates/core", "crates/core/", "crates/core/src/lib.rs"] {
            assert!(tree.has(path), "{path}");
        }
        for path in ["crates/cor", "core", "crates/core/src/lib"] {
            assert!(!tree.has(path), "{path}");
        }
    }
}
