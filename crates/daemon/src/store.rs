//! What the daemon keeps: tenants, threads, turns, their events, interrupts, workers, webhooks.
//!
//! One [`Store`] trait: every write is a [`Change`], and those of one `commit` happen together or
//! not at all. SQLite is the store of one machine; a shared database can take its place, and must
//! pass the same tests (`tests/it/store.rs`).

mod change;

mod probe;

mod record;

pub mod sqlite;

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use thiserror::Error;

pub use self::change::{Change, TurnEnd};
pub use self::probe::WriteProbe;
pub use self::record::{
    AnswerRow, Chunk, Delivery, DeliveryCounts, InterruptRow, InterruptState, ThreadRow, TokenRow,
    TurnKind, TurnRow, TurnState, UnfinishedTurn, WorkerRow,
};
use crate::clock::Millis;
use crate::tenant::Tenant;

/// Why the store failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Something with this name is there already.
    #[error("it is there already: {0}")]
    Conflict(String),
    /// The data folder was written by a newer version.
    #[error("the store has version {found}, and this program knows {known} at most")]
    Newer {
        /// The store's version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// What was stored cannot be read back.
    #[error("the store holds something that cannot be read: {0}")]
    Damaged(String),
    /// The key that secrets are sealed with cannot be used.
    #[error("the key of the store, `{path}`, cannot be used: {why}", path = path.display())]
    Key {
        /// Where it is, or should be.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing can be written or read now: the disk is full, or fails. It may be so no more later.
    #[error("the store cannot be written: {0}")]
    Unwritable(String),
    /// The database failed.
    #[error("the store failed: {0}")]
    Database(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same may be done later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unwritable(_))
    }

    /// The same error for another who waits.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Unwritable(why) => Self::Unwritable(why.clone()),
            Self::Conflict(why) => Self::Conflict(why.clone()),
            other => Self::Database(other.to_string()),
        }
    }
}

/// What a read or write of the store gives.
pub type Stored<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Deliveries that wait for one receiver at most, and given up ones kept of a tenant.
pub const DELIVERIES: u32 = 1000;

/// Which interrupts to list.
#[derive(Clone, Debug, Default)]
pub struct InterruptFilter {
    /// Of this tenant; of all when there is none.
    pub tenant: Option<String>,
    /// Of this turn.
    pub turn: Option<String>,
    /// Of this thread.
    pub thread: Option<String>,
    /// Only those that wait for an answer.
    pub open: bool,
    /// Only what comes after the one that was opened then under this token.
    pub after: Option<(Millis, String)>,
    /// At most so many; all when there is none.
    pub limit: Option<usize>,
}

/// A page of a list, newest first.
#[derive(Clone, Debug)]
pub struct Paging {
    /// Only what is older than the row of this name.
    pub before: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// A page of a list, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Following {
    /// Only what is younger than the row of this name.
    pub after: Option<String>,
    /// At most so many; all when there is none.
    pub limit: Option<usize>,
}

/// Keeps what must outlive the process. What a commit confirms survives its death.
pub trait Store: Send + Sync + 'static {
    /// Does all changes or none; tells of each whether it changed anything.
    ///
    /// A change with a condition (an answer to an interrupt that is not open any more) that does
    /// not hold changes nothing, tells so, and does not undo the others.
    fn commit(&self, changes: Vec<Change>) -> Stored<Vec<bool>>;

    /// All tenants, by name.
    fn tenants(&self) -> Stored<Vec<Tenant>>;

    /// A tenant.
    fn tenant(&self, id: &str) -> Stored<Option<Tenant>>;

    /// The token of this hash, revoked or not, and whose it is: read at once, for every request.
    fn token(&self, hash: &str) -> Stored<Option<(TokenRow, Tenant)>>;

    /// The tokens of a tenant, oldest first.
    fn tokens(&self, tenant: &str) -> Stored<Vec<TokenRow>>;

    /// A thread of a tenant.
    fn thread(&self, tenant: &str, id: &str) -> Stored<Option<ThreadRow>>;

    /// The thread of a tenant that has this session of the backend.
    fn thread_of_session(&self, tenant: &str, session: &str) -> Stored<Option<ThreadRow>>;

    /// Threads of a tenant.
    fn threads(&self, tenant: &str, archived: bool, page: Paging) -> Stored<Vec<ThreadRow>>;

    /// A turn of a tenant.
    fn turn(&self, tenant: &str, id: &str) -> Stored<Option<TurnRow>>;

    /// The turn of a tenant that was started under this idempotency key.
    fn turn_of_key(&self, tenant: &str, key: &str) -> Stored<Option<TurnRow>>;

    /// Turns that ended before this time and whose results are not gathered yet; so many at most.
    fn turns_without_result(&self, before: Millis, limit: usize) -> Stored<Vec<TurnRow>>;

    /// What a tenant's request for this operation was answered under this key.
    fn answer_of_key(&self, tenant: &str, operation: &str, key: &str) -> Stored<Option<AnswerRow>>;

    /// Turns of a thread.
    fn turns(&self, tenant: &str, thread: &str, page: Paging) -> Stored<Vec<TurnRow>>;

    /// Turns that wait or run, of all tenants, oldest first.
    fn unfinished(&self) -> Stored<Vec<UnfinishedTurn>>;

    /// The names of the uploads that turns which wait or run may still have to read.
    fn needed_uploads(&self) -> Stored<HashSet<String>>;

    /// Events of a turn after this number, oldest first, in chunks; about so many bytes of them.
    fn events(&self, turn: &str, after: u64, bytes: usize) -> Stored<Vec<Chunk>>;

    /// Bytes of a tenant's events.
    fn bytes(&self, tenant: &str) -> Stored<u64>;

    /// An interrupt.
    fn interrupt(&self, token: &str) -> Stored<Option<InterruptRow>>;

    /// Interrupts, oldest first.
    fn interrupts(&self, filter: InterruptFilter) -> Stored<Vec<InterruptRow>>;

    /// Workers that may be running.
    fn workers(&self) -> Stored<Vec<WorkerRow>>;

    /// Webhook deliveries that are due: of each receiver its oldest alone, of each tenant so many
    /// receivers at most; the first of all tenants before the second of any.
    fn due(&self, now: Millis, limit: usize, of_tenant: usize) -> Stored<Vec<Delivery>>;

    /// When, after this time, the next one is.
    fn next_due(&self, now: Millis) -> Stored<Option<Millis>>;

    /// A tenant's deliveries that wait or were given up.
    fn deliveries(&self, tenant: &str, page: Following) -> Stored<Vec<Delivery>>;

    /// How many deliveries there are, of all tenants.
    fn delivery_counts(&self) -> Stored<DeliveryCounts>;

    /// Waits until everything confirmed is written, and closes.
    fn close(&self) -> Stored<()>;
}
