//! The listener: one task for each connection, limits on slow senders, a graceful stop.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of a request's head.
const HEAD: usize = 64 * 1024;

/// Serves until it is told to stop, then lets requests end, up to `grace`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    read: Duration,
    grace: Duration,
    stop: CancellationToken,
) {
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
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
        http.timer(TokioTimer::new()).header_read_timeout(read).max_buf_size(HEAD);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            if let Err(err) = connection.await {
                tracing::debug!(%err, "a connection broke off");
            }
        });
    }
    drop(listener);
    connections.close();
    if timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}
