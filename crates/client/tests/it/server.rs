//! The far end of a connection over memory: bytes in, bytes out.

use bindery_client::peer::{Bounds, Inbound, Peer};
use bindery_client::transport;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

/// Generous: only a broken program reaches it.
pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(60);

/// What the peer writes, line by line, and where to write to it.
pub(crate) struct Server {
    pub(crate) lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) write: WriteHalf<DuplexStream>,
}

/// A peer and its server, with pipes of `pipe` bytes and lines of at most `limit`.
pub(crate) fn pair(
    bounds: Bounds,
    pipe: usize,
    limit: usize,
) -> (Peer, mpsc::Receiver<Inbound>, Server) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (read, write) = tokio::io::split(ours);
    let (peer, inbound) = Peer::start(transport::over(read, write, limit), bounds);
    let (read, write) = tokio::io::split(theirs);
    (peer, inbound, Server { lines: BufReader::new(read).lines(), write })
}
