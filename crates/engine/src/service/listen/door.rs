//! A door: clients come in through it, one after the other.

use std::io;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::socket::{self, Stream};
use crate::service::Service;

/// How long to wait after a connection could not be taken: the machine is out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// What clients connect to.
pub(super) trait Door {
    /// A client's connection.
    type Stream: Stream + 'static;

    /// The next client; none for one that must not come in.
    async fn accept(&self) -> io::Result<Option<Self::Stream>>;

    /// What a client must show.
    fn gate(&self) -> Gate;
}

/// Lets clients in until the service is stopped, and waits for them to be gone.
pub(super) async fn serve(door: &impl Door, service: &Service) {
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = service.stopping().cancelled() => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            Ok(Some(stream)) => {
                let (service, gate) = (service.clone(), door.gate());
                tasks.spawn(async move { socket::serve(&service, &gate, stream).await });
            }
            Ok(None) => {}
            Err(err) => {
                tracing::warn!(%err, "cannot take a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    tasks.close();
    tasks.wait().await;
}
