//! Git in a repository that nobody trusts. All calls of git in the workspace are made here.
//!
//! A repository's configuration names programs: filters, monitors, hooks, viewers, helpers. Git
//! runs them for as little as `git status`, and an unpacked archive or a command can bring such a
//! configuration along. Overriding each setting by name is a race against the next one. So git is
//! not let near the configuration: it gets a folder of ours as its own, with nothing in it but the
//! head and a few settings, and the repository's objects, references and index by their paths.

mod config;

mod scratch;

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

pub(crate) use self::config::{ConfigReach, settings, shared_files};
use self::scratch::ScratchFolder;
use crate::exec::lead_session_blocking;
use crate::plain_file::PlainFileReader;

/// No file of git's that we read is longer, but for packed references.
pub(crate) const MOST_BYTES: u64 = 1 << 20;

/// Of our own environment git gets these: where its program and the user's list of ignored files
/// are.
const KEPT: [&str; 4] = ["HOME", "PATH", "USER", "XDG_CONFIG_HOME"];

/// Where a repository keeps what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The folder with `.git` in it.
    pub(crate) root: PathBuf,
    /// `.git`, or what it points to in a worktree or a submodule.
    pub(crate) folder: PathBuf,
    /// Where a worktree keeps what it shares with the others.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// The one around a folder.
    pub(crate) fn around(cwd: &Path) -> Option<Self> {
        let root = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
        let entry = root.join(".git");
        let folder = if entry.is_dir() {
            entry
        } else {
            root.join(text(&entry, MOST_BYTES)?.strip_prefix("gitdir:")?.trim())
        };
        let common = match text(&folder.join("commondir"), MOST_BYTES) {
            Some(common) => folder.join(common.trim()),
            None => folder.clone(),
        };
        Some(Self { root: root.to_owned(), folder, common })
    }
}

/// A repository as git is let see it. Calls of git must end before it is dropped.
#[derive(Debug)]
pub struct RepositoryView {
    repository: Repository,
    program: PathBuf,
    scratch: ScratchFolder,
}

impl RepositoryView {
    /// Of the repository around a folder; none where there is none, or no git.
    pub fn open(cwd: &Path) -> Option<Self> {
        // Git is told where everything is, so it must not depend on where it runs.
        let repository = Repository::around(&std::path::absolute(cwd).ok()?)?;
        let program = program(&repository.root)?;
        let scratch = ScratchFolder::new().ok()?;
        let view = Self { repository, program, scratch };
        view.fill().ok()?;
        Some(view)
    }

    fn fill(&self) -> io::Result<()> {
        let Repository { folder, common, .. } = &self.repository;
        let own = self.scratch.path();
        let head = text(&folder.join("HEAD"), MOST_BYTES).ok_or(io::ErrorKind::InvalidData)?;
        let config = text(&common.join("config"), MOST_BYTES).unwrap_or_default();
        fs::write(own.join("HEAD"), head)?;
        fs::write(own.join("config"), settings(&config))?;
        fs::create_dir(own.join("info"))?;
        if let Some(ignored) = text(&common.join("info/exclude"), MOST_BYTES) {
            fs::write(own.join("info/exclude"), ignored)?;
        }
        for name in ["refs", "packed-refs", "shallow"] {
            symlink(common.join(name), own.join(name))?;
        }
        Ok(())
    }

    /// Git with these arguments, in the repository's folder. It runs no program, asks nobody,
    /// fetches and writes nothing; how long it is waited for is the caller's affair.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let Repository { root, folder, common } = &self.repository;
        let mut command = Command::new(&self.program);
        command
            .args(["--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false"])
            .args(["-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"])
            .args(arguments)
            .current_dir(root)
            .env_clear()
            .envs(KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("PATH", absolute_path())
            .env("LC_ALL", "C")
            .env("GIT_DIR", self.scratch.path())
            .env("GIT_WORK_TREE", root)
            .env("GIT_INDEX_FILE", folder.join("index"))
            .env("GIT_OBJECT_DIRECTORY", common.join("objects"))
            .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
            .envs([("GIT_ATTR_NOSYSTEM", "1"), ("GIT_NO_REPLACE_OBJECTS", "1")])
            .envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")])
            .envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // Away from the terminal; and whoever waits for it can end its group.
        lead_session_blocking(&mut command);
        command
    }
}

/// A file's text, if it is a plain one that is not too long.
pub(crate) fn text(path: &Path, most: u64) -> Option<String> {
    PlainFileReader::default().read_text(path, most).ok()
}

/// The search path without entries that depend on where a program runs.
fn absolute_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders).unwrap_or_default()
}

/// Git itself, which the repository cannot bring along.
fn program(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let path = absolute_path();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join("git"));
    files.find(|file| {
        let real = file.canonicalize().unwrap_or_default();
        let runs = |about: fs::Metadata| about.is_file() && about.permissions().mode() & 0o111 != 0;
        file.metadata().is_ok_and(runs) && !real.starts_with(&root) && !file.starts_with(&root)
    })
}
