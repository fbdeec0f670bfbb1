//! `bindery app-server`: the built-in engine behind Codex's own protocol.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bindery::engine::sandbox::HiddenPaths;
use bindery::engine::service::Service;
use bindery::engine::service::bound::SandboxBound;
use bindery::engine::service::listen::{self, Listen, Token, WsDoor};
use bindery::{EngineOptions, engine_service};
use bindery_daemon::config::Log;
use bindery_daemon::logging;

use crate::config_flags::feature;

/// Serve the built-in engine as an app-server
///
/// Speaks the protocol of `codex app-server`, for every client that speaks it. Standard input and
/// output carry one client, one JSON object a line; sockets carry many, over WebSocket.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AppServer {
    /// Where to listen: `stdio://`, `ws://IP:PORT` or `unix://PATH`; port 0 takes a free one
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    listen: Listen,

    /// The same as `--listen stdio://`
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// A file with the bearer token that WebSocket clients must bring
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Read the token that clients of a socket must bring from the first line of standard input
    #[arg(long, conflicts_with = "token_file")]
    token_stdin: bool,

    /// The most that clients may ask for: `read-only` or `workspace-write`
    #[arg(long, value_name = "MODE")]
    max_sandbox: Option<String>,

    /// A folder that threads must work in, with `--max-sandbox`; may be given several times
    #[arg(long, value_name = "DIR", requires = "max_sandbox")]
    max_root: Vec<PathBuf>,

    /// A name, beside its addresses, that WebSocket clients may call this server by
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// A file or folder that sandboxed commands must not see, nor tools read for the model; may be
    /// given several times
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,

    /// A file or folder in a hidden one that is seen; may be given several times
    #[arg(long, value_name = "PATH", requires = "hide")]
    show: Vec<PathBuf>,

    /// A setting over those of `config.toml`; may be given several times
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(super) config: Vec<String>,

    /// Switch a feature on; `-c features.NAME=true`
    #[arg(long, value_name = "FEATURE")]
    enable: Vec<String>,

    /// Switch a feature off; `-c features.NAME=false`
    #[arg(long, value_name = "FEATURE")]
    disable: Vec<String>,

    /// Accepted for Codex's sake: the engine reports to nobody
    #[arg(long, hide = true)]
    analytics_default_enabled: bool,
}

const EXAMPLES: &str = "\
Examples:
  bindery app-server --listen ws://127.0.0.1:4500
  bindery app-server --listen unix:///run/user/1000/bindery.sock
  bindery app-server --listen ws://0.0.0.0:4500 --token-file token -c model=gpt-5.5

Faults and warnings go to standard error; BINDERY_LOG says what else, such as `info`.";

impl AppServer {
    /// Runs the command until the client hangs up or a signal comes.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        logging::begin(&log(), None)?;
        let token = self.token()?;
        let bound = self
            .max_sandbox
            .as_deref()
            .map(|mode| SandboxBound::of_mode(mode, self.max_root.clone()));
        let bound = bound.transpose().map_err(|why| anyhow::anyhow!("--max-sandbox: {why}"))?;
        let sandbox_helper = crate::helper::program();
        let on = self.enable.iter().map(|name| feature(name, true));
        let off = self.disable.iter().map(|name| feature(name, false));
        let config = self.config.into_iter().chain(on).chain(off).collect();
        let options = EngineOptions {
            config,
            sandbox_helper,
            hidden: hidden(self.hide, self.show, self.token_file.as_deref(), &self.listen),
            bound,
            ..EngineOptions::default()
        };
        match self.listen {
            Listen::Stdio => {
                anyhow::ensure!(
                    token.is_none(),
                    "a token is for clients of a socket; use `--listen`"
                );
                let service = engine_service(&options)?;
                until_signal(&service, listen::stdio(&service)).await?;
            }
            Listen::Ws(address) => {
                let door = WsDoor::open(address, token, self.host).await?;
                tell(&door)?;
                let service = engine_service(&options)?;
                until_signal(&service, door.serve(&service)).await?;
            }
            Listen::Unix(path) => unix(&path, token, &options).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What clients must bring. A command line and a file can be read by whatever runs here, so a
    /// program that starts a server for others gives it on standard input.
    fn token(&self) -> anyhow::Result<Option<Token>> {
        if !self.token_stdin {
            return Ok(self.token_file.as_deref().map(Token::read).transpose()?);
        }
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).context("cannot read standard input")?;
        anyhow::ensure!(!line.trim().is_empty(), "standard input holds no token");
        Ok(Some(Token::new(line.trim())))
    }
}

/// What was named, and what leads to this server: a command that reached it could ask for more than
/// it may do.
fn hidden(
    named: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    token: Option<&Path>,
    listen: &Listen,
) -> HiddenPaths {
    let socket = match listen {
        Listen::Unix(path) => Some(path.as_path()),
        Listen::Stdio | Listen::Ws(_) => None,
    };
    let own = [token, socket].into_iter().flatten().map(Path::to_owned);
    // The folder that this process runs in may not be the command's.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let hidden = named.into_iter().chain(own).map(absolute).collect();
    HiddenPaths::new(hidden).except(shown.into_iter().map(absolute))
}

/// Faults and warnings, unless the environment says what else. Standard output is the protocol's.
fn log() -> Log {
    let said = ["BINDERY_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let filter = said.filter(|said| !said.is_empty()).unwrap_or_else(|| "warn".to_owned());
    Log { filter, ..Log::default() }
}

#[cfg(unix)]
async fn unix(path: &Path, token: Option<Token>, options: &EngineOptions) -> anyhow::Result<()> {
    let door = listen::UnixDoor::open(path, token).await?;
    let service = engine_service(options)?;
    until_signal(&service, door.serve(&service)).await
}

#[cfg(not(unix))]
async fn unix(_: &Path, _: Option<Token>, _: &EngineOptions) -> anyhow::Result<()> {
    anyhow::bail!("there are no unix sockets on this system; use `ws://127.0.0.1:0`")
}

/// Says where it listens as Codex does, so that whoever waits for Codex's words finds them.
fn tell(door: &WsDoor) -> anyhow::Result<()> {
    let address = door.address();
    let mut text = format!(
        "bindery app-server (WebSockets)\n  listening on: ws://{address}\n  \
         readyz: http://{address}/readyz\n  healthz: http://{address}/healthz\n"
    );
    if address.ip().is_loopback() {
        text.push_str("  note: binds localhost only (use SSH port-forwarding for remote access)\n");
    }
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// Serves until the listener is done or a signal comes, then ends everything in order.
async fn until_signal(service: &Service, serve: impl Future<Output = ()>) -> anyhow::Result<()> {
    let signal = signal()?;
    tokio::pin!(serve);
    tokio::select! {
        biased;
        () = signal => {
            service.stopping().cancel();
            serve.await;
        }
        () = &mut serve => {}
    }
    service.stop().await;
    Ok(())
}

#[cfg(unix)]
fn signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut term = listen(SignalKind::terminate())?;
    let mut int = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signal() -> anyhow::Result<impl Future<Output = ()>> {
    Ok(async {
        // An error means that no signal can come.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
