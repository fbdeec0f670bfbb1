//! Ways to a server: a child's pipes, or HTTP.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};

use super::handler::Handler;
use super::process::ServerProcess;
use super::settings::Way;
use crate::tls;

/// A server that is there takes the connection within this.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection.
pub(super) struct Connected {
    pub(super) running: RunningService<RoleClient, Handler>,
    pub(super) process: Option<ServerProcess>,
}

/// Connects and greets.
pub(super) async fn connect(way: &Way, cwd: &Path, handler: Handler) -> Result<Connected, String> {
    match way {
        Way::Stdio { command, args, env, cwd: own } => {
            let cwd = own.as_deref().map_or(cwd.to_owned(), |own| cwd.join(own));
            stdio(command, args, env, &cwd, handler).await
        }
        Way::Http { url, headers, authority } => {
            http(url, headers, authority.clone(), handler).await
        }
    }
}

async fn stdio(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    cwd: &Path,
    handler: Handler,
) -> Result<Connected, String> {
    let started = ServerProcess::start(command, args, env, cwd);
    let (process, pipes) = started.map_err(|err| format!("cannot run `{command}`: {err}"))?;
    match handler.serve(pipes).await {
        Ok(running) => Ok(Connected { running, process: Some(process) }),
        Err(err) => {
            let complaints = process.complaints();
            process.end().await;
            let said =
                if complaints.is_empty() { String::new() } else { format!(": {complaints}") };
            Err(format!("{err}{said}"))
        }
    }
}

async fn http(
    url: &str,
    headers: &BTreeMap<String, String>,
    authority: Option<PathBuf>,
    handler: Handler,
) -> Result<Connected, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let bad = || format!("the header `{name}` cannot be sent");
        let key = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad())?;
        value.set_sensitive(true);
        custom.insert(key, value);
    }
    // Somebody else may have named one; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().connect_timeout(CONNECT);
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    let here = reqwest::Url::parse(url).is_ok_and(|url| tls::is_loopback(&url));
    let builder = if here { builder.no_proxy() } else { builder };
    let build = move || {
        let builder = tls::trusting(builder, authority.as_deref())?;
        builder.build().map_err(|err| err.to_string())
    };
    let client = tokio::task::spawn_blocking(build).await.map_err(|err| err.to_string())??;
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let running = handler.serve(transport).await.map_err(|err| unreachable_server(&err))?;
    Ok(Connected { running, process: None })
}

/// What TLS found wrong lies three errors deep, and is what helps.
fn unreachable_server(err: &ClientInitializeError) -> String {
    let inner = match err {
        ClientInitializeError::TransportError { error, .. } => error.error.downcast_ref(),
        _ => None,
    };
    let fault = match inner {
        Some(StreamableHttpError::<reqwest::Error>::Client(err)) => tls::fault(err),
        _ => None,
    };
    fault.map_or_else(|| err.to_string(), |why| format!("no safe connection: {why}"))
}
