//! A folder with files, a patch, and what must come of it.
//!
//! `patch.txt` is given to the tool, `script.txt` to the shell; `input` are the files before,
//! `expected` those after. `error.txt` says why nothing is changed, with `{cwd}` for the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What is in a folder: files by path from it.
pub(crate) type Files = BTreeMap<PathBuf, Entry>;

/// A file's bytes, or where a link leads.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Bytes(Vec<u8>),
    Link(PathBuf),
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(out, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Link(to) => write!(out, "-> {}", to.display()),
        }
    }
}

pub(crate) struct Scenario {
    pub(crate) name: String,
    folder: PathBuf,
}

/// What the model gives to the engine.
pub(crate) enum Given {
    Patch(String),
    Script(String),
}

impl Scenario {
    /// All of them, by name.
    pub(crate) fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/patch");
        let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = folders
            .filter(|folder| folder.is_dir())
            .map(|folder| Self { name: name(&folder), folder })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(all.len() >= 60, "scenarios are missing: {}", all.len());
        all
    }

    pub(crate) fn given(&self) -> Given {
        match fs::read_to_string(self.folder.join("script.txt")) {
            Ok(script) => Given::Script(script),
            Err(_) => Given::Patch(fs::read_to_string(self.folder.join("patch.txt")).unwrap()),
        }
    }

    pub(crate) fn input(&self) -> Files {
        files(&self.folder.join("input"))
    }

    /// The files there must be in the end.
    pub(crate) fn expected(&self) -> Files {
        match self.error() {
            Some(_) => self.input(),
            None => files(&self.folder.join("expected")),
        }
    }

    pub(crate) fn error(&self) -> Option<String> {
        fs::read_to_string(self.folder.join("error.txt")).ok()
    }

    /// A folder of its own with the input in it, named without links.
    pub(crate) fn stage(&self) -> (TempDir, PathBuf) {
        let folder = TempDir::with_prefix("bindery-patch-").unwrap();
        let path = folder.path().canonicalize().unwrap();
        put(&path, &self.input());
        (folder, path)
    }

    /// Writes down what came out as what must come out.
    pub(crate) fn record(&self, error: Option<&str>, after: &Files) {
        let (expected, text) = (self.folder.join("expected"), self.folder.join("error.txt"));
        let _ = fs::remove_dir_all(&expected);
        let _ = fs::remove_file(&text);
        match error {
            Some(error) => fs::write(text, error).unwrap(),
            None => put(&expected, after),
        }
    }
}

/// The text with the folder's name taken out of it.
pub(crate) fn anywhere(text: &str, cwd: &Path) -> String {
    text.replace(cwd.to_str().unwrap(), "{cwd}")
}

/// Everything below a folder; nothing where there is none.
pub(crate) fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let entry = if metadata.is_symlink() {
                Entry::Link(path.read_link().unwrap())
            } else {
                Entry::Bytes(fs::read(&path).unwrap())
            };
            files.insert(path.strip_prefix(root).unwrap().to_owned(), entry);
        }
    }
    files
}

fn put(root: &Path, files: &Files) {
    for (path, entry) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Entry::Bytes(bytes) => fs::write(path, bytes).unwrap(),
            Entry::Link(to) => link(to, &path),
        }
    }
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) {
    std::os::unix::fs::symlink(to, at).unwrap();
}

#[cfg(windows)]
fn link(to: &Path, at: &Path) {
    std::os::windows::fs::symlink_file(to, at).unwrap();
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}
