//! The store of one machine: a SQLite file in the data folder.
//!
//! One thread writes; it takes all changes that wait into one transaction, so that a crowd of turns
//! costs few commits. Readers have connections of their own, which a writer does not hold up (WAL).

mod schema;

mod write;

mod read;

mod row;

mod sealing;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::write::Job;
use super::{
    AnswerRow, Change, Chunk, Delivery, DeliveryCounts, Following, InterruptFilter, InterruptRow,
    Paging, Store, StoreError, Stored, ThreadRow, TokenRow, TurnRow, UnfinishedTurn, WorkerRow,
};
use crate::clock::Millis;
use crate::private;
use crate::seal::StoreKey;
use crate::tenant::Tenant;

/// Commits that may wait for the writer.
const QUEUE: usize = 1024;

/// Connections for readers.
const READERS: usize = 4;

/// How long another process (`bindery tenant`) may hold the file.
const BUSY: Duration = Duration::from_secs(10);

/// What a confirmed commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// The death of the process; not that of the machine, which may take the last moments with it.
    #[default]
    Process,
    /// A power failure; every commit waits for the disk.
    Machine,
}

/// The SQLite store; clones share it.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    sync: Sync,
    key: Arc<StoreKey>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Those that nobody uses just now; a daemon that rests needs none.
    readers: Mutex<Vec<Connection>>,
    /// One permit for each reader that there may be.
    free: Arc<Semaphore>,
}

impl Sqlite {
    /// Opens the store, makes it if it is not there, and brings it up to date.
    ///
    /// Secrets in it are sealed with the key in `key_file`, which is made if there is none and
    /// nothing is sealed yet.
    pub fn open(path: &Path, sync: Sync, key_file: &Path) -> Result<Self, StoreError> {
        // The files beside it get the rights that it has.
        private::make_file(path).map_err(|err| StoreError::Database(err.to_string()))?;
        let mut writer = connect(path, sync)?;
        schema::migrate(&mut writer)?;
        let key = Arc::new(sealing::key(&mut writer, key_file)?);
        let sealer = key.clone();
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("store".to_owned());
        let failed = |err: std::io::Error| StoreError::Database(err.to_string());
        let writer = thread.spawn(move || write::run(writer, queue, &sealer)).map_err(failed)?;
        let inner = Inner {
            path: path.to_owned(),
            sync,
            key,
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers: Mutex::default(),
            free: Arc::new(Semaphore::new(READERS)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Stored<T> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let free = inner.free.clone();
            let permit = free.acquire_owned().await.map_err(|_| StoreError::Closed)?;
            let reading = tokio::task::spawn_blocking(move || {
                // Held while it reads, even if nobody waits for it any more.
                let _permit = permit;
                inner.reader(read)
            });
            reading.await.map_err(|err| StoreError::Database(err.to_string()))?
        })
    }
}

impl Inner {
    /// Reads with a connection that is free, or a new one.
    fn reader<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let free = lock(&self.readers).pop();
        let connection = free.map_or_else(|| connect(&self.path, self.sync), Ok)?;
        let outcome = read(&connection);
        lock(&self.readers).push(connection);
        outcome
    }
}

