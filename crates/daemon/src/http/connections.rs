//! Who is connected. A connection is either silent (no request of a known caller is under way) or
//! serves a tenant's request. Silent ones have a small share of their own, and the oldest of them
//! makes room for a new one; so whoever sends a request at once is answered, health checks too,
//! however many sockets others hold open. Requests are counted for each tenant.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::body_budget::BodyShare;
use crate::error::Error;

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Requests of known callers at a time.
    pub requests: usize,
    /// Silent connections.
    pub silent: usize,
    /// Connections of one address that have not shown a valid token yet.
    pub unknown_of_address: usize,
}

/// All connections; clones share them.
#[derive(Clone, Debug)]
pub struct Connections {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: ConnectionLimits,
    state: Mutex<State>,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Silent connections, those to be closed first in front.
    silent: BTreeMap<(Standing, u64), (IpAddr, CancellationToken)>,
    /// How many of them have not shown a token, by address.
    unknown: HashMap<IpAddr, usize>,
    /// Requests under way, by tenant.
    tenants: HashMap<String, usize>,
    requests: usize,
}

/// What is known of a silent connection. The smaller is closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It has sent no request.
    Unheard,
    /// It has sent a request without a valid token.
    Unknown,
    /// It has sent a request of a known caller, which is over.
    Known,
}

impl Connections {
    /// No connections yet.
    pub fn new(limits: ConnectionLimits) -> Self {
        let shared = Shared { limits, state: Mutex::default(), evicted: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a connection in; the oldest silent one is closed where there are too many.
    pub fn accept(&self, address: IpAddr) -> Arc<ClientConnection> {
        let (address, close) = (network(address), CancellationToken::new());
        let mut state = self.shared.state();
        let limits = &self.shared.limits;
        let of_address = state.unknown.get(&address).copied().unwrap_or(0);
        let evicted = if of_address >= limits.unknown_of_address.max(1) {
            state.evict(|silent| *silent == address)
        } else if state.silent.len() >= limits.silent.max(1) {
            state.evict(|_| true)
        } else {
            false
        };
        if evicted {
            self.shared.evicted.fetch_add(1, Ordering::Relaxed);
        }
        let key = state.rest(Standing::Unheard, address, close.clone());
        drop(state);
        let phase = Mutex::new(Phase::Silent(key));
        let (shared, body) = (self.shared.clone(), Mutex::default());
        Arc::new(ClientConnection { shared, address, close, phase, body })
    }

    /// Silent connections that were closed to make room.
    pub fn evicted(&self) -> u64 {
        self.shared.evicted.load(Ordering::Relaxed)
    }

    /// Connections and requests, as of now.
    pub fn count(&self) -> (usize, usize) {
        let state = self.shared.state();
        (state.silent.len(), state.requests)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn rest(
        &mut self,
        standing: Standing,
        address: IpAddr,
        close: CancellationToken,
    ) -> (Standing, u64) {
        self.next += 1;
        let key = (standing, self.next);
        self.silent.insert(key, (address, close));
        if standing != Standing::Known {
            *self.unknown.entry(address).or_default() += 1;
        }
        key
    }

    fn leave(&mut self, key: (Standing, u64)) -> Option<CancellationToken> {
        let (address, close) = self.silent.remove(&key)?;
        if key.0 != Standing::Known
            && let Some(count) = self.unknown.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.unknown.remove(&address);
            }
        }
        Some(close)
    }

    fn evict(&mut self, of: impl Fn(&IpAddr) -> bool) -> bool {
        let first = self.silent.iter().find(|(_, (address, _))| of(address));
        let close = first.map(|(key, _)| *key).and_then(|key| self.leave(key));
        close.map(|close| close.cancel()).is_some()
    }

    fn end(&mut self, tenant: &str) {
        self.requests -= 1;
        if let Some(count) = self.tenants.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                self.tenants.remove(tenant);
            }
        }
    }
}

/// A client's connection; it leaves the count when it is dropped.
#[derive(Debug)]
pub struct ClientConnection {
    shared: Arc<Shared>,
    address: IpAddr,
    close: CancellationToken,
    phase: Mutex<Phase>,
    /// What the body of the request that is being handled takes of memory.
    body: Mutex<Option<BodyShare>>,
}

#[derive(Debug)]
enum Phase {
    Silent((Standing, u64)),
    Serving(String),
}

impl ClientConnection {
    /// Whom wrong tokens are counted for: an address, or the network of one where a single client
    /// has many.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Set when the connection is to be closed.
    pub fn close(&self) -> &CancellationToken {
        &self.close
    }

