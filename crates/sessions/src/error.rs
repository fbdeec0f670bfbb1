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
}

impl Error {
    /// Stable name for logs, HTTP bodies and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::NotFound { .. } => "not_found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Write(_) => "write",
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
            Self::Read { .. } | Self::Write(_) => None,
        }
    }
}

/// Says what could not be read.
pub(crate) fn read_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Read { path: path.to_owned(), source }
}
