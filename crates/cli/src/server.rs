//! Starting what a command works with: Codex, or the built-in engine.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bindery::client::locate::{self, Located};
use bindery::core::wire::app_server::notification::Body;
use bindery::{AppServer, ConnectOptions, Engine, EngineOptions, Launch, start_engine};

use crate::approval::Asker;
use crate::config_flags::ConfigFlags;
use crate::view::clean::revealed;

/// Which Codex to use.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WhichCodex {
    /// The Codex to use, instead of the one in `BINDERY_CODEX` or on `PATH`
    #[arg(long, value_name = "PATH", help_heading = "Codex")]
    pub(crate) codex: Option<PathBuf>,
}

impl WhichCodex {
    /// Finds it.
    pub(crate) fn locate(&self) -> Result<Located, bindery::Error> {
        locate::locate(self.codex.as_deref())
    }

    /// Whether somebody said which.
    pub(crate) fn is_named(&self) -> bool {
        let variable = std::env::var_os(locate::VARIABLE);
        self.codex.is_some() || variable.is_some_and(|name| !name.is_empty())
    }

    /// Finds it, starts it in a folder with these settings and greets it.
    pub(crate) async fn start(&self, cwd: &Path, config: &[String]) -> anyhow::Result<AppServer> {
        let mut launch = Launch::codex(&self.locate()?);
        launch.cwd = Some(cwd.to_owned());
        let flags = config.iter().flat_map(|setting| ["--config", setting]);
        launch.args.extend(flags.map(Into::into));
        Ok(AppServer::spawn(&launch, &ConnectOptions::default()).await?)
    }
}

/// What runs turns, and its name for people.
pub(crate) struct Running {
    /// How to speak with it.
    pub(crate) server: AppServer,
    /// `codex 0.166.0`, `engine 0.1.0`.
    pub(crate) name: String,
    engine: Option<Engine>,
}

/// What is started where, with which settings.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    /// The folder to work in.
    pub(crate) cwd: &'a Path,
    /// Over those of `config.toml`.
    pub(crate) settings: &'a ConfigFlags,
    /// The sandbox that a flag of its own names.
    pub(crate) mode: Option<&'a str>,
}

impl Start<'_> {
    /// Codex.
    pub(crate) async fn codex(self, which: &WhichCodex) -> anyhow::Result<Running> {
        let config = self.settings.for_codex(self.cwd, self.mode)?;
        let server = which.start(self.cwd, &config).await?;
        let name = format!("codex {}", server.version());
        Ok(Running { server, name, engine: None })
    }

    /// The built-in engine.
    pub(crate) async fn engine(self) -> anyhow::Result<Running> {
        let options = EngineOptions {
            config: self.settings.for_engine(self.cwd, self.mode)?,
            sandbox_helper: crate::helper::program(),
            ..EngineOptions::default()
        };
        let engine = start_engine(&options).await?;
        let name = format!("engine {}", env!("CARGO_PKG_VERSION"));
        Ok(Running { server: engine.server.clone(), name, engine: Some(engine) })
    }

    /// Codex; where there is none and none was named, the engine, and it is said so.
    pub(crate) async fn any(self, which: &WhichCodex) -> anyhow::Result<Running> {
        match which.locate() {
            Err(bindery::Error::NotFound { .. }) if !which.is_named() => {}
            _ => return self.codex(which).await,
        }
        let what = self.model_in_words()?;
        let said = format!("no Codex found: running on the built-in engine{what}\n");
        // Nothing can be done about a stderr that is gone.
        let _ = std::io::stderr().write_all(said.as_bytes());
        self.engine().await
    }

    /// ` with …`: which model the engine would ask.
    fn model_in_words(self) -> anyhow::Result<String> {
        let config = self.settings.overrides();
        let options = EngineOptions { config, ..EngineOptions::default() };
        let outfit = bindery::engine_house(&options)?.outfit(self.cwd);
        let outfit = outfit.map_err(bindery::EngineError::from)?;
        Ok(match outfit.demo {
            true => " with the demo model, which only shows how it works; \
                     set `OPENAI_API_KEY` or name a provider in the config for a real one"
                .to_owned(),
            false => format!(" with {} of {}", outfit.model, outfit.name),
        })
    }
}

impl Running {
    /// Whose questions a person is asked.
    pub(crate) fn asker(&self) -> Asker {
        if self.engine.is_some() { Asker::Engine } else { Asker::Codex }
    }

    /// Says what the engine found wrong with its configuration. What Codex finds is about its own
    /// machine and the doctor's to tell.
    pub(crate) fn warn(&self) {
        let notices = self.engine.iter().flat_map(|engine| engine.server.notices());
        for notice in notices {
            let Body::Notice { method, params } = notice.body else { continue };
            if let ("configWarning", Some(text)) = (method.as_str(), params["summary"].as_str()) {
                let text = revealed(text);
                // Nothing can be done about a stderr that is gone.
                let _ = std::io::stderr().write_all(format!("warning: {text}\n").as_bytes());
            }
        }
    }

    /// Ends it and waits until nothing of it is left.
    pub(crate) async fn close(self) {
        match self.engine {
            Some(engine) => engine.close().await,
            None => drop(self.server.close().await),
        }
    }
}

/// A folder the user named, without links and dots.
pub(crate) fn folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = named.unwrap_or(Path::new("."));
    let folder = path.canonicalize().with_context(|| format!("no folder `{}`", path.display()))?;
    anyhow::ensure!(folder.is_dir(), "`{}` is not a folder", path.display());
    Ok(folder)
}
