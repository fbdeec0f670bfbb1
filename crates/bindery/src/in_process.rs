//! The built-in engine in this process, and our client on it.

use std::path::PathBuf;
use std::sync::Arc;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::peer::{Bounds, Inbound, Peer};
use bindery_client::transport::{Incoming as FromClient, Transport, memory};
use bindery_engine::config::{ConfigError, Home};
use bindery_engine::sandbox::HiddenPaths;
use bindery_engine::service::bound::SandboxBound;
use bindery_engine::service::connection::{Incoming, Wire};
use bindery_engine::service::disk::Disk;
use bindery_engine::service::house::House;
use bindery_engine::service::{Service, ServiceSettings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What the engine is started with.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// The folder with `config.toml` and the sessions; none takes `CODEX_HOME`, else `~/.codex`.
    pub home: Option<PathBuf>,
    /// Settings over those of `config.toml`, as `key=value`.
    pub config: Vec<String>,
    /// A program that calls [`bindery_engine::sandbox::enter`] when its first argument is
    /// [`bindery_engine::sandbox::SUBCOMMAND`], such as `bindery` itself. With it commands run in a
    /// sandbox; without it each one is asked for.
    pub sandbox_helper: Option<PathBuf>,
    /// Files and folders that commands in a sandbox do not see and tools do not read for the
    /// model, and what in them they do.
    pub hidden: HiddenPaths,
    /// Leave `config.toml` and `bindery.toml` unread.
    pub ignore_user_config: bool,
    /// Leave the rules about commands unread.
    pub ignore_rules: bool,
    /// A key for OpenAI, instead of the one in `OPENAI_API_KEY`.
    pub openai_key: Option<String>,
    /// What sessions say of where they come from, in Codex's words; none says `vscode`, as those
    /// of other clients do.
    pub source: Option<&'static str>,
    /// The most that clients may ask for; none lets them ask for everything.
    pub bound: Option<SandboxBound>,
    /// How the client introduces itself.
    pub connect: ConnectOptions,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The client and the engine did not come together.
    #[error(transparent)]
    Client(#[from] Error),
}

impl EngineError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(err) => err.hint(),
            Self::Client(err) => err.hint(),
        }
    }
}

/// An engine that runs in this process. It ends with the last clone of its [`AppServer`]; to wait
/// for that, [`close`](Engine::close) it.
#[derive(Debug)]
pub struct Engine {
    /// The client's side.
    pub server: AppServer,
    service: Service,
    bridge: JoinHandle<()>,
}

impl Engine {
    /// Another client of the same engine.
    pub async fn client(&self, connect: &ConnectOptions) -> Result<AppServer, Error> {
        let (near, far) = memory::pair();
        // It ends with its client, or with the service.
        tokio::spawn(bridge(far, self.service.connect()));
        AppServer::connect(near, connect).await
    }

    /// Ends turns, threads and commands, and waits until nothing is left.
    pub async fn close(self) {
        self.server.close().await;
        self.service.stop().await;
        // A panic there was told by the runtime already.
        let _ = self.bridge.await;
    }
}

/// What an engine of these options is made from.
pub fn engine_house(options: &EngineOptions) -> Result<House, EngineError> {
    let mut home = Home::here()?;
    if let Some(folder) = &options.home {
        home.codex = folder.clone();
    }
    home.without_settings = options.ignore_user_config;
    if let Some(key) = &options.openai_key {
        home.environment.insert("OPENAI_API_KEY".to_owned(), key.clone());
    }
    let said = options.config.iter();
    let said = said.map(|text| bindery_engine::config::parse_override(text));
    let house = House::new(home, said.collect::<Result<Vec<_>, _>>()?);
    let house = if options.ignore_rules { house.without_rules() } else { house };
    let house = house.hiding(options.hidden.clone());
    let house = match &options.bound {
        Some(bound) => house.bounded(bound.clone()),
        None => house,
    };
    Ok(match &options.sandbox_helper {
        Some(helper) => house.with_helper(helper.clone()),
        None => house,
    })
}

/// An engine that serves whoever connects to it.
pub fn engine_service(options: &EngineOptions) -> Result<Service, EngineError> {
    let house = engine_house(options)?;
    let disk = Disk::new(house.codex_home());
    let usual = ServiceSettings::default();
    let settings = ServiceSettings { source: options.source.unwrap_or(usual.source), ..usual };
    Ok(Service::start(Arc::new(house), Arc::new(disk), settings))
}

/// Starts the engine in this process and connects to it.
pub async fn start_engine(options: &EngineOptions) -> Result<Engine, EngineError> {
    let service = engine_service(options)?;
    let (near, far) = memory::pair();
    let (wire, ending) = (service.connect(), service.clone());
    let bridge = tokio::spawn(async move {
        bridge(far, wire).await;
        ending.stop().await;
    });
    let server = AppServer::connect(near, &options.connect).await?;
    Ok(Engine { server, service, bridge })
}

/// An engine in this process and one connection to it, in the protocol's own words.
#[derive(Debug)]
pub struct RawEngine {
    /// Asks it.
    pub peer: Peer,
    /// What it tells, in order.
    pub inbound: mpsc::Receiver<Inbound>,
    service: Service,
    bridge: JoinHandle<()>,
}

impl RawEngine {
    /// Starts the engine. Nobody has greeted it yet. Must be called within a runtime.
    pub fn start(options: &EngineOptions) -> Result<Self, EngineError> {
        let service = engine_service(options)?;
        let (near, far) = memory::pair();
        let bridge = tokio::spawn(bridge(far, service.connect()));
        let (peer, inbound) = Peer::start(near, Bounds::default());
        Ok(Self { peer, inbound, service, bridge })
    }

    /// Ends turns, threads and commands, and waits until nothing is left.
    pub async fn close(self) {
        // What is still told must not hold the end up.
        drop(self.inbound);
        self.peer.close().await;
        self.service.stop().await;
        // A panic there was told by the runtime already.
        let _ = self.bridge.await;
    }
}

/// Carries lines between the client's end and the engine's.
async fn bridge(far: Transport, wire: Wire) {
    let Transport { outgoing, mut incoming, closer, .. } = far;
    let Wire { incoming: to_engine, outgoing: mut from_engine, over } = wire;
    let inward = async {
        while let Some(line) = incoming.recv().await {
            let line = match line {
                FromClient::Line(line) => Incoming::Line(line),
                FromClient::TooLong { head, bytes } => Incoming::TooLong { head, bytes },
                FromClient::End(_) => break,
            };
            if to_engine.send(line).await.is_err() {
                break;
            }
        }
        drop(to_engine);
        std::future::pending::<()>().await;
    };
    let outward = async {
        while let Some(line) = from_engine.next().await {
            if outgoing.send(line.as_bytes().to_vec()).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        () = outward => {}
        () = inward => {}
    }
    closer.close().await;
}
