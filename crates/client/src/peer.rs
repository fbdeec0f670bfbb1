//! Asks, answers and listens over one connection.
//!
//! Replies go to whoever asked; everything else comes out of one bounded channel, in the order it
//! was sent. That channel is the back-pressure: while it is full the server is not read, and the
//! replies behind it wait too. So whoever drains it must not wait for a request in between; if it
//! does, the request's deadline ends the standstill.

mod pending;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bindery_core::wire::rpc::{self, Head, Message, OVERLOADED, RequestId, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::transport::{Closer, End, Incoming, Transport};

use pending::{Failure, Pending};

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Inbound messages nobody has taken yet.
    pub inbound: usize,
    /// Requests without a reply; further ones wait, within their deadlines.
    pub pending: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { inbound: 256, pending: 256 }
    }
}

/// What the server says of its own accord.
#[derive(Clone, Debug)]
pub enum Inbound {
    /// It tells.
    Notification {
        /// What is told.
        method: String,
        /// JSON text; `null` where there were none.
        params: Box<RawValue>,
        /// The server's clock in milliseconds.
        emitted_at_ms: Option<i64>,
    },
    /// It asks, and waits for [`Peer::respond`] or [`Peer::respond_error`]; Codex waits forever.
    Request {
        /// To be given back with the answer.
        id: RequestId,
        /// What is asked.
        method: String,
        /// JSON text; `null` where there were none.
        params: Box<RawValue>,
    },
    /// It said something that cannot be read.
    Unreadable {
        /// What was wrong with it.
        why: String,
        /// Its beginning.
        head: String,
        /// Its whole length.
        bytes: u64,
        /// Set if it was a request all the same: somebody waits for an answer.
        id: Option<RequestId>,
    },
    /// Nothing more will come. Told exactly once, last.
    Closed(End),
}

/// One side of a connection; clones share it, and when the last is dropped the server is killed.
#[derive(Clone, Debug)]
pub struct Peer {
    shared: Arc<Shared>,
}

/// A side of a connection that does not keep it alive.
#[derive(Clone, Debug)]
pub struct WeakPeer {
    shared: Weak<Shared>,
}

impl WeakPeer {
    /// The peer, while somebody else holds it.
    pub fn upgrade(&self) -> Option<Peer> {
        self.shared.upgrade().map(|shared| Peer { shared })
    }
}

#[derive(Debug)]
struct Shared {
    outgoing: mpsc::Sender<Vec<u8>>,
    send_limit: usize,
    pending: Arc<Pending>,
    slots: Semaphore,
    next: AtomicI64,
    closer: Closer,
}

impl Peer {
    /// Takes over a connection.
    pub fn start(transport: Transport, bounds: Bounds) -> (Self, mpsc::Receiver<Inbound>) {
        let Transport { outgoing, incoming, send_limit, closer } = transport;
        // One place more, reserved from the start: the end is told whatever else is waiting.
        let (sender, inbound) = mpsc::channel(bounds.inbound.max(1) + 1);
        let pending = Arc::new(Pending::default());
        if let Ok(last) = sender.clone().try_reserve_owned() {
            let router = Router { pending: pending.clone(), sender, closing: closer.closing() };
            closer.track(router.run(incoming, last));
        }
        let slots = Semaphore::new(bounds.pending.max(1));
        let next = AtomicI64::new(1);
        let shared = Shared { outgoing, send_limit, pending, slots, next, closer };
        (Self { shared: Arc::new(shared) }, inbound)
    }

