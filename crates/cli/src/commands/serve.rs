//! `bindery serve`: Codex for many, over HTTP.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bindery::engine::sandbox::{Mechanism, Sandbox};
use bindery_daemon::config::{Backend, Config, Flags};
use bindery_daemon::logging;
use bindery_daemon::private;
use bindery_daemon::serve::{Leave, Server, check};
use bindery_daemon::traces::Traces;
use bindery_daemon::workers::Program;
use serde_json::json;

use crate::failure::Hinted;

/// Serve Codex to many users over HTTP
///
/// Turns belong to the server: they go on when a client leaves, and when the server is restarted.
/// The first start makes a tenant and a token, which is shown once. A flag is stronger than the
/// environment (`BINDERY_LISTEN`, `BINDERY_DATA` …), which is stronger than the file.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Where to listen [default: 127.0.0.1:4747]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Where everything is kept [default: one for this folder among your data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Settings, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder that the first tenant's threads work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// What runs threads that do not choose: codex, engine or auto
    #[arg(long, value_parser = backend)]
    backend: Option<Backend>,
    /// The Codex to use, instead of the one in `BINDERY_CODEX` or on `PATH`
    #[arg(long, value_name = "PATH")]
    codex: Option<PathBuf>,
    /// End, with all workers, when the standard input ends
    #[arg(long)]
    exit_with_parent: bool,
    /// Keep everything in a temporary folder, removed at the end
    #[arg(long, conflicts_with = "data")]
    ephemeral: bool,
    /// Print one line of JSON when ready: url, token, pid, backend
    #[arg(long)]
    announce: bool,
    /// Send traces to a collector, by OTLP over HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Log as JSON, one object a line
    #[arg(long)]
    log_json: bool,
    /// Look whether everything is in order, and serve nothing
    #[arg(long)]
    check: bool,
}

impl Serve {
    /// Runs the command, on a runtime of its own.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let thread = std::thread::spawn(move || self.runtime()?.block_on(self.serve()));
        thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the server panicked")))
    }

    /// A server uses all processors. An app's own daemon works for one process, which a single
    /// thread does with less effort: nothing has to be carried from one core to another.
    fn runtime(&self) -> std::io::Result<tokio::runtime::Runtime> {
        let mut builder = match self.exit_with_parent {
            true => tokio::runtime::Builder::new_current_thread(),
            false => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.enable_all().build()
    }

    async fn serve(self) -> anyhow::Result<ExitCode> {
        let temporary = self.ephemeral.then(tempfile::tempdir).transpose()?;
        let data = temporary.as_ref().map(|folder| folder.path().join("data"));
        let flags = Flags {
            listen: self.listen,
            data: data.or(self.data.clone()),
            root: self.root.clone(),
            backend: self.backend,
            codex: self.codex.clone(),
            otlp: self.otlp.clone(),
            log_json: self.log_json,
            exit_with_parent: self.exit_with_parent,
        };
        let env = |name: &str| std::env::var(name).ok();
        let mut config = Config::load(self.config.as_deref(), env, flags).map_err(hinted)?;
        if let Some(folder) = &temporary {
            // It goes with what it opens.
            config.store.key_file = Some(folder.path().join("store.key"));
        }
        if !self.exit_with_parent {
            private::keep_to_ourselves();
        }
        if self.check {
            return show_check(config).await;
        }
        let traces = config.traces.otlp.as_deref().map(Traces::to).transpose();
        let traces = traces.map_err(hinted)?;
        logging::begin(&config.log, traces.as_ref()).map_err(hinted)?;
        let server = Server::start(config, Program::current()?).await.map_err(hinted)?;
        self.tell(&server).await?;
        let stop = stop(self.exit_with_parent, self.ephemeral)?;
        let served = server.run(stop).await;
        if let Some(traces) = traces {
            traces.end().await;
        }
        served.map_err(hinted)?;
        Ok(ExitCode::SUCCESS)
    }

    async fn tell(&self, server: &Server) -> anyhow::Result<()> {
        let address = server.address()?;
        let backend = server.app().runner.workers().describe().await;
        if self.announce {
            let token = server.announced_token().await.map_err(hinted)?;
            let line = json!({
                "url": format!("http://{address}"),
                "token": token,
                "pid": std::process::id(),
                "backend": backend,
            });
            let mut out = std::io::stdout();
            writeln!(out, "{line}")?;
            return Ok(out.flush()?);
        }
        let mut err = std::io::stderr();
        writeln!(err, "Serving {backend} at http://{address}")?;
        if let Some(token) = &server.first_token {
            writeln!(err, "Token, shown this once and kept nowhere: {token}")?;
        }
        Ok(())
    }
}

