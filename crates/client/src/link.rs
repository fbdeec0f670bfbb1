//! The connection behind an app-server, and the search for a new one when it is lost.
//!
//! A server that we started ends with its pipes. One that was dialled lives on, and so do its
//! turns, so it is dialled again: requests that were under way fail, since nobody knows whether
//! they were heard; new ones wait; turns are told, and catch up by themselves.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bindery_core::ids::ThreadId;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::app_server::{ConnectOptions, greet};
use crate::error::Error;
use crate::peer::{Bounds, Inbound, Peer, WeakPeer};
use crate::switchboard::{Event, Switchboard};
use crate::transport::End;
use crate::transport::dial::{self, Dial};

/// The connection in use.
#[derive(Debug)]
pub(crate) struct Link {
    current: watch::Sender<Current>,
    /// Set when nobody wants a connection any more.
    stop: CancellationToken,
    /// Whether another is looked for when it is lost.
    redials: bool,
}

#[derive(Clone, Debug)]
struct Current {
    /// A dead one, while another is looked for.
    peer: Peer,
    /// There will be no other.
    gone: bool,
    /// The first connection has heard of every thread that was opened.
    first: bool,
    /// Threads whose events come over this connection.
    attached: Arc<Mutex<HashSet<ThreadId>>>,
}

impl Link {
    pub(crate) fn new(peer: Peer, redials: bool) -> Self {
        let current = Current { peer, gone: false, first: true, attached: Arc::default() };
        Self { current: watch::Sender::new(current), stop: CancellationToken::new(), redials }
    }

    /// The connection; a dead one while another is looked for.
    pub(crate) fn peer(&self) -> Peer {
        self.current.borrow().peer.clone()
    }

    /// The connection, as soon as there is one. A dead one if there will be none.
    pub(crate) async fn ready(&self) -> Peer {
        if self.redials {
            let mut watch = self.current.subscribe();
            let settled = |current: &Current| current.gone || !current.peer.has_ended();
            tokio::select! {
                _ = watch.wait_for(settled) => {}
                () = self.stop.cancelled() => {}
            }
        }
        self.peer()
    }

    /// Events of this thread come over the connection in use.
    pub(crate) fn attached(&self, thread: &ThreadId) {
        let set = self.current.borrow().attached.clone();
        set.lock().unwrap_or_else(PoisonError::into_inner).insert(thread.clone());
    }

    /// Whether they do.
    pub(crate) fn is_attached(&self, thread: &ThreadId) -> bool {
        let current = self.current.borrow();
        let set = current.attached.lock().unwrap_or_else(PoisonError::into_inner);
        current.first || set.contains(thread)
    }

    /// Ends the connection for good.
    pub(crate) async fn close(&self) -> End {
        self.stop.cancel();
        self.peer().close().await
    }

    fn found(&self, peer: Peer) {
        let attached = Arc::default();
        self.current.send_replace(Current { peer, gone: false, first: false, attached });
    }

    fn give_up(&self) {
        self.current.send_modify(|current| current.gone = true);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Hands out what comes over the connection, and finds another when it is lost.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Weak: the last handle, not this task, decides how long the connection lives.
    link: Weak<Link>,
    stop: CancellationToken,
    board: Arc<Switchboard>,
    redial: Option<Redial>,
}

/// How to reach the server again.
#[derive(Clone, Debug)]
pub(crate) struct Redial {
    pub(crate) dial: Dial,
    pub(crate) options: ConnectOptions,
}

/// A connection that lives this long is not part of the trouble before it.
const HEALTHY: Duration = Duration::from_secs(1);

/// Pauses between attempts double up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A server that was reached is there, so the next pause is none of the longest.
const REACHED: u32 = 4;

/// Since when there has been no connection worth the name.
struct Outage {
    since: Instant,
    attempts: u32,
}

impl Keeper {
    pub(crate) fn new(link: &Arc<Link>, board: &Arc<Switchboard>, redial: Option<Redial>) -> Self {
        let (stop, link) = (link.stop.clone(), Arc::downgrade(link));
        Self { link, stop, board: board.clone(), redial }
    }

    /// Runs until there is no connection and none to be had.
    pub(crate) async fn run(self, peer: WeakPeer, inbound: mpsc::Receiver<Inbound>) {
        let (mut peer, mut inbound) = (peer, inbound);
        let mut outage = Outage { since: Instant::now(), attempts: 0 };
        loop {
            let began = Instant::now();
            let mut end = self.board.run(&peer, inbound).await;
            if outage.attempts == 0 || began.elapsed() > HEALTHY {
                outage = Outage { since: Instant::now(), attempts: 0 };
            }
            match self.again(&mut end, &mut outage).await {
                Some(found) => (peer, inbound) = found,
                None => return self.give_up(end).await,
            }
        }
    }

    async fn again(
        &self,
        end: &mut End,
        outage: &mut Outage,
    ) -> Option<(WeakPeer, mpsc::Receiver<Inbound>)> {
        let redial = self.redial.as_ref().filter(|_| !self.stop.is_cancelled())?;
        tracing::info!(address = %redial.dial.address, status = end.status, "connection lost");
        self.board.forget_newest();
        self.board.tell_everybody(|| Event::Lost).await;
        let found = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            found = redial.search(outage) => found,
        };
        let (peer, inbound) = found
            .map_err(|err| end.status.push_str(&format!("; cannot reach it again: {err}")))
            .ok()?;
        let weak = peer.downgrade();
        self.link.upgrade()?.found(peer);
        self.board.tell_everybody(|| Event::Regained).await;
        Some((weak, inbound))
    }

    async fn give_up(&self, end: End) {
        if let Some(link) = self.link.upgrade() {
            link.give_up();
        }
        self.board.end(&end).await;
    }
}

impl Redial {
    /// Tries until the patience for this outage is at its end.
    async fn search(&self, outage: &mut Outage) -> Result<(Peer, mpsc::Receiver<Inbound>), Error> {
        let late = || Error::Timeout { what: "connect".to_owned(), after: self.options.reconnect };
        let mut last = None;
        loop {
            sleep(pause(outage.attempts)).await;
            outage.attempts += 1;
            let left = self.options.reconnect.saturating_sub(outage.since.elapsed());
            // An attempt that fails at once would never notice that there is no time for it.
            if left.is_zero() {
                return Err(last.unwrap_or_else(late));
            }
            let err = match timeout(left, self.attempt()).await {
                Ok(Ok(found)) => {
                    outage.attempts = outage.attempts.min(REACHED);
                    return Ok(found);
                }
                Ok(Err(err)) => err,
                Err(_) => return Err(last.unwrap_or_else(late)),
            };
            tracing::debug!(%err, attempts = outage.attempts, "not yet");
            if is_final(&err) {
                return Err(err);
            }
            last = Some(err);
        }
    }

    async fn attempt(&self) -> Result<(Peer, mpsc::Receiver<Inbound>), Error> {
        let transport = dial::connect(&self.dial).await?;
        let (peer, inbound) = Peer::start(transport, Bounds::default());
        greet(&peer, &self.options).await?;
        Ok((peer, inbound))
    }
}

/// A server that is another one now will not change back.
fn is_final(err: &Error) -> bool {
    matches!(err, Error::Unauthorized { .. } | Error::Address { .. } | Error::TooOld { .. })
}

/// None before the first attempt, then from 50 ms on.
fn pause(attempts: u32) -> Duration {
    match attempts {
        0 => Duration::ZERO,
        more => Duration::from_millis(25 << more.min(10)).min(LONGEST_PAUSE),
    }
}
