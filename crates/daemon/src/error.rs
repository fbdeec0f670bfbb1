//! What can go wrong in the daemon, one variant per thing a caller does differently.

use std::time::Duration;

use bindery_core::map::prompt_to_turn::PlanError;
use thiserror::Error;

use crate::store::StoreError;
use crate::tenant::{FOLDER_MOVED, Role};

/// The limit of bytes that are kept.
pub const DISK: &str = "bytes of disk";

/// When to come again to a server that has no room.
const FULL_RETRY: Duration = Duration::from_secs(2);

/// What was kept for a while is gone.
pub const FORGOTTEN: &str = "events_forgotten";

/// A thread whose turns are not all over.
pub const THREAD_BUSY: &str = "thread_busy";

/// An upload that turns still have to read.
pub const UPLOAD_NEEDED: &str = "upload_needed";

/// A tenant whose turns are not all over.
pub const TENANT_BUSY: &str = "tenant_busy";

/// A failure, told to clients as problem+json.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such thing, or it is another tenant's.
    #[error("no {what} `{id}`")]
    NotFound {
        /// `thread`, `turn`, `interrupt` …
        what: &'static str,
        /// Its name.
        id: String,
    },
    /// No token, or none that is known.
    #[error("a bearer token is needed")]
    Unauthorized,
    /// The token does not reach so far.
    #[error("{0}")]
    Forbidden(String),
    /// The token lacks a role.
    #[error("this token may not be used for it: it lacks the role `{0}`")]
    RoleMissing(Role),
    /// The request does not say what it must, or says it wrongly.
    #[error("{what}: {why}")]
    Invalid {
        /// The field or header.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key `{0}` was used for another request")]
    KeyReused(String),
    /// The state of things does not allow it.
    #[error("{message}")]
    Conflict {
        /// Stable name: `turn_over`, `thread_archived`, `nothing_waits` …
        code: &'static str,
        /// In words.
        message: String,
    },
    /// An interrupt cannot be answered so, or any more.
    #[error("{message}")]
    Interrupt {
        /// Stable name: `interrupt_answered`, `interrupt_over`, `interrupt_expired`,
        /// `answer_unfit`.
        code: &'static str,
        /// In words.
        message: String,
    },
    /// A limit of the tenant is reached.
    #[error("the tenant's limit of {limit} {what} is reached")]
    Limit {
        /// `turns in the queue`, `requests a minute`, `bytes of disk`.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// When to come again.
        retry_after: Option<Duration>,
    },
    /// The server has no room for anybody now.
    #[error("the server's limit of {limit} {what} is reached")]
    Full {
        /// `requests at a time`, `bytes of requests at a time`.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Too many wrong tokens came from the caller's address.
    #[error("too many wrong tokens came from this address")]
    WrongTokens {
        /// When to come again.
        retry_after: Duration,
    },
    /// The prompt, answer or tool is longer than the backend takes.
    #[error("{what} has {bytes} bytes, and the backend takes at most {limit} in one message")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// The daemon is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Codex, or the way to it, failed.
    #[error(transparent)]
    Client(#[from] bindery_client::error::Error),
    /// The prompt cannot be run.
    #[error(transparent)]
    Prompt(#[from] PlanError),
    /// The settings cannot be used.
    #[error("{what}: {why}")]
    Config {
        /// Which setting.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file or folder of ours cannot be used.
    #[error("cannot use `{path}`")]
    Io {
        /// Where.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something that should not happen.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// A field that is wrong.
    pub fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }

    /// Something that is not there.
    pub fn not_found(what: &'static str, id: impl Into<String>) -> Self {
        Self::NotFound { what, id: id.into() }
    }

    /// A file or folder that cannot be used.
    pub fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), source }
    }

    /// Stable name for logs, HTTP bodies and tests. Never reworded.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::RoleMissing(_) => "role_missing",
            Self::Invalid { .. } => "invalid",
            Self::KeyReused(_) => "idempotency_key_reused",
            Self::Conflict { code, .. } | Self::Interrupt { code, .. } => code,
            Self::Limit { what: DISK, .. } => "disk_full",
            Self::Limit { .. } => "limit_reached",
            Self::Full { .. } => "server_full",
            Self::WrongTokens { .. } => "too_many_wrong_tokens",
            Self::TooLong { .. } => "message_too_long",
            Self::Stopping => "stopping",
            Self::Store(err) if err.is_passing() => "store_unwritable",
            Self::Store(_) => "store",
            Self::Client(err) => err.code(),
            Self::Prompt(err) => err.code(),
            Self::Config { .. } => "config",
            Self::Io { .. } => "io",
            Self::Internal(_) => "internal",
        }
    }

    /// The HTTP status it is told with.
    pub fn status(&self) -> u16 {
        use bindery_client::error::Error as Client;
        match self {
            Self::NotFound { .. } => 404,
            Self::Unauthorized => 401,
            Self::Forbidden(_) | Self::RoleMissing(_) => 403,
            Self::Interrupt { code: "escalation_denied" | "approver_needed", .. } => 403,
            Self::Invalid { .. } | Self::Prompt(_) => 422,
            Self::Conflict { code: FORGOTTEN, .. } => 410,
            Self::KeyReused(_) | Self::Conflict { .. } => 409,
            Self::Interrupt { code: "answer_unfit", .. } => 422,
            Self::Interrupt { .. } => 409,
            Self::Limit { what: DISK, .. } => 507,
            Self::Limit { .. } | Self::WrongTokens { .. } => 429,
            Self::TooLong { .. } | Self::Client(Client::MessageTooLong { .. }) => 413,
            Self::Full { .. } | Self::Stopping => 503,
            Self::Store(err) if err.is_passing() => 503,
            Self::Client(err) => match err {
                Client::Prompt(_) | Client::InputRefused { .. } => 422,
                Client::Busy { .. } | Client::NothingWaits | Client::ThreadHeld { .. } => 409,
                Client::PoolBusy { .. } | Client::BackOff { .. } | Client::ShuttingDown => 503,
                _ => 502,
            },
            Self::Store(_) | Self::Config { .. } | Self::Io { .. } | Self::Internal(_) => 500,
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unauthorized => {
                "send `Authorization: Bearer …`; `bindery tenant token` makes one"
            }
            Self::RoleMissing(_) => "use another token; `bindery tenant token --role …` makes one",
            Self::Interrupt { code: "escalation_denied", .. } => {
                "answer `decline` or `cancel`; `escalation` in the tenant's policy says who may \
                 allow it"
            }
            Self::Interrupt { code: "approver_needed", .. } => {
                "answer with the token of somebody else that has the role `answer`"
            }
            Self::Interrupt { code: "interrupt_over", .. } => {
                "if its worker died, `POST …/ask-again` starts a turn that asks anew"
            }
            Self::Limit { what: DISK, .. } => "let old turns be forgotten, or raise the limit",
            Self::Limit { .. } => "wait for running turns, or raise the tenant's limits",
            Self::Full { .. } => "come again after the time in `Retry-After`",
            Self::WrongTokens { .. } => "a valid token is answered at once, from this address too",
            Self::TooLong { .. } => "send less at a time, or images as uploads",
            Self::NotFound { what: "tenant", .. } => "`bindery tenant list` names those there are",
            Self::NotFound { what: "token", .. } => {
                "it is void already or was never there; `bindery tenant list` names tokens"
            }
            Self::Conflict { code: FORGOTTEN, .. } => {
                "`store.retention_days` says how long they are; the session has the whole thread"
            }
            Self::Conflict { code: FOLDER_MOVED, .. } => {
                "put the folder back where it was, or make a thread with another `cwd`"
            }
            Self::Conflict { code: THREAD_BUSY | UPLOAD_NEEDED, .. } => {
                "wait for the turns to end, or stop them with `POST /v1/turns/{turn}/interrupt`"
            }
            Self::Conflict { code: TENANT_BUSY, .. } => {
                "wait for its turns, or stop the server and use `--force`"
            }
            Self::KeyReused(_) => "use another key for another request",
            Self::Client(err) => return err.hint(),
            Self::Prompt(err) => return err.hint(),
            Self::Store(StoreError::Unwritable(_)) => {
                "make room on the disk of the data folder; what waits is written then"
            }
            Self::Store(StoreError::Newer { .. }) => "use a newer bindery, or another data folder",
            Self::Store(StoreError::Key { .. }) => {
                "name the right file with `[store] key_file`; without it, tenants' secrets are lost"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// When to come again, in whole seconds.
    pub fn retry_after(&self) -> Option<u64> {
        use bindery_client::error::Error as Client;
        let wait = match self {
            Self::Limit { retry_after, .. } => *retry_after,
            Self::Full { .. } => Some(FULL_RETRY),
            Self::Store(err) if err.is_passing() => Some(FULL_RETRY),
            Self::WrongTokens { retry_after } => Some(*retry_after),
            Self::Client(
                Client::PoolBusy { retry_after, .. } | Client::BackOff { retry_after, .. },
            ) => Some(*retry_after),
            _ => None,
        };
        wait.map(|wait| wait.as_secs_f64().ceil().max(1.0) as u64)
    }
}
