//! What can go wrong with session files, one variant per thing a caller does differently.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failure outside the content: content that is broken is shown, not refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No session has this name.
    #[error("no session `{name}`")]
    NotFound {
        /// What was asked for.
        name: String,
        /// The nearest there is, with its title.
        nearest: Option<String>,
    },
    /// Several sessions begin like this.
    #[error("`{name}` is the beginning of {count} sessions")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// How many fit.
        count: usize,
        /// Some of them.
        examples: Vec<String>,
    },
    /// The place to write to is gone.
    #[error("cannot write")]
    Write(#[from] std::io::Error),
    /// A session cannot be written: the disk is full, the folder read-only …
    #[error("cannot write `{}`", path.display())]
    Record {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process writes this thread.
    #[error("thread `{thread}` is being written by another process{}", by(*process))]
    Held {
        /// The thread.
        thread: String,
        /// Who, if that can be told.
        process: Option<u32>,
    },
    /// A session cannot be continued in its file, for what it is.
    #[error("`{}` cannot be continued: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A history that does not fit into memory in any useful way.
    #[error("the history of `{}` is over {limit} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// What is read at most.
        limit: usize,
    },
}

fn by(process: Option<u32>) -> String {
    process.map_or_else(String::new, |id| format!(" ({id})"))
}

impl Error {
    /// Stable name for logs, HTTP bodies and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::NotFound { .. } => "not_found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Write(_) => "write",
            Self::Record { .. } => "record",
            Self::Held { .. } => "held",
            Self::Unfit { .. } => "unfit",
            Self::TooLong { .. } => "too_long",
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { nearest: Some(nearest), .. } => {
                Some(format!("did you mean {nearest}?"))
            }
            Self::NotFound { .. } => Some("list them with `bindery sessions list`".to_owned()),
            Self::Ambiguous { examples, .. } => Some(format!("one of {}", examples.join(", "))),
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("name a file, a folder or a Codex home, or set `CODEX_HOME` to one".to_owned())
            }
            Self::Held { .. } => {
                Some("end it there, or fork the thread and go on in the fork".to_owned())
            }
            Self::Unfit { .. } => Some("fork it: the fork can be continued".to_owned()),
            Self::TooLong { .. } => Some("compact the thread where it was written".to_owned()),
            Self::Record { source, .. } => Some(record_hint(source).to_owned()),
            Self::Read { .. } | Self::Write(_) => None,
        }
    }
}

fn record_hint(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind as Kind;
    match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => {
            "make room on the disk; what was recorded before is safe"
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            "allow writing there, or name another home with `CODEX_HOME`"
        }
        Kind::FileTooLarge => "a line may have 64 MiB; leave out pictures or output",
        Kind::AlreadyExists => "a thread of this id exists; continue or fork it",
        _ => "what was recorded before is safe; try again",
    }
}

/// Says what could not be written.
pub(crate) fn record_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Record { path: path.to_owned(), source }
}

/// Says what could not be read.
pub(crate) fn read_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Read { path: path.to_owned(), source }
}
