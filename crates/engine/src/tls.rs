//! TLS to servers: whom we trust besides those that the system does, and what TLS finds wrong.

use std::error::Error;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder};

use crate::config::Home;

/// Names a file with more authorities. The name is Codex's; `SSL_CERT_FILE` is read by the TLS
/// library, in the place of the system's own.
pub(crate) const VARIABLE: &str = "CODEX_CA_CERTIFICATE";

/// Longer is no list of authorities: the system's own has some two hundred kilobytes.
const MOST: u64 = 8 << 20;

/// The file that the environment names.
pub(crate) fn authority(home: &Home) -> Option<PathBuf> {
    home.variable(VARIABLE).map(PathBuf::from)
}

/// Trusts the authorities of this file, too.
pub(crate) fn trusting(
    builder: ClientBuilder,
    file: Option<&Path>,
) -> Result<ClientBuilder, String> {
    let Some(file) = file else { return Ok(builder) };
    let wrong = |why: String| {
        format!("cannot use the certificates of `{}`: {why}; set `{VARIABLE}`", file.display())
    };
    let length = std::fs::metadata(file).map_err(|err| wrong(err.to_string()))?.len();
    if length > MOST {
        return Err(wrong(format!("it has {length} bytes, at most {MOST}")));
    }
    let bytes = std::fs::read(file).map_err(|err| wrong(err.to_string()))?;
    let found = Certificate::from_pem_bundle(&bytes).map_err(|err| wrong(err.to_string()))?;
    match found.is_empty() {
        true => Err(wrong("it has none, in PEM".to_owned())),
        false => Ok(builder.tls_certs_merge(found)),
    }
}

/// What TLS found wrong, if that is why a request failed. Asking again does not help.
pub(crate) fn fault(err: &(dyn Error + 'static)) -> Option<String> {
    found(err).map(words)
}

/// An error that is wrapped into one of the system's is not among its sources.
fn found<'a>(err: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = || err.downcast_ref::<std::io::Error>()?.get_ref();
    err.downcast_ref().or_else(|| found(inner()?)).or_else(|| found(err.source()?))
}

fn words(err: &rustls::Error) -> String {
    match err {
        rustls::Error::InvalidCertificate(_) => {
            format!("{err}; if it is signed by your own authority, name that: `{VARIABLE}=FILE`")
        }
        rustls::Error::InvalidMessage(_) => format!("{err}; is it an http:// address?"),
        _ => err.to_string(),
    }
}
