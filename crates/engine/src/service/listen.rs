//! Where clients come from: stdio, WebSocket, unix socket. Memory needs no listener.

mod door;

mod gate;

mod pump;

mod socket;

mod stdio;

#[cfg(unix)]
mod unix;

mod ws;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

pub use gate::Token;
pub use pump::carry;
pub use stdio::stdio;
#[cfg(unix)]
pub use unix::UnixDoor;
pub use ws::WsDoor;

/// Where to listen, as Codex writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `stdio://`: one client, on standard input and output.
    Stdio,
    /// `ws://IP:PORT`; port 0 takes a free one.
    Ws(SocketAddr),
    /// `unix://PATH`: WebSockets over a socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let unsupported = || ListenError::Unsupported(text.to_owned());
        if text == "stdio://" {
            return Ok(Self::Stdio);
        }
        if let Some(path) = text.strip_prefix("unix://").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.strip_prefix("ws://").map(|address| address.trim_end_matches('/'));
        let address = address.and_then(|address| address.parse().ok());
        address.map(Self::Ws).ok_or_else(unsupported)
    }
}

/// Why nobody can listen there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Not an address that we know.
    #[error("unsupported --listen URL `{0}`; expected `stdio://`, `unix://PATH` or `ws://IP:PORT`")]
    Unsupported(String),
    /// Everybody on the network could come in.
    #[error(
        "refusing to start non-loopback websocket listener {0} without auth; \
         name a file that holds a token with `--token-file`"
    )]
    Open(SocketAddr),
    /// The token is no token.
    #[error("`{path}` holds no token: {why}")]
    Token {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system says no.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Where.
        address: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// Somebody listens there already.
    #[error("cannot listen on {0}: another server does already; choose another path or end it")]
    Taken(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_codex_writes_them() {
        #[rustfmt::skip]
        let table = [
            ("stdio://",             Some(Listen::Stdio)),
            ("ws://127.0.0.1:0",     Some(Listen::Ws(([127, 0, 0, 1], 0).into()))),
            ("ws://[::1]:80/",       Some(Listen::Ws((std::net::Ipv6Addr::LOCALHOST, 80).into()))),
            ("unix:///run/x.sock",   Some(Listen::Unix("/run/x.sock".into()))),
            ("unix://",              None),
            ("ws://localhost:80",    None),
            ("http://127.0.0.1:80",  None),
            ("",                     None),
        ];
        for (text, want) in table {
            assert_eq!(text.parse::<Listen>().ok(), want, "{text}");
        }
    }
}
