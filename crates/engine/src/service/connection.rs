//! The seam between the service and whatever carries lines: stdio, sockets, memory.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::outbox::{Outbox, Outgoing, Room, outbox};

/// Lines read ahead of the service. Few: it sorts them at once, and its own queues are counted.
const AHEAD: usize = 8;

/// The longest line that is taken.
pub const LINE_LIMIT: usize = 32 << 20;

/// What a client sent.
#[derive(Debug)]
pub enum Incoming {
    /// A line, or a message, without its line feed.
    Line(Vec<u8>),
    /// One over [`LINE_LIMIT`].
    TooLong {
        /// Its beginning.
        head: Vec<u8>,
        /// Its whole length.
        bytes: u64,
    },
}

/// The service's end of a connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) incoming: mpsc::Receiver<Incoming>,
    pub(crate) outbox: Outbox,
    pub(crate) over: CancellationToken,
}

/// The transport's end of a connection.
///
/// The transport puts what it reads into `incoming`, writes what `outgoing` gives, and hangs up
/// when `outgoing` ends or `over` is cancelled. Dropping `incoming` says that the client is gone.
#[derive(Debug)]
pub struct Wire {
    /// What the client sends.
    pub incoming: mpsc::Sender<Incoming>,
    /// What the client is to get.
    pub outgoing: Outgoing,
    /// Set when either side is done.
    pub over: CancellationToken,
}

/// Both ends of a connection.
pub fn pair(room: Room) -> (Connection, Wire) {
    let over = CancellationToken::new();
    let (sender, incoming) = mpsc::channel(AHEAD);
    let (outbox, outgoing) = outbox(room, over.clone());
    (Connection { incoming, outbox, over: over.clone() }, Wire { incoming: sender, outgoing, over })
}
