//! The listener: one task for each connection, limits on slow senders, a graceful stop.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connections::{ClientConnection, Connections};

/// Bytes of a request's head.
const HEAD: usize = 64 * 1024;

/// Headers of a request; more are refused.
const HEADERS: usize = 100;

/// How long.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a request's head may take.
    pub read: Duration,
    /// How long a connection may be without its first request.
    pub silent: Duration,
    /// How long requests may take to end when the server stops.
    pub grace: Duration,
}

/// What every connection is served with.
#[derive(Clone)]
struct ConnectionServer {
    router: Router,
    times: Times,
    connections: Connections,
}

/// Serves until it is told to stop, then lets requests end for a while.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    times: Times,
    connections: Connections,
    stop: CancellationToken,
) {
    let server = ConnectionServer { router, times, connections };
    let graceful = GracefulShutdown::new();
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => server.start(stream, peer.ip(), &graceful, &tasks),
            Err(err) => {
                // Out of descriptors, most likely; trying at once would only spin.
                tracing::warn!(%err, "a connection was not accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    tasks.close();
    if timeout(times.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

impl ConnectionServer {
    fn start(
        &self,
        stream: TcpStream,
        address: IpAddr,
        graceful: &GracefulShutdown,
        tasks: &TaskTracker,
    ) {
        // Small frames must not wait for more.
        let _ = stream.set_nodelay(true);
        let client = self.connections.accept(address);
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.times.read).max_buf_size(HEAD);
        http.max_headers(HEADERS);
        let (router, requester) = (TowerToHyperService::new(self.router.clone()), client.clone());
        let service =
            service_fn(move |request| respond(router.clone(), requester.clone(), request));
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        let silence = self.times.silent;
        tasks.spawn(async move {
            tokio::select! {
                biased;
                ended = connection => if let Err(err) = ended {
                    tracing::debug!(%err, "a connection broke off");
                },
                () = client.close().cancelled() => tracing::debug!("a connection made room"),
                () = remain_silent(&client, silence) => tracing::debug!("a connection was silent"),
            }
        });
    }
}

/// Returns when no request has come within this time.
async fn remain_silent(client: &ClientConnection, silence: Duration) {
    sleep(silence).await;
    if !client.is_unheard() {
        std::future::pending::<()>().await;
    }
}

async fn respond(
    router: TowerToHyperService<Router>,
    client: Arc<ClientConnection>,
    mut request: Request<Incoming>,
) -> Result<Response<CountedBody>, Infallible> {
    client.heard();
    request.extensions_mut().insert(client.clone());
    let response = router.call(request).await?;
    client.release_body();
    Ok(response.map(|body| CountedBody { body, client }))
}

/// A response's body; when it is over, so is its request.
struct CountedBody {
    body: Body,
    client: Arc<ClientConnection>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.client.rest();
    }
}