    /// Asks and waits for the answer, at most `within`; a server that is overloaded is asked again.
    ///
    /// Dropping the future withdraws the wait, not the question: a late answer is ignored.
    pub async fn request(
        &self,
        method: &str,
        params: impl Serialize,
        within: Duration,
    ) -> Result<Box<RawValue>, Error> {
        let deadline = after(within);
        for attempts in 1.. {
            let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
            let line = rpc::request(&number.into(), method, &params).map_err(encode(method))?;
            self.check_length(method, &line)?;
            let failure = match timeout_at(deadline, self.attempt(number, line)).await {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(failure)) => failure,
                Err(_) => return Err(Error::Timeout { what: method.to_owned(), after: within }),
            };
            if !matches!(&failure, Failure::Refused(error) if error.code == OVERLOADED) {
                return Err(failure.of(method));
            }
            let pause = pause(attempts);
            if Instant::now() + pause >= deadline {
                return Err(Error::Overloaded { method: method.to_owned(), attempts });
            }
            tracing::debug!(method, attempts, ?pause, "overloaded");
            sleep(pause).await;
        }
        Err(Error::Timeout { what: method.to_owned(), after: within })
    }

    /// Tells; waits only for room in the queue.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), Error> {
        let line = rpc::notification(method, &params).map_err(encode(method))?;
        self.check_length(method, &line)?;
        self.send(line).await
    }

    /// Answers a request of the server; refuses it where the answer is longer than it takes, since
    /// it would wait for another for ever.
    pub async fn respond(&self, id: &RequestId, result: impl Serialize) -> Result<(), Error> {
        let line = rpc::response(id, &result).map_err(encode("response"))?;
        if let Err(too_long) = self.check_length("response", &line) {
            let (code, message) = (INVALID_REQUEST, too_long.to_string());
            self.respond_error(id, &RpcError { code, message, data: None }).await?;
            return Err(too_long);
        }
        self.send(line).await
    }

    /// Refuses a request of the server.
    pub async fn respond_error(&self, id: &RequestId, error: &RpcError) -> Result<(), Error> {
        self.send(rpc::error(id, error).map_err(encode("response"))?).await
    }

    /// Ends the connection in order and waits until nothing is left of it.
    ///
    /// Requests still waiting fail with [`Error::Closed`]. Anybody may call it, at any time.
    pub async fn close(&self) -> End {
        self.shared.closer.close().await
    }

    /// Waits for the end without asking for it.
    pub async fn ended(&self) -> End {
        self.shared.closer.ended().await
    }

    /// Whether requests can only fail.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.pending.has_ended()
    }

    /// A handle that does not keep the connection alive.
    pub fn downgrade(&self) -> WeakPeer {
        WeakPeer { shared: Arc::downgrade(&self.shared) }
    }

    /// Process id of the server, if we started one.
    pub fn process(&self) -> Option<u32> {
        self.shared.closer.process()
    }

    /// How many replies came for which nobody waited: late, doubled or invented.
    pub fn stray_replies(&self) -> u64 {
        self.shared.pending.strays()
    }

    /// A message that is too long would cost the connection, with all turns on it.
    fn check_length(&self, what: &str, line: &[u8]) -> Result<(), Error> {
        let (bytes, limit) = (line.len(), self.shared.send_limit);
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::MessageTooLong { what: what.to_owned(), bytes, limit })
    }

    async fn attempt(&self, number: i64, line: Vec<u8>) -> Result<Box<RawValue>, Failure> {
        // The semaphore is never closed; without a permit there is only a bound less.
        let _slot = self.shared.slots.acquire().await.ok();
        let waiting = self.shared.pending.register(number)?;
        // If nobody takes the line, the connection is ending, and the wait is told how.
        let _ = self.shared.outgoing.send(line).await;
        waiting.outcome().await
    }

    async fn send(&self, line: Vec<u8>) -> Result<(), Error> {
        match self.shared.outgoing.send(line).await {
            Ok(()) => Ok(()),
            Err(_) => Err(closed(self.ended().await)),
        }
    }
}

/// Takes in what the server says and gives it to whom it concerns.
struct Router {
    pending: Arc<Pending>,
    sender: mpsc::Sender<Inbound>,
    closing: CancellationToken,
}

impl Router {
    async fn run(self, mut incoming: mpsc::Receiver<Incoming>, last: mpsc::OwnedPermit<Inbound>) {
        let end = loop {
            match incoming.recv().await {
                Some(Incoming::Line(line)) => self.line(&line).await,
                Some(Incoming::TooLong { head, bytes }) => self.too_long(&head, bytes).await,
                Some(Incoming::End(end)) => break end,
                None => break End::closed(),
            }
        };
        self.pending.end(&end);
        last.send(Inbound::Closed(end));
    }

    async fn line(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match rpc::decode(line) {
            Message::Response { id, result } => self.pending.settle(&id, Ok(result)),
            Message::Error { id, error } => self.pending.settle(&id, Err(Failure::Refused(error))),
            Message::Notification { method, params, emitted_at_ms } => {
                self.deliver(Inbound::Notification { method, params, emitted_at_ms }).await;
            }
            Message::Request { id, method, params } => {
                self.deliver(Inbound::Request { id, method, params }).await;
            }
            Message::Unknown { raw, bytes, why } => {
                self.deliver(Inbound::Unreadable { why, head: raw, bytes, id: None }).await;
            }
        }
    }

    async fn too_long(&self, head: &[u8], bytes: u64) {
        let id = match rpc::decode_head(head) {
            Head::Reply(id) => return self.pending.settle(&id, Err(Failure::TooLong { bytes })),
            Head::Request(id) => Some(id),
            Head::Other => None,
        };
        let why = format!("a line of {bytes} bytes, more than a line may have");
        let head = String::from_utf8_lossy(head).into_owned();
        self.deliver(Inbound::Unreadable { why, head, bytes, id }).await;
    }

    /// Waits for room, unless we are closing. A receiver that is gone wants nothing more.
    async fn deliver(&self, inbound: Inbound) {
        tokio::select! {
            biased;
            _ = self.sender.send(inbound) => {}
            () = self.closing.cancelled() => tracing::debug!("closing: a message was dropped"),
        }
    }
}

impl Drop for Router {
    /// Requests must not wait for a router that a dying runtime took away.
    fn drop(&mut self) {
        self.pending.end(&End::closed());
    }
}

fn closed(end: End) -> Error {
    Error::Closed { status: end.status, stderr: end.stderr }
}

fn encode(what: &str) -> impl FnOnce(serde_json::Error) -> Error {
    move |source| Error::Encode { what: what.to_owned(), source }
}

/// A wait too long for the clock is as good as a century.
fn after(within: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + within.min(CENTURY)
}

/// Doubles from 100 ms to 5 s, half of it by chance so that many clients do not come back at once.
fn pause(attempts: u32) -> Duration {
    let full = Duration::from_millis(100 << attempts.saturating_sub(1).min(6)).min(MOST);
    // The hasher's random keys are chance enough here and cost no dependency.
    let chance = RandomState::new().hash_one(attempts) % 1000;
    full / 2 + full.mul_f64(chance as f64 / 2000.0)
}

/// The code of a request that cannot be served.
const INVALID_REQUEST: i64 = -32600;

/// The longest pause between two attempts.
const MOST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
