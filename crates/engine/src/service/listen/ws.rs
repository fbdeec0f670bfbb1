//! A WebSocket listener on an address.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::{ListenError, Token, socket};
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
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = service.stopping().cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Small messages go at once.
                    let _ = stream.set_nodelay(true);
                    let (service, gate) = (service.clone(), self.gate.clone());
                    tasks.spawn(async move { socket::serve(&service, &gate, stream).await });
                }
                Err(err) => super::pause(&err).await,
            }
        }
        tasks.close();
        tasks.wait().await;
    }
}
