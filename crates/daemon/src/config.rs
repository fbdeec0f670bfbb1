//! What the daemon is asked for: a file, then the environment, then flags; the later is stronger.

mod place;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where everything is kept; read without one, it is a folder for the root among the user's
    /// data.
    pub data: PathBuf,
    /// The folder that the first tenant's threads work in; the current one when there is none.
    pub root: Option<PathBuf>,
    /// The Codex home of the first tenant; the user's own when there is none.
    pub codex_home: Option<PathBuf>,
    /// End with the process that started us, and leave nothing behind.
    pub exit_with_parent: bool,
    /// The HTTP server.
    pub http: Http,
    /// The store.
    pub store: StoreConfig,
    /// Codex processes.
    pub workers: WorkerConfig,
    /// Turns and their questions.
    pub turns: TurnConfig,
    /// Webhooks.
    pub webhooks: WebhookConfig,
    /// What is logged, and how.
    pub log: Log,
    /// Who is told what took how long.
    pub traces: TraceConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4747)),
            data: PathBuf::new(),
            root: None,
            codex_home: None,
            exit_with_parent: false,
            http: Http::default(),
            store: StoreConfig::default(),
            workers: WorkerConfig::default(),
            turns: TurnConfig::default(),
            webhooks: WebhookConfig::default(),
            log: Log::default(),
            traces: TraceConfig::default(),
        }
    }
}

/// The HTTP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Names and addresses that requests may be addressed to, beside the one listened on.
    pub hosts: Vec<String>,
    /// Origins that browsers may come from.
    pub origins: Vec<String>,
    /// The longest body, in bytes.
    pub body_limit: usize,
    /// How long a request's head and body may take, in seconds.
    pub read_seconds: u64,
    /// Requests of known callers at a time, streams included.
    pub connections: usize,
    /// Connections beside those: without a request, or with one whose token is not known yet. The
    /// oldest is closed when there are more.
    pub silent_connections: usize,
    /// Of one address, those that have not shown a valid token.
    pub unknown_per_address: usize,
    /// How long a connection may be without its first request, in seconds.
    pub silent_seconds: u64,
    /// Bytes of requests in memory at a time, of all tenants; further ones wait.
    pub request_bytes: u64,
    /// Wrong tokens of one address that are answered at once.
    pub wrong_tokens_per_minute: u32,
    /// How often a quiet stream says that it is alive, in seconds.
    pub keep_alive_seconds: u64,
    /// How long streams may take to end when the server stops, in seconds.
    pub stop_seconds: u64,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            body_limit: 32 << 20,
            read_seconds: 30,
            connections: 4096,
            silent_connections: 2048,
            unknown_per_address: 1536,
            silent_seconds: 10,
            request_bytes: 128 << 20,
            wrong_tokens_per_minute: 30,
            keep_alive_seconds: 15,
            stop_seconds: 10,
        }
    }
}

/// The store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// A confirmed event survives a power failure too; every commit then waits for the disk.
    pub survive_power_failure: bool,
    /// The file with the key that secrets in the store are sealed with, outside of the data folder;
    /// made at the first start. Read without one, it is a file among the user's settings.
    pub key_file: Option<PathBuf>,
    /// Days after which the events of an ended turn are forgotten; zero for never.
    pub retention_days: u32,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { survive_power_failure: false, key_file: None, retention_days: 30 }
    }
}

/// Codex processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// What runs threads that do not choose: `auto` is Codex where it is found, else the engine.
    pub backend: Backend,
    /// The Codex to use; looked for when there is none.
    pub codex: Option<PathBuf>,
    /// Variables of our environment that workers get, beside the usual ones.
    pub pass_env: Vec<String>,
    /// How long workers wait for a daemon that is gone, in seconds.
    pub orphan_seconds: u64,
    /// Turns that one worker runs at a time.
    pub turns: usize,
    /// How long a worker may have nothing to do before it is ended, in seconds.
    pub idle_seconds: u64,
    /// How long a thread may have nothing to do before its worker unloads it, and ends its MCP
    /// servers, in seconds.
    pub idle_thread_seconds: u64,
    /// Bytes of memory of a worker and all its processes; one that has more takes no new turns and
    /// is replaced when those that run are over. Zero for no limit.
    pub memory_limit: u64,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            codex: None,
            pass_env: Vec::new(),
            orphan_seconds: 15 * 60,
            turns: 64,
            idle_seconds: 10 * 60,
            idle_thread_seconds: 5 * 60,
            memory_limit: 2 << 30,
        }
    }
}

/// What runs threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Codex where it is found, else the engine.
    #[default]
    Auto,
    /// Codex.
    Codex,
    /// The native engine.
    Engine,
}

/// Turns and their questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnConfig {
    /// How long a question may wait for its answer, in seconds.
    pub answer_seconds: u64,
    /// How long a turn may make no progress, in seconds.
    pub idle_seconds: u64,
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self { answer_seconds: 24 * 60 * 60, idle_seconds: 30 * 60 }
    }
}

/// Webhooks that are told of something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// How often a delivery is tried.
    pub attempts: NonZeroU32,
    /// The pause after the first try, in seconds; each is twice the one before, up to an hour.
    #[serde(deserialize_with = "seconds")]
    pub pause_seconds: f64,
    /// How long a receiver may take, in seconds.
    #[serde(deserialize_with = "seconds")]
    pub answer_seconds: f64,
}

