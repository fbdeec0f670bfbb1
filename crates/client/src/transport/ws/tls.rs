//! TLS with the certificates the system trusts.
//!
//! The system's and not a list of our own: a company's server is signed by the company, and its
//! machines know that. `SSL_CERT_FILE` and `SSL_CERT_DIR` are heeded.

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::Error;
use crate::transport::dial::{Dial, failed, refused};

pub(super) async fn connector(dial: &Dial) -> Result<TlsConnector, Error> {
    let authority = dial.authority.clone();
    // Hundreds of small files, on some systems.
    let read = tokio::task::spawn_blocking(move || roots(authority.as_deref())).await;
    let roots = read.map_err(|err| failed(dial, err))?.map_err(|why| refused(dial, &why))?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|err| failed(dial, err))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

pub(super) async fn secure(
    dial: &Dial,
    tls: &TlsConnector,
    host: &str,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|err| refused(dial, &err.to_string()))?;
    tls.connect(name, tcp).await.map_err(|err| failed(dial, err))
}

fn roots(authority: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for err in &found.errors {
        tracing::debug!(%err, "a certificate of the system cannot be read");
    }
    // A system has a few that no library likes.
    roots.add_parsable_certificates(found.certs);
    if let Some(path) = authority {
        let cannot = |err: &dyn std::fmt::Display| {
            format!("cannot read certificates from `{}`: {err}", path.display())
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|err| cannot(&err))? {
            let certificate = certificate.map_err(|err| cannot(&err))?;
            roots.add(certificate).map_err(|err| cannot(&err))?;
        }
    }
    match roots.is_empty() {
        true => Err("this system trusts no certificate; name a file of them".to_owned()),
        false => Ok(roots),
    }
}
