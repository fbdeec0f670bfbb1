//! The way to servers: whom we trust besides those that the system does, what TLS finds wrong, and
//! who is reached without a proxy.

use std::error::Error;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder, Url};

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

/// A proxy cannot reach our own machine, whatever the environment says of it.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|ip| ip.is_loopback())
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

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::is_loopback;

    #[test]
    fn our_own_machine_is_known() {
        for (url, want) in [
            ("http://localhost:1/v1", true),
            ("http://127.0.0.2/", true),
            ("http://[::1]:5/", true),
            ("http://api.localhost/", true),
            ("http://10.0.0.1/", false),
            ("https://localhost.example/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
