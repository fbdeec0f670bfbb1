//! Lines to and from an app-server, whatever carries them.
//!
//! A [`Transport`] is a pair of bounded channels and a [`Closer`]. The peer knows nothing else, so
//! a pipe, a socket and memory are the same to it: [`stdio`] starts a server, [`dial`] reaches one
//! that runs, [`memory`] is both ends of a connection.

pub mod stdio;

pub mod memory;

pub mod address;

pub mod dial;

mod ws;

#[cfg(unix)]
pub mod unix;

mod family;

pub mod group;

mod pump;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use group::Group;
use pump::Signals;

/// The longest line kept whole, unless told otherwise: Codex sends whole transcripts as one line.
pub const LINE_LIMIT: usize = 32 * 1024 * 1024;

/// The longest message that Codex 0.166 and 0.169 take in one WebSocket frame; they answer a longer
/// one by closing the connection, with all turns on it.
pub const FRAME_LIMIT: usize = 16 * 1024 * 1024;

/// Lines that may wait in either direction before their sender has to.
pub const QUEUE: usize = 64;

/// A connection to an app-server.
#[derive(Debug)]
pub struct Transport {
    /// Lines to it, without line feeds; waits while it does not read.
    pub outgoing: mpsc::Sender<Vec<u8>>,
    /// Lines from it; while they are not taken, it is not read.
    pub incoming: mpsc::Receiver<Incoming>,
    /// The longest line that the other side takes; the peer refuses to send a longer one.
    pub send_limit: usize,
    /// Ends it.
    pub closer: Closer,
}

/// What comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A line, without its line ending.
    Line(Vec<u8>),
    /// A line over the limit.
    TooLong {
        /// Its beginning.
        head: Vec<u8>,
        /// Its whole length.
        bytes: u64,
    },
    /// Nothing more will come. Sent once, last.
    End(End),
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// `exit code 0`, `signal 9 (SIGKILL)`, `connection closed`.
    pub status: String,
    /// The last it said on stderr, if it has one.
    pub stderr: String,
}

impl End {
    /// An end of which nothing more is known.
    pub fn closed() -> Self {
        Self { status: "connection closed".to_owned(), stderr: String::new() }
    }
}

/// Ends a connection and waits for its tasks. Dropped, it ends it at once and hard.
#[derive(Debug)]
pub struct Closer {
    signals: Signals,
    tasks: TaskTracker,
    /// The processes behind the connection, if we started them.
    group: Option<Arc<Group>>,
}

impl Closer {
    /// Ends the connection in order, within the transport's grace, and waits until nothing is left.
    ///
    /// Incoming lines that nobody takes meanwhile are dropped. Anybody may call it, at any time.
    pub async fn close(&self) -> End {
        if let Some(group) = &self.group {
            group.remember();
        }
        self.signals.close.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.ended().await
    }

    /// Waits for the end without asking for it.
    pub async fn ended(&self) -> End {
        self.signals.clone().gone().await
    }

    /// Process id of the server, if we started one.
    pub fn process(&self) -> Option<u32> {
        self.group.as_ref().map(|group| group.leader())
    }

    /// Set once somebody wants the connection to end.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.signals.close.clone()
    }

    /// Adds a task to those that [`Closer::close`] waits for.
    pub(crate) fn track(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.signals.close.cancel();
        self.tasks.close();
        // At once and from here: the runtime may never poll our tasks again.
        if let Some(group) = &self.group {
            group.kill();
        }
    }
}

/// Speaks lines over any pair of byte streams.
pub fn over(
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    line_limit: usize,
) -> Transport {
    let (gone, signals) = Signals::new();
    let tasks = TaskTracker::new();
    let (outgoing, incoming) = pump::start(read, write, line_limit, &signals, &tasks);
    tasks.spawn(end_of_streams(signals.clone(), gone));
    let closer = Closer { signals, tasks, group: None };
    Transport { outgoing, incoming, send_limit: LINE_LIMIT, closer }
}

/// How long the other side may keep talking after we have stopped.
const FAREWELL: Duration = Duration::from_secs(1);

async fn end_of_streams(signals: Signals, gone: watch::Sender<Option<End>>) {
    signals.stop.cancelled().await;
    // Whether it ended in time or not, the connection is over.
    let _ = timeout(FAREWELL, signals.eof.cancelled()).await;
    gone.send_replace(Some(End::closed()));
}
