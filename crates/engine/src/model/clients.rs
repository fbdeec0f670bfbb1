//! HTTP clients that threads share, made when the first request needs one: a connection that is
//! open serves the next question, whoever asks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::sync::OnceCell;

use super::Fault;
use super::classify::{Again, Failure};
use super::http::{ORIGINATOR, causes};
use crate::tls::{self, is_loopback};

/// A server that is there takes the connection within this.
const CONNECT: Duration = Duration::from_secs(30);

/// The clients of one service; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Clients(Arc<Mutex<HashMap<Kind, Arc<OnceCell<Client>>>>>);

/// What keeps a client from asking for another.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    is_secure: bool,
    /// Reached without a proxy.
    is_here: bool,
    authority: Option<PathBuf>,
}

impl Clients {
    /// The client for an address.
    pub(super) async fn to(&self, url: &Url, authority: Option<&Path>) -> Result<Client, Failure> {
        let authority = authority.map(Path::to_owned);
        let (is_secure, is_here) = (url.scheme() != "http", is_loopback(url));
        let kind = Kind { is_secure, is_here, authority: authority.clone() };
        let client = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(kind).or_default())
        };
        client.get_or_try_init(|| make(url, authority)).await.cloned()
    }
}

/// Reading the system's certificates takes longer than a whole turn on a local model, so that plain
/// HTTP goes without, and HTTPS reads them away from the others' threads.
async fn make(url: &Url, authority: Option<PathBuf>) -> Result<Client, Failure> {
    let agent = format!(
        "{ORIGINATOR}/{} ({}; {})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    let builder = Client::builder()
        .user_agent(agent)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    let wrong = |err: &dyn std::fmt::Display| {
        let words = format!("cannot speak HTTP: {err}");
        Failure::new(Fault::Transport, Again::Never, words)
    };
    if url.scheme() == "http" && (is_loopback(url) || !has_secure_proxy()) {
        let builder = builder.tls_backend_preconfigured(trust_nobody().map_err(|err| wrong(&err))?);
        return builder.build().map_err(|err| wrong(&err));
    }
    // Somebody else may have named one; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let build = move || {
        let builder = tls::trusting(builder, authority.as_deref())?;
        builder.build().map_err(|err| causes(&err))
    };
    let built = tokio::task::spawn_blocking(build).await;
    built.map_err(|err| wrong(&err))?.map_err(|err| wrong(&err))
}

fn trust_nobody() -> Result<rustls::ClientConfig, rustls::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(config)
}

/// A plain request may still go through a proxy that is spoken to over TLS.
fn has_secure_proxy() -> bool {
    let names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    names.iter().any(|name| std::env::var(name).is_ok_and(|value| value.starts_with("https:")))
}
