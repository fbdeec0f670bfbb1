//! Why a thread does not do what it is asked.

/// One variant for each thing a caller would do differently; the words are the protocol's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The thread is closed.
    #[error("the thread is closed")]
    Closed,
    /// Nothing runs that could be steered.
    #[error("no active turn to steer")]
    NothingToSteer,
    /// Another turn runs than the caller thinks.
    #[error("expected active turn id `{expected}` but found `{found}`")]
    OtherTurn {
        /// What the caller said.
        expected: String,
        /// What runs.
        found: String,
    },
    /// The turn takes no input.
    #[error("cannot steer a {kind} turn")]
    NotSteerable {
        /// `compact` or `review`.
        kind: &'static str,
    },
    /// Nothing runs under that name.
    #[error("no active turn to interrupt")]
    NothingToInterrupt,
    /// A turn is in the way.
    #[error("a turn is running; interrupt it or wait for its end")]
    Busy,
    /// Too much input waits for the turn to take it.
    #[error("too much input waits for the running turn; wait for it to be taken")]
    TooMuchWaiting,
    /// Input that a turn cannot begin with.
    #[error("{0}")]
    BadInput(String),
    /// The session file cannot be written.
    #[error(transparent)]
    Journal(#[from] super::journal::JournalError),
}

impl ThreadError {
    /// Stable name for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::NothingToSteer => "nothing-to-steer",
            Self::OtherTurn { .. } => "other-turn",
            Self::NotSteerable { .. } => "not-steerable",
            Self::NothingToInterrupt => "nothing-to-interrupt",
            Self::Busy => "busy",
            Self::TooMuchWaiting => "too-much-waiting",
            Self::BadInput(_) => "bad-input",
            Self::Journal(_) => "journal",
        }
    }
}
