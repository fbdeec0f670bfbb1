//! The environment of a worker: named variables only, so that no secret of ours gets into it.

use std::ffi::OsString;

use crate::tenant::Tenant;

/// What programs need to run at all, and what leads them to the network.
const USUAL: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TERM",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CODEX_CA_CERTIFICATE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SystemRoot",
    "TEMP",
    "TMP",
];

/// The whole environment of a tenant's workers.
pub(super) fn of(pass: &[String], tenant: &Tenant) -> Vec<(OsString, OsString)> {
    let names = USUAL.iter().copied().chain(pass.iter().map(String::as_str));
    let inherited = names.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let own = tenant.settings.env.iter().map(|(name, value)| (name.into(), value.into()));
    let home = ("CODEX_HOME".into(), tenant.settings.codex_home.clone().into_os_string());
    inherited.chain(own).chain([home]).collect()
}