    /// Whether it has sent no request yet.
    pub fn is_unheard(&self) -> bool {
        matches!(*self.phase(), Phase::Silent((Standing::Unheard, _)))
    }

    /// A request has come; whose it is, is not known yet.
    pub fn heard(&self) {
        let mut phase = self.phase();
        if let Phase::Silent(key @ (Standing::Unheard, _)) = *phase {
            let mut state = self.shared.state();
            if let Some(close) = state.leave(key) {
                *phase = Phase::Silent(state.rest(Standing::Unknown, self.address, close));
            }
        }
    }

    /// The request is this tenant's, which may have so many at a time.
    pub fn serve(&self, tenant: &str, limit: usize) -> Result<(), Error> {
        let mut phase = self.phase();
        let Phase::Silent(key) = *phase else { return Ok(()) };
        let mut state = self.shared.state();
        let requests = self.shared.limits.requests.max(1);
        if state.requests >= requests {
            return Err(Error::Full { what: "requests at a time", limit: requests as u64 });
        }
        let count = state.tenants.get(tenant).copied().unwrap_or(0);
        if count >= limit.max(1) {
            let (what, retry_after) = ("requests at a time", Some(Duration::from_secs(1)));
            return Err(Error::Limit { what, limit: limit as u64, retry_after });
        }
        // One that was closed a moment ago serves nobody.
        if state.leave(key).is_some() {
            *state.tenants.entry(tenant.to_owned()).or_default() += 1;
            state.requests += 1;
            *phase = Phase::Serving(tenant.to_owned());
        }
        Ok(())
    }

    /// The response is over.
    pub fn rest(&self) {
        let mut phase = self.phase();
        if let Phase::Serving(tenant) = &*phase {
            let mut state = self.shared.state();
            state.end(tenant);
            let key = state.rest(Standing::Known, self.address, self.close.clone());
            *phase = Phase::Silent(key);
        }
    }

    /// Keeps a share of memory until the request's response begins.
    pub fn hold_body(&self, share: BodyShare) {
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = Some(share);
    }

    /// The request is handled: nothing of its body is in memory any more.
    pub fn release_body(&self) {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let phase = self.phase.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.state();
        match phase {
            Phase::Silent(key) => drop(state.leave(*key)),
            Phase::Serving(tenant) => state.end(tenant),
        }
    }
}

/// A client with IPv6 has a whole network of addresses, usually of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits =
        ConnectionLimits { requests: 3, silent: 4, unknown_of_address: 3 };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn the_oldest_silent_connection_of_an_address_makes_room_for_its_next() {
        let all = Connections::new(LIMITS);
        let held: Vec<_> = (0..5).map(|_| all.accept(address(1))).collect();
        let closed: Vec<_> = held.iter().map(|one| one.close().is_cancelled()).collect();
        assert_eq!(closed, [true, true, false, false, false]);
        let other = all.accept(address(2));
        assert!(!other.close().is_cancelled() && !held[2].close().is_cancelled());
        let _more = all.accept(address(3));
        assert!(held[2].close().is_cancelled(), "the share of all is full");
        assert_eq!((all.evicted(), all.count()), (3, (4, 0)));
    }

    #[test]
    fn whoever_has_shown_a_token_is_closed_last() {
        let all = Connections::new(LIMITS);
        let known = all.accept(address(1));
        known.heard();
        known.serve("a", 9).unwrap();
        known.rest();
        let _flood: Vec<_> = (0..50).map(|number| all.accept(address(number))).collect();
        assert!(!known.close().is_cancelled());
    }

    #[test]
    fn requests_are_counted_for_each_tenant_and_for_all() {
        let all = Connections::new(LIMITS);
        let held: Vec<_> = (0..4).map(|number| all.accept(address(number))).collect();
        held[0].serve("a", 2).unwrap();
        held[1].serve("a", 2).unwrap();
        assert_eq!(held[2].serve("a", 2).unwrap_err().status(), 429);
        held[2].serve("b", 2).unwrap();
        assert_eq!(held[3].serve("b", 2).unwrap_err().status(), 503);
        held[0].rest();
        held[3].serve("b", 2).unwrap();
        drop(held);
        assert_eq!(all.count(), (0, 0));
        assert!(all.shared.state().tenants.is_empty() && all.shared.state().unknown.is_empty());
    }

    #[test]
    fn the_addresses_of_one_network_are_one() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), address(1));
    }
}