/// Looks, and tells what there is.
async fn show_check(config: Config) -> anyhow::Result<ExitCode> {
    let listen = config.listen;
    let found = check(config, Program::current()?).await.map_err(hinted)?;
    let tenants = match found.known {
        Some((tenants, tokens)) => format!("{tenants}, with {tokens} valid tokens"),
        None => "the first start makes one, and a token".to_owned(),
    };
    let mut problems = found.problems;
    let mut sandbox = String::new();
    if found.backend.starts_with("engine")
        && let Some(helper) = crate::helper::program()
    {
        let mechanism = Sandbox::detect(helper, Vec::new()).mechanism().clone();
        sandbox = format!("sandbox  {}\n", mechanism.name());
        if mechanism == Mechanism::None {
            let why = "no sandbox works here, so every command is asked for; install bubblewrap, \
                       or allow user namespaces";
            problems.push(why.to_owned());
        }
    }
    let running = if found.running { ", in use by a daemon that runs" } else { "" };
    let text = format!(
        "listen   {listen}\ndata     {}{running}\nbackend  {}\n{sandbox}tenants  {tenants}\n",
        found.data.display(),
        found.backend
    );
    let (end, code) = match problems.is_empty() {
        true => ("everything is in order\n".to_owned(), ExitCode::SUCCESS),
        false => {
            let lines = problems.iter().map(|problem| format!("problem: {problem}\n"));
            (lines.collect(), ExitCode::FAILURE)
        }
    };
    std::io::stdout().write_all(format!("{text}{end}").as_bytes())?;
    Ok(code)
}

/// What the server says, with its hint.
pub(crate) fn hinted(err: bindery_daemon::error::Error) -> anyhow::Error {
    match err.hint() {
        Some(hint) => {
            let mut message = err.to_string();
            let mut cause = std::error::Error::source(&err);
            while let Some(source) = cause {
                message.push_str(&format!(": {source}"));
                cause = source.source();
            }
            Hinted { message, hint, misuse: false }.into()
        }
        None => err.into(),
    }
}

fn backend(word: &str) -> Result<Backend, String> {
    match word {
        "auto" => Ok(Backend::Auto),
        "codex" => Ok(Backend::Codex),
        "engine" => Ok(Backend::Engine),
        _ => Err("use codex, engine or auto".to_owned()),
    }
}

/// Ctrl-C ends everything; a polite end by the system leaves the workers to the next daemon.
fn stop(
    with_parent: bool,
    ephemeral: bool,
) -> anyhow::Result<impl Future<Output = Leave> + Send + 'static> {
    let mut parent = with_parent.then(closed_input);
    #[cfg(unix)]
    let mut term = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate())?
    };
    Ok(async move {
        let closed = async {
            match parent.take() {
                Some(parent) => drop(parent.await),
                None => std::future::pending().await,
            }
        };
        #[cfg(unix)]
        let terminated = term.recv();
        #[cfg(not(unix))]
        let terminated = std::future::pending::<()>();
        tokio::select! {
            _ = tokio::signal::ctrl_c() => Leave::Nothing,
            () = closed => Leave::Nothing,
            _ = terminated => if ephemeral { Leave::Nothing } else { Leave::Workers },
        }
    })
}

/// Done when our standard input has ended.
fn closed_input() -> tokio::sync::oneshot::Receiver<()> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // A thread and not a task: reading the input cannot be given up, and the runtime would wait.
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(count) if count > 0) {}
        let _ = sender.send(());
    });
    receiver
}
