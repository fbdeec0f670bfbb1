//! Workers of a front: processes of our own, or an app-server that listens already.

use std::ffi::OsString;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::pool::{Starter, WorkerKey};
use bindery_client::transport::address::Address;
use bindery_client::transport::dial::{Dial, Token};
use bindery_client::transport::stdio::Launch;
use futures_util::future::BoxFuture;

use super::request::Listening;
use crate::workers::Workers;
use crate::workers::login::log_in;

/// The name under which a key keeps the token of a server.
const TOKEN: &str = "token";

/// The key of a server that listens: its address stands where a program would.
pub(super) fn key(server: &Listening) -> Result<WorkerKey, Error> {
    let address = server.url.parse::<Address>()?;
    if address == Address::Stdio {
        let why = "it must be the address of a server that listens".to_owned();
        return Err(Error::Address { address: server.url.clone(), why });
    }
    let mut launch = Launch::new(&server.url);
    let token = server.token.iter().map(|token| (OsString::from(TOKEN), token.into()));
    launch.env = token.collect();
    Ok(launch.into())
}

/// Starts the one, dials the other.
pub(super) struct Reach {
    options: ConnectOptions,
    workers: Workers,
    tenant: String,
}

impl Reach {
    /// For workers of the tenant of this id.
    pub(super) fn new(workers: Workers, tenant: String) -> Self {
        Self { options: ConnectOptions::default(), workers, tenant }
    }
}

impl Starter for Reach {
    /// A server that was dialled may have other clients.
    fn owns(&self, key: &WorkerKey) -> bool {
        address(key.launch()).is_none()
    }

    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>> {
        let (key, options) = (key.clone(), self.options.clone());
        let (workers, tenant) = (self.workers.clone(), self.tenant.clone());
        Box::pin(async move {
            let mut launch = key.launch().clone();
            workers
                .hide_others(&mut launch, &tenant)
                .await
                .map_err(|err| Error::Closed { status: err.to_string(), stderr: String::new() })?;
            match address(&launch) {
                Some(address) => {
                    let token = launch.env.iter().find(|(name, _)| name == TOKEN);
                    let token = token.map(|(_, value)| Token::new(value.to_string_lossy()));
                    let dial = Dial { token, ..Dial::new(address) };
                    AppServer::dial(&dial, &options).await
                }
                None => {
                    let server = AppServer::spawn(&launch, &options).await?;
                    log_in(&server, &launch).await?;
                    Ok(server)
                }
            }
        })
    }
}

/// A program is a path, and no path begins like an address.
fn address(launch: &Launch) -> Option<Address> {
    let text = launch.program.to_str()?;
    let listens = ["ws://", "wss://", "unix:"].iter().any(|scheme| text.starts_with(scheme));
    listens.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Option<Address> {
        let key = key(&Listening { url: url.into(), token: Some("t".into()) }).ok()?;
        address(key.launch())
    }

    #[test]
    fn servers_are_dialled_and_programs_started() {
        assert!(of("ws://127.0.0.1:1").is_some() && of("unix:///run/x").is_some());
        assert!(of("stdio:").is_none() && of("http://x").is_none() && of("codex").is_none());
        assert_eq!(address(&Launch::new("/usr/bin/codex")), None);
        assert_eq!(address(&Launch::new("wsx")), None);
    }

    #[test]
    fn another_token_is_another_worker() {
        let key =
            |token: &str| key(&Listening { url: "ws://h:1".into(), token: Some(token.into()) });
        assert!(key("a").unwrap() == key("a").unwrap());
        assert!(key("a").unwrap() != key("b").unwrap());
    }
}
