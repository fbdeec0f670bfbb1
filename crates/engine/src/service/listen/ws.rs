//! A WebSocket listener on an address.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use super::door::{self, Door};
use super::gate::Gate;
use super::{ListenError, Token};
use crate::service::Service;

/// An address that is listened on.
#[derive(Debug)]
pub struct WsDoor {
    listener: TcpListener,
    gate: Gate,
}

impl WsDoor {
    /// Listens. Without a token only this machine may be listened to. `hosts` are names, beside
    /// addresses, that clients may call the server by.
    pub async fn open(
        address: SocketAddr,
        token: Option<Token>,
        hosts: Vec<String>,
    ) -> Result<Self, ListenError> {
        if token.is_none() && !address.ip().is_loopback() {
            return Err(ListenError::Open(address));
        }
        let failed = |source| ListenError::Bind { address: format!("ws://{address}"), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, gate: Gate { address: Some(address), token, hosts } })
    }

    /// Where it listens; the real port, if any was wanted.
    pub fn address(&self) -> SocketAddr {
        self.gate.address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Lets clients in until the service is stopped, and waits for them to be gone.
    pub async fn serve(self, service: &Service) {
        door::serve(&self, service).await;
    }
}

impl Door for WsDoor {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<Option<TcpStream>> {
        let (stream, _) = self.listener.accept().await?;
        // Small messages go at once.
        let _ = stream.set_nodelay(true);
        Ok(Some(stream))
    }

    fn gate(&self) -> Gate {
        self.gate.clone()
    }
}
