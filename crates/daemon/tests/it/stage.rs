//! A server in this process, and a client before it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_daemon::config::Config;
use bindery_daemon::serve::{Leave, Server};
use bindery_daemon::store::Change;
use bindery_daemon::workers::Program;
use bindery_testkit::codex::RealCodex;
use futures_util::StreamExt;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing in a test takes this long; reaching it is a hang.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// A server that runs.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) client: Client,
    pub(crate) app: bindery_daemon::http::app::App,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
    _data: TempDir,
}

impl Stage {
    /// A server of the caller's own, on this Codex.
    pub(crate) async fn own(codex: &RealCodex) -> Self {
        let config = Config { exit_with_parent: true, ..on(codex.program(), codex.home()) };
        let stage = Self::with(config, codex.project()).await;
        // Codex looks at what a login shell has; not at that of whoever runs the tests.
        let mut tenant = stage.app.tenants.find("default").await.unwrap();
        let home = codex.user_home().display().to_string();
        tenant.settings.env.insert("HOME".to_owned(), home);
        stage.app.store.commit(vec![Change::SetTenant(Box::new(tenant))]).await.unwrap();
        stage
    }

    /// A server of these settings, whose first tenant works in this folder.
    pub(crate) async fn with(mut config: Config, root: PathBuf) -> Self {
        let data = tempfile::tempdir().unwrap();
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.data = data.path().join("data");
        config.root = Some(root);
        config.store.key_file = Some(data.path().join("store.key"));
        let server = Server::start(config, nothing()).await.unwrap();
        Self::serving(server, data).await
    }

    async fn serving(server: Server, data: TempDir) -> Self {
        let (stop, stopped) = oneshot::channel();
        let url = format!("http://{}", server.address().unwrap());
        let token = server.first_token.clone().unwrap();
        let app = server.app().clone();
        let running = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
                Leave::Nothing
            };
            server.run(stop).await.unwrap();
        });
        // A second test of this process finds it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { url, token, client, app, stop: Some(stop), running, _data: data }
    }

    /// A request with the first tenant's token.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.client.request(method, url).bearer_auth(&self.token)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let sent = self.ask(Method::POST, path).header("content-type", "application/json");
        let sent = sent.body(body.to_string()).send();
        timeout(HANG, sent).await.expect("no response").unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let sent = self.ask(Method::GET, path).send();
        timeout(HANG, sent).await.expect("no response").unwrap()
    }

    /// The response to a `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> Response {
        let sent = self.ask(Method::DELETE, path).send();
        timeout(HANG, sent).await.expect("no response").unwrap()
    }

    /// Stops the server, and waits until nothing is left of it.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        timeout(HANG, &mut self.running).await.expect("the server does not end").unwrap();
    }
}

/// No programs of ours: nothing is started by them.
fn nothing() -> Program {
    Program { executable: "none".into(), guard: Vec::new(), engine: Vec::new() }
}

/// Settings for this Codex.
pub(crate) fn on(codex: &Path, home: PathBuf) -> Config {
    let mut config = Config { codex_home: Some(home), ..Config::default() };
    config.workers.codex = Some(codex.to_owned());
    config
}

/// A response's JSON.
pub(crate) async fn value(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// One server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// A stream of events that is being read.
pub(crate) struct Events {
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes_of::Bytes>>,
    buffer: String,
}

mod bytes_of {
    pub(crate) use axum::body::Bytes;
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        Self { body: response.bytes_stream().boxed(), buffer: String::new() }
    }

    /// The next event, comments left out; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.buffer.split_once("\n\n") {
                let field = |name: &str| {
                    frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
                };
                let (name, data) = (field("event: ").unwrap_or_default(), field("data: "));
                self.buffer = rest.to_owned();
                match data {
                    Some(data) => return Some(Event { name, data }),
                    None => continue,
                }
            }
            let more = timeout(HANG, self.body.next()).await.expect("the stream hangs")?;
            self.buffer.push_str(std::str::from_utf8(&more.unwrap()).unwrap());
        }
    }

    /// The next event of this name.
    pub(crate) async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no `{name}` came"));
            if event.name == name {
                return event;
            }
        }
    }

    /// Everything that is left.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
