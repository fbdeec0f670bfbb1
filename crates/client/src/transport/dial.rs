//! Reaches an app-server that runs already, by its address.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::address::Address;
use super::{LINE_LIMIT, Transport, ws};
use crate::error::Error;

/// Where to, and how.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Where the server is.
    pub address: Address,
    /// What it asks for before it lets us in.
    pub token: Option<Token>,
    /// A file of certificates (PEM) to trust beside the system's: a company's own authority.
    pub authority: Option<PathBuf>,
    /// How long it may take until we are let in.
    pub deadline: Duration,
    /// The longest message taken; a longer one ends the connection, for it cannot be skipped.
    pub message_limit: usize,
    /// How often to ask an idle server whether it is still there; after three silent times it is
    /// not.
    pub keepalive: Duration,
    /// Who must be at the other end of a unix socket; anybody when it does not say.
    pub peer: Option<Peer>,
}

/// A process at the other end of a unix socket, as the system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user that it runs as.
    pub user: u32,
    /// The process group that it belongs to.
    pub group: i32,
}

impl Dial {
    /// This address, and what is usual.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            authority: None,
            deadline: Duration::from_secs(10),
            message_limit: LINE_LIMIT,
            keepalive: Duration::from_secs(20),
            peer: None,
        }
    }
}

/// A secret that is shown to the server and to nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token as the server knows it; blanks around it (a file's line end) are no part of it.
    pub fn new(token: impl AsRef<str>) -> Self {
        Self(token.as_ref().trim().to_owned())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Connects. Must be called within a runtime, whose tasks then own the connection.
pub async fn connect(dial: &Dial) -> Result<Transport, Error> {
    let connecting = async {
        match &dial.address {
            Address::Stdio => Err(refused(dial, "a process of our own is started, not dialled")),
            Address::WebSocket(url) => ws::connect(dial, url).await,
            Address::Unix(path) => unix(dial, path.as_deref()).await,
        }
    };
    match timeout(dial.deadline, connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            Err(Error::Timeout { what: format!("connect {}", dial.address), after: dial.deadline })
        }
    }
}

#[cfg(unix)]
async fn unix(dial: &Dial, path: Option<&std::path::Path>) -> Result<Transport, Error> {
    super::unix::connect(dial, path).await
}

#[cfg(not(unix))]
async fn unix(dial: &Dial, _: Option<&std::path::Path>) -> Result<Transport, Error> {
    Err(refused(dial, "unix sockets are not to be had on this system; use `ws://`"))
}

/// No connection, for a reason that asking again will not change.
pub(super) fn refused(dial: &Dial, why: &str) -> Error {
    Error::Address { address: dial.address.to_string(), why: why.to_owned() }
}

/// No connection this time.
pub(super) fn failed(dial: &Dial, why: impl fmt::Display) -> Error {
    Error::Connect { address: dial.address.to_string(), why: why.to_string() }
}
