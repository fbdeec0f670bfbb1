//! The key of the model for a worker of Codex.
//!
//! Codex's app-server takes no key from its environment: it reads `auth.json`, or is told one by a
//! client. So a worker whose environment has a key is told it, and keeps it in memory alone: in the
//! home it would lie in clear, and in the place of a login that is there.

use bindery_client::app_server::AppServer;
use bindery_client::error::Error;
use bindery_client::transport::stdio::Launch;
use serde_json::{Value, json};

use crate::tenant::Tenant;

/// The variable that holds the key.
const API_KEY: &str = "OPENAI_API_KEY";

/// Where Codex keeps a login.
const AUTH_FILE: &str = "auth.json";

/// Keeps what the worker is told, and reads no login of the home.
const KEPT_IN_MEMORY: &str = "cli_auth_credentials_store=\"ephemeral\"";

/// Has the worker wait for its key, if it has one: the tenant's own, or the daemon's where the home
/// has no login.
pub(super) fn expect_key(launch: &mut Launch, tenant: &Tenant) {
    let settings = &tenant.settings;
    let own = settings.env.get(API_KEY).is_some_and(|key| !key.is_empty());
    let has_login = || settings.codex_home.join(AUTH_FILE).exists();
    if own || (key_of(launch).is_some() && !has_login()) {
        launch.args.extend(["-c".into(), KEPT_IN_MEMORY.into()]);
    }
}

/// Whether a worker that is started so is told a key.
pub(super) fn expects_key(launch: &Launch) -> bool {
    launch.args.iter().any(|arg| arg == KEPT_IN_MEMORY)
}

/// Tells a worker its key, if it waits for one.
pub(crate) async fn log_in(server: &AppServer, launch: &Launch) -> Result<(), Error> {
    let Some(key) = key_of(launch).filter(|_| expects_key(launch)) else { return Ok(()) };
    let params = json!({ "type": "apiKey", "apiKey": key });
    server.request::<Value>("account/login/start", &params).await.map(drop)
}

/// The key in the worker's environment, of which the last of a name counts.
fn key_of(launch: &Launch) -> Option<&str> {
    let named = launch.env.iter().rev().find(|(name, _)| name == API_KEY);
    named.and_then(|(_, key)| key.to_str()).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn a_tenants_own_key_counts_always_and_another_where_the_home_has_no_login() {
        let home = tempfile::tempdir().unwrap();
        let expects = |own: Option<&str>, passed: Option<&str>| {
            let mut settings = TenantSettings::new(home.path().to_owned(), "/root".into());
            settings.env.extend(own.map(|key| (API_KEY.to_owned(), key.to_owned())));
            let tenant = Tenant { id: "t".into(), name: "t".into(), settings, created: 0 };
            let mut launch = Launch::new("codex");
            launch.env.extend(passed.map(|key| (API_KEY.into(), key.into())));
            launch.env.extend(own.map(|key| (API_KEY.into(), key.into())));
            expect_key(&mut launch, &tenant);
            expects_key(&launch).then(|| key_of(&launch).unwrap_or_default().to_owned())
        };
        let key = |key: &str| Some(key.to_owned());
        assert_eq!(expects(None, None), None);
        assert_eq!(expects(Some(""), None), None);
        assert_eq!(expects(None, Some("sk-daemon")), key("sk-daemon"));
        assert_eq!(expects(Some("sk-own"), Some("sk-daemon")), key("sk-own"));
        std::fs::write(home.path().join(AUTH_FILE), "{}").unwrap();
        assert_eq!(expects(None, Some("sk-daemon")), None);
        assert_eq!(expects(Some("sk-own"), None), key("sk-own"));
    }
}
