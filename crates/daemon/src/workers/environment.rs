//! The environment of a worker: named variables only, so that no secret of ours gets into it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::private::make_folder;
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
    "BINDERY_BWRAP",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SystemRoot",
    "TEMP",
    "TMP",
];

/// What leads to the home and the temporary files of the daemon's user. Not for tenants: commands
/// would read that user's profile, and see each other's files.
const OWN: &[&str] = &["HOME", "TMPDIR", "TEMP", "TMP", "USER", "LOGNAME"];

/// Patterns of variables that hold the key of a model: a worker needs them, its commands do not.
const KEYS: &str = "*_API_KEY";

/// The folders that a tenant's workers have for themselves.
#[derive(Clone, Debug)]
pub(super) struct WorkerHome {
    home: PathBuf,
    temporary: PathBuf,
}

impl WorkerHome {
    pub(super) fn of(data: &Path, tenant: &Tenant) -> Self {
        let below = |kind: &str| data.join(kind).join(&tenant.id);
        Self { home: below("homes"), temporary: below("temporary") }
    }

    /// Makes them, for the daemon's user alone.
    pub(super) fn make(&self) -> Result<(), Error> {
        [&self.home, &self.temporary].into_iter().try_for_each(|folder| make_folder(folder))
    }
}

/// The whole environment of a tenant's workers. Without a home of their own they have ours: that of
/// an app which started a daemon for itself.
pub(super) fn of(
    pass: &[String],
    tenant: &Tenant,
    home: Option<&WorkerHome>,
) -> Vec<(OsString, OsString)> {
    let names = USUAL.iter().copied().chain(pass.iter().map(String::as_str));
    let names = names.filter(|name| home.is_none() || !OWN.contains(name));
    let inherited = names.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let text = |name: &str, value: &Path| (name.into(), value.as_os_str().to_owned());
    let folders = home.into_iter().flat_map(|home| {
        [
            text("HOME", &home.home),
            text("TMPDIR", &home.temporary),
            ("USER".into(), OsString::from(&tenant.name)),
            ("LOGNAME".into(), OsString::from(&tenant.name)),
        ]
    });
    let own = tenant.settings.env.iter().map(|(name, value)| (name.into(), value.into()));
    let codex = ("CODEX_HOME".into(), tenant.settings.codex_home.clone().into_os_string());
    inherited.chain(folders).chain(own).chain([codex]).collect()
}

/// Settings of a worker that keep from its commands what only the worker needs.
pub(super) fn withheld(pass: &[String]) -> Vec<OsString> {
    let names: Vec<&str> = pass.iter().map(String::as_str).chain([KEYS]).collect();
    // A list of texts is the same in JSON and in TOML.
    let names = serde_json::json!(names);
    vec!["-c".into(), format!("shell_environment_policy.exclude={names}").into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn a_tenants_worker_has_a_home_of_its_own() {
        let mut settings = TenantSettings::new("/codex".into(), "/root".into());
        settings.env.insert("A".to_owned(), "1".to_owned());
        let tenant =
            Tenant { id: "ten_1".to_owned(), name: "acme".to_owned(), settings, created: 0 };
        let home = WorkerHome::of(Path::new("/data"), &tenant);
        let all = of(&["HOME".to_owned()], &tenant, Some(&home));
        let values = |name: &str| {
            let named = all.iter().filter(|(known, _)| known == name);
            named.map(|(_, value)| value.to_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(values("HOME"), ["/data/homes/ten_1"]);
        assert_eq!(values("TMPDIR"), ["/data/temporary/ten_1"]);
        assert_eq!(values("USER"), ["acme"]);
        assert_eq!((values("A"), values("CODEX_HOME")), (vec!["1"], vec!["/codex"]));
    }

    #[test]
    fn what_is_passed_to_workers_is_kept_from_their_commands() {
        let args = withheld(&["AZURE_SECRET".to_owned()]);
        let setting = r#"shell_environment_policy.exclude=["AZURE_SECRET","*_API_KEY"]"#;
        assert_eq!(args, ["-c", setting]);
    }
}