/// A time that passes, and not more than an hour of it.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    if seconds > 0.0 && seconds <= 3600.0 {
        return Ok(seconds);
    }
    Err(D::Error::custom(format!("{seconds} seconds: give more than 0 and at most 3600")))
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            attempts: const { NonZeroU32::new(10).unwrap() },
            pause_seconds: 2.0,
            answer_seconds: 10.0,
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// As JSON, one object a line.
    pub json: bool,
    /// Which events: `info`, `bindery_daemon=debug` …
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { json: false, filter: "info".to_owned() }
    }
}

/// Who is told what took how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceConfig {
    /// A collector that takes OTLP over HTTP, `http://127.0.0.1:4318`; nobody when there is none.
    pub otlp: Option<String>,
}

/// What flags say; they are stronger than the environment and the file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// `--root`.
    pub root: Option<PathBuf>,
    /// `--backend`.
    pub backend: Option<Backend>,
    /// `--codex`.
    pub codex: Option<PathBuf>,
    /// `--otlp`.
    pub otlp: Option<String>,
    /// `--log-json`.
    pub log_json: bool,
    /// `--exit-with-parent`.
    pub exit_with_parent: bool,
}

impl Config {
    /// Reads the file, if there is one, then the environment, then the flags.
    pub fn load(
        file: Option<&Path>,
        env: impl Fn(&str) -> Option<String>,
        flags: Flags,
    ) -> Result<Self, Error> {
        let mut config = match file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|err| Error::io(path, err))?;
                toml::from_str(&text).map_err(|err| bad(&path.display().to_string(), err))?
            }
            None => Self::default(),
        };
        config.take_env(&env)?;
        config.take_flags(flags);
        if config.data.as_os_str().is_empty() {
            let root = config.root.as_deref().unwrap_or(Path::new("."));
            let root = std::path::absolute(root).map_err(|err| Error::io(root, err))?;
            config.data = place::usual(&env, &root);
        }
        if config.store.key_file.is_none() {
            config.store.key_file = Some(place::key(&env, &config.data));
        }
        Ok(config)
    }

    /// Whether everything is kept where nobody has said: in the folder of the root.
    pub fn has_usual_data(&self, env: impl Fn(&str) -> Option<String>) -> bool {
        let root = std::path::absolute(self.root.as_deref().unwrap_or(Path::new(".")));
        root.is_ok_and(|root| self.data == place::usual(env, &root))
    }

    /// The folders of other roots among the user's data that hold something of this name.
    pub fn usual_data_with(env: impl Fn(&str) -> Option<String>, name: &str) -> Vec<PathBuf> {
        place::holding(env, name)
    }

    fn take_env(&mut self, env: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        let read = |name: &str| env(name).filter(|value| !value.is_empty());
        if let Some(listen) = read("BINDERY_LISTEN") {
            self.listen = listen.parse().map_err(|err| bad("BINDERY_LISTEN", err))?;
        }
        if let Some(data) = read("BINDERY_DATA") {
            self.data = data.into();
        }
        if let Some(root) = read("BINDERY_ROOT") {
            self.root = Some(root.into());
        }
        if let Some(filter) = read("BINDERY_LOG") {
            self.log.filter = filter;
        }
        if let Some(codex) = read("BINDERY_CODEX") {
            self.workers.codex = Some(codex.into());
        }
        // The usual names, the more special one first.
        let otlp = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        if let Some(otlp) = otlp.or_else(|| read("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            self.traces.otlp = Some(otlp);
        }
        Ok(())
    }

    fn take_flags(&mut self, flags: Flags) {
        self.listen = flags.listen.unwrap_or(self.listen);
        self.data = flags.data.unwrap_or(std::mem::take(&mut self.data));
        self.root = flags.root.or(self.root.take());
        self.workers.backend = flags.backend.unwrap_or(self.workers.backend);
        self.workers.codex = flags.codex.or(self.workers.codex.take());
        self.traces.otlp = flags.otlp.or(self.traces.otlp.take());
        self.log.json |= flags.log_json;
        self.exit_with_parent |= flags.exit_with_parent;
    }

    /// How long a question may wait.
    pub fn answer(&self) -> Duration {
        Duration::from_secs(self.turns.answer_seconds)
    }
}

fn bad(what: &str, err: impl std::fmt::Display) -> Error {
    Error::Config { what: what.to_owned(), why: err.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bindery.toml");
        std::fs::write(&file, "listen = '127.0.0.1:1'\ndata = '/a'\nroot = '/r'").unwrap();
        let env = |name: &str| match name {
            "BINDERY_LISTEN" => Some("127.0.0.1:2".to_owned()),
            "BINDERY_DATA" => Some("/b".to_owned()),
            _ => None,
        };
        let flags = Flags { data: Some("/c".into()), ..Flags::default() };
        let config = Config::load(Some(&file), env, flags).unwrap();
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.data, PathBuf::from("/c"));
        assert_eq!(config.root, Some("/r".into()));
    }

    #[test]
    fn a_name_that_is_not_known_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bindery.toml");
        std::fs::write(&file, "lisen = 1").unwrap();
        let wrong = Config::load(Some(&file), |_| None, Flags::default()).unwrap_err();
        assert!(wrong.to_string().contains("unknown field `lisen`"), "{wrong}");
    }

    #[test]
    fn numbers_that_mean_nothing_are_told() {
        for (line, want) in [
            ("attempts = 0", "nonzero"),
            ("pause_seconds = -1", "give more than 0 and at most 3600"),
            ("answer_seconds = 0", "give more than 0 and at most 3600"),
            ("answer_seconds = nan", "give more than 0 and at most 3600"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("bindery.toml");
            std::fs::write(&file, format!("[webhooks]\n{line}")).unwrap();
            let wrong = Config::load(Some(&file), |_| None, Flags::default()).unwrap_err();
            assert!(wrong.to_string().contains(want), "{line}: {wrong}");
        }
    }
}