impl Store for Sqlite {
    fn commit(&self, changes: Vec<Change>) -> Stored<Vec<bool>> {
        let jobs = lock(&self.inner.jobs).clone();
        Box::pin(async move {
            let (reply, outcome) = oneshot::channel();
            let jobs = jobs.ok_or(StoreError::Closed)?;
            jobs.send(Job { changes, reply }).await.map_err(|_| StoreError::Closed)?;
            outcome.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn tenants(&self) -> Stored<Vec<Tenant>> {
        let key = self.inner.key.clone();
        self.read(move |db| read::tenants(db, &key))
    }

    fn tenant(&self, id: &str) -> Stored<Option<Tenant>> {
        let (id, key) = (id.to_owned(), self.inner.key.clone());
        self.read(move |db| read::tenant(db, &id, &key))
    }

    fn token(&self, hash: &str) -> Stored<Option<(TokenRow, Tenant)>> {
        let (hash, key) = (hash.to_owned(), self.inner.key.clone());
        self.read(move |db| read::token(db, &hash, &key))
    }

    fn tokens(&self, tenant: &str) -> Stored<Vec<TokenRow>> {
        let tenant = tenant.to_owned();
        self.read(move |db| read::tokens(db, &tenant))
    }

    fn thread(&self, tenant: &str, id: &str) -> Stored<Option<ThreadRow>> {
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.read(move |db| read::thread(db, &tenant, &id))
    }

    fn thread_of_session(&self, tenant: &str, session: &str) -> Stored<Option<ThreadRow>> {
        let (tenant, session) = (tenant.to_owned(), session.to_owned());
        self.read(move |db| read::thread_of_session(db, &tenant, &session))
    }

    fn threads(&self, tenant: &str, archived: bool, page: Paging) -> Stored<Vec<ThreadRow>> {
        let tenant = tenant.to_owned();
        self.read(move |db| read::threads(db, &tenant, archived, &page))
    }

    fn turn(&self, tenant: &str, id: &str) -> Stored<Option<TurnRow>> {
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.read(move |db| read::turn(db, &tenant, &id))
    }

    fn turn_of_key(&self, tenant: &str, key: &str) -> Stored<Option<TurnRow>> {
        let (tenant, key) = (tenant.to_owned(), key.to_owned());
        self.read(move |db| read::turn_of_key(db, &tenant, &key))
    }

    fn turns_without_result(&self, before: Millis, limit: usize) -> Stored<Vec<TurnRow>> {
        self.read(move |db| read::turns_without_result(db, before, limit))
    }

    fn answer_of_key(&self, tenant: &str, operation: &str, key: &str) -> Stored<Option<AnswerRow>> {
        let [tenant, operation, key] = [tenant, operation, key].map(str::to_owned);
        self.read(move |db| read::answer_of_key(db, &tenant, &operation, &key))
    }

    fn turns(&self, tenant: &str, thread: &str, page: Paging) -> Stored<Vec<TurnRow>> {
        let (tenant, thread) = (tenant.to_owned(), thread.to_owned());
        self.read(move |db| read::turns(db, &tenant, &thread, &page))
    }

    fn unfinished(&self) -> Stored<Vec<UnfinishedTurn>> {
        self.read(read::unfinished)
    }

    fn needed_uploads(&self) -> Stored<HashSet<String>> {
        self.read(read::needed_uploads)
    }

    fn events(&self, turn: &str, after: u64, bytes: usize) -> Stored<Vec<Chunk>> {
        let turn = turn.to_owned();
        self.read(move |db| read::events(db, &turn, after, bytes))
    }

    fn bytes(&self, tenant: &str) -> Stored<u64> {
        let tenant = tenant.to_owned();
        self.read(move |db| read::bytes(db, &tenant))
    }

    fn interrupt(&self, token: &str) -> Stored<Option<InterruptRow>> {
        let token = token.to_owned();
        self.read(move |db| read::interrupt(db, &token))
    }

    fn interrupts(&self, filter: InterruptFilter) -> Stored<Vec<InterruptRow>> {
        self.read(move |db| read::interrupts(db, &filter))
    }

    fn workers(&self) -> Stored<Vec<WorkerRow>> {
        let key = self.inner.key.clone();
        self.read(move |db| read::workers(db, &key))
    }

    fn due(&self, now: Millis, limit: usize, of_tenant: usize) -> Stored<Vec<Delivery>> {
        self.read(move |db| read::due(db, now, limit, of_tenant))
    }

    fn next_due(&self, now: Millis) -> Stored<Option<Millis>> {
        self.read(move |db| read::next_due(db, now))
    }

    fn deliveries(&self, tenant: &str, page: Following) -> Stored<Vec<Delivery>> {
        let tenant = tenant.to_owned();
        self.read(move |db| read::deliveries(db, &tenant, &page))
    }

    fn delivery_counts(&self) -> Stored<DeliveryCounts> {
        self.read(read::delivery_counts)
    }

    fn close(&self) -> Stored<()> {
        let inner = self.inner.clone();
        Box::pin(async move {
            drop(lock(&inner.jobs).take());
            let writer = lock(&inner.writer).take();
            let joined = tokio::task::spawn_blocking(move || writer.map(JoinHandle::join));
            joined.await.map(drop).map_err(|err| StoreError::Database(err.to_string()))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, sync: Sync) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let sync = match sync {
        Sync::Process => "NORMAL",
        Sync::Machine => "FULL",
    };
    connection.pragma_update(None, "synchronous", sync)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // A reader needs little; the default of two megabytes each would be most of an idle daemon.
    connection.pragma_update(None, "cache_size", -512)?;
    Ok(connection)
}

/// Whether it is for want of something outside, which may come back.
fn is_passing(code: rusqlite::ErrorCode) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, ReadOnly, SystemIoFailure,
    };
    matches!(
        code,
        CannotOpen
            | DatabaseBusy
            | DatabaseLocked
            | DiskFull
            | OutOfMemory
            | ReadOnly
            | SystemIoFailure
    )
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        match &err {
            rusqlite::Error::SqliteFailure(code, message)
                if code.code == rusqlite::ErrorCode::ConstraintViolation =>
            {
                Self::Conflict(message.clone().unwrap_or_else(|| err.to_string()))
            }
            rusqlite::Error::SqliteFailure(code, _) if is_passing(code.code) => {
                Self::Unwritable(err.to_string())
            }
            rusqlite::Error::FromSqlConversionFailure(..) => Self::Damaged(err.to_string()),
            _ => Self::Database(err.to_string()),
        }
    }
}
