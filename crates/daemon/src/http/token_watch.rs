//! Streams end when their token is revoked or loses the role that they need.
//!
//! A token may be revoked by another process (`bindery tenant revoke`), which tells nobody. So the
//! store is asked, once for each tenant with open streams, as long as there are any.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use crate::store::{Store, TokenRow};
use crate::tenant::Caller;

/// How often the store is asked.
const POLL: Duration = Duration::from_millis(200);

/// Open streams and the tokens they were opened with; clones share them.
#[derive(Clone)]
pub struct TokenWatch {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    next: u64,
    open: HashMap<u64, OpenStream>,
    /// Somebody asks the store.
    polled: bool,
}

struct OpenStream {
    tenant: String,
    token: String,
    access: Access,
    end: CancellationToken,
}

impl OpenStream {
    fn is_void(&self, tokens: &[TokenRow]) -> bool {
        let row = tokens.iter().find(|row| row.id == self.token && row.revoked.is_none());
        !row.is_some_and(|row| self.access.admits(&row.roles))
    }
}

/// A stream that is watched until this is dropped.
pub struct WatchedStream {
    number: u64,
    inner: Arc<Inner>,
    end: CancellationToken,
}

impl WatchedStream {
    /// Set when the stream is to end: its token is void, or the server stops.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for WatchedStream {
    fn drop(&mut self) {
        self.inner.streams().open.remove(&self.number);
    }
}

impl TokenWatch {
    /// Watches tokens of this store; all streams end with `stop`.
    pub fn new(store: Arc<dyn Store>, stop: CancellationToken) -> Self {
        Self { inner: Arc::new(Inner { store, stop, streams: Mutex::default() }) }
    }

    /// Watches a stream that was opened with the caller's token and needs this access.
    pub fn watch(&self, caller: &Caller, access: Access) -> WatchedStream {
        let end = self.inner.stop.child_token();
        let mut streams = self.inner.streams();
        let number = streams.next;
        streams.next += 1;
        let (tenant, token) = (caller.tenant.id.clone(), caller.token.clone());
        streams.open.insert(number, OpenStream { tenant, token, access, end: end.clone() });
        if !std::mem::replace(&mut streams.polled, true) {
            tokio::spawn(poll(self.inner.clone()));
        }
        drop(streams);
        WatchedStream { number, inner: self.inner.clone(), end }
    }
}

impl Inner {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tenants with open streams; none, and nobody polls any more, when there are none.
    fn tenants(&self) -> Option<BTreeSet<String>> {
        let mut streams = self.streams();
        if streams.open.is_empty() || self.stop.is_cancelled() {
            streams.polled = false;
            return None;
        }
        Some(streams.open.values().map(|stream| stream.tenant.clone()).collect())
    }
}

async fn poll(inner: Arc<Inner>) {
    while let Some(tenants) = inner.tenants() {
        for tenant in tenants {
            match inner.store.tokens(&tenant).await {
                Ok(tokens) => {
                    let streams = inner.streams();
                    let of_tenant = streams.open.values().filter(|one| one.tenant == tenant);
                    let void = of_tenant.filter(|stream| stream.is_void(&tokens));
                    void.for_each(|stream| stream.end.cancel());
                }
                // Nobody knows whether they are valid; the next look will tell.
                Err(err) => tracing::warn!(%err, "tokens cannot be looked up"),
            }
        }
        sleep(POLL).await;
    }
}
