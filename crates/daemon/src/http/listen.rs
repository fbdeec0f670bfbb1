//! The listener: one task for each connection, limits on slow senders, a graceful stop.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of a request's head.
const HEAD: usize = 64 * 1024;

/// Headers of a request; more are refused.
const HEADERS: usize = 100;

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a request's head may take.
    pub read: Duration,
    /// How long requests may take to end when the server stops.
    pub grace: Duration,
    /// Connections at a time.
    pub connections: usize,
}

/// Serves until it is told to stop, then lets requests end for a while.
pub async fn serve(listener: TcpListener, router: Router, times: Times, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(times.connections));
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        // Whoever comes when all room is taken waits in the system's queue, not in our memory.
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            permit = room.clone().acquire_owned() => permit,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(err) => {
                // Out of descriptors, most likely; trying at once would only spin.
                tracing::warn!(%err, "a connection was not accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Small frames must not wait for more.
        let _ = stream.set_nodelay(true);
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(times.read).max_buf_size(HEAD);
        http.max_headers(HEADERS);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            let _permit = permit;
            if let Err(err) = connection.await {
                tracing::debug!(%err, "a connection broke off");
            }
        });
    }
    drop(listener);
    connections.close();
    if timeout(times.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}
