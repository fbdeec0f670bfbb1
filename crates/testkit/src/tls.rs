//! TLS before a plain server: what comes in over TLS goes on to it as it is.
//!
//! The certificate is for `localhost`, signed by an authority that no machine knows.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// `ca.pem`, `server.pem` or `server.key`.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name)
}

/// A server that speaks TLS. Dropping it ends it.
#[derive(Debug)]
pub struct Front {
    port: u16,
    accepted: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Front {
    /// Stands before the server of this `http://127.0.0.1:PORT/…`.
    ///
    /// # Panics
    /// If that is no such address, or no port or thread can be had.
    pub fn before(base_url: &str) -> Self {
        let address = base_url.trim_start_matches("http://").split('/').next();
        let behind: SocketAddr = address.and_then(|at| at.parse().ok()).expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a non-blocking socket");
        let port = listener.local_addr().expect("an address").port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("tls-front".to_owned())
            .spawn(move || run(listener, behind, &count, stopped))
            .expect("a thread for TLS");
        Self { port, accepted, stop: Some(stop), thread: Some(thread) }
    }

    /// What a provider's `base_url` must be.
    pub fn base_url(&self) -> String {
        format!("https://localhost:{}/v1", self.port)
    }

    /// How many connections came.
    pub fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // The runtime ends with its thread and takes every open connection with it.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has failed the test already.
            let _ = thread.join();
        }
    }
}

fn run(
    listener: TcpListener,
    behind: SocketAddr,
    accepted: &AtomicUsize,
    mut stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let acceptor = TlsAcceptor::from(Arc::new(config()));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                _ = &mut stopped => return,
                came = listener.accept() => {
                    let Ok((tcp, _)) = came else { continue };
                    accepted.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(serve(acceptor.clone(), tcp, behind));
                }
            }
        }
    });
}

async fn serve(acceptor: TlsAcceptor, tcp: TcpStream, behind: SocketAddr) {
    // A client that does not trust us hangs up.
    let Ok(mut tls) = acceptor.accept(tcp).await else { return };
    let Ok(mut plain) = TcpStream::connect(behind).await else { return };
    // Either side may leave in the middle.
    let _ = tokio::io::copy_bidirectional(&mut tls, &mut plain).await;
}

fn config() -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a key");
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair")
}
