//! The folder of a worker: its socket, its log, and what it and its guard tell each other.

use std::path::{Path, PathBuf};

/// A unix socket's path has room for about so many bytes.
const SOCKET: usize = 100;

/// Where sockets lie whose own folder is too deep.
pub(super) fn far_sockets() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("bindery-{user}"))
}

/// Where Codex's own sockets are; those of its workers are links to it. Its commands do not see it.
pub(super) fn codex_sockets() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    PathBuf::from(format!("/tmp/codex-daemon-{user}"))
}

/// Paths of one worker.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(workers: &Path, id: &str) -> Self {
        Self { path: workers.join(id) }
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the worker says on its stderr.
    pub(super) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// There once the worker is to end.
    pub(super) fn stop(&self) -> PathBuf {
        self.path.join("stop")
    }

    /// There once it has ended; says how.
    pub(super) fn exit(&self) -> PathBuf {
        self.path.join("exit")
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> PathBuf {
        self.path.join("pid")
    }

    /// Where it listens: in the folder, or in one of its own where that is too deep.
    pub(super) fn socket(&self, id: &str) -> PathBuf {
        let near = self.path.join("s");
        if near.as_os_str().len() <= SOCKET {
            return near;
        }
        far_sockets().join(id)
    }

    /// How it ended, if it has.
    pub(super) fn obituary(&self) -> Option<String> {
        // An empty file is one that its guard is about to write.
        let status = std::fs::read_to_string(self.exit()).ok().filter(|text| !text.is_empty())?;
        // One that was killed did not say why.
        if status.starts_with("signal") || status.starts_with(super::guard::ENDED) {
            return Some(status.trim().to_owned());
        }
        let log = std::fs::read(self.log()).unwrap_or_default();
        let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(2048)..]).into_owned();
        match tail.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => Some(format!("{}; it last said: {}", status.trim(), last.trim())),
            None => Some(status.trim().to_owned()),
        }
    }

    /// Takes everything of it away.
    pub(super) fn remove(&self, socket: &Path) {
        // What is not there need not be taken away.
        let _ = std::fs::remove_file(socket);
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
