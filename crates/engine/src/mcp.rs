//! MCP servers of a thread: started when its first turn needs them, ended with it.
//!
//! `Servers` holds those of one thread. A server that cannot be started is told of and left out;
//! one that has died is started again with the next turn. Whatever a server starts ends with it.

mod connect;

mod handler;

mod name;

mod process;

mod server;

mod settings;

mod status;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use self::handler::Speaker;
pub(crate) use self::server::{Called, Offered, Server};
pub use self::settings::{ServerSettings, Way, read};
pub(crate) use self::status::Detail;

/// The servers of one thread.
pub(crate) struct Servers {
    slots: tokio::sync::Mutex<Vec<Slot>>,
    /// Where they run that say nothing else.
    cwd: PathBuf,
    /// Tools that a person has said yes to, for the whole thread.
    allowed: Mutex<HashSet<(String, String)>>,
    /// The thread is over; nothing is started any more.
    over: CancellationToken,
}

struct Slot {
    settings: ServerSettings,
    namespace: String,
    state: State,
}

enum State {
    Idle,
    Up(Arc<Server>),
    /// It did not start, for this reason, and is not tried again.
    Down(String),
    /// It is switched off.
    Off,
}

/// Hears how servers start: the name, the status, what went wrong.
pub(crate) type Told<'a> = &'a (dyn Fn(Value) + Sync);

impl Servers {
    /// The servers of a thread; none where none are configured, which then cost nothing.
    pub(crate) fn new(settings: Vec<ServerSettings>, cwd: PathBuf) -> Option<Arc<Self>> {
        if settings.is_empty() {
            return None;
        }
        let mut taken = HashSet::new();
        let slots = settings.into_iter().map(|settings| {
            let namespace = name::namespace(&settings.name, &mut taken);
            let state = if settings.enabled { State::Idle } else { State::Off };
            Slot { settings, namespace, state }
        });
        let slots = tokio::sync::Mutex::new(slots.collect());
        let over = CancellationToken::new();
        Some(Arc::new(Self { slots, cwd, allowed: Mutex::default(), over }))
    }

    /// Starts those that do not run yet, all at once, and gives those that do. Dropped before its
    /// end, it ends those that were being started.
    pub(crate) async fn ready(&self, told: Told<'_>) -> Vec<Arc<Server>> {
        let mut slots = self.slots.lock().await;
        let starting = join_all(slots.iter_mut().map(|slot| slot.ready(told, &self.cwd)));
        tokio::select! {
            biased;
            () = self.over.cancelled() => return Vec::new(),
            _ = starting => {}
        }
        slots.iter().filter_map(|slot| slot.state.server().cloned()).collect()
    }

    /// What is known of each, as far as it runs. Those that run are asked what they have.
    pub(crate) async fn status(&self, detail: Detail, only: Option<&str>) -> Vec<Value> {
        let slots = self.slots.lock().await;
        let wanted = slots.iter().filter(|slot| only.is_none_or(|name| name == slot.settings.name));
        join_all(wanted.map(|slot| status::of(&slot.settings, &slot.state, detail))).await
    }

    /// Ends all of them, and waits.
    pub(crate) async fn end(&self) {
        self.over.cancel();
        let slots = std::mem::take(&mut *self.slots.lock().await);
        let ending = slots.into_iter().map(|slot| async move {
            if let Some(server) = slot.state.server() {
                server.end().await;
            }
        });
        join_all(ending).await;
    }

    /// A person said yes to a tool for the whole thread.
    pub(crate) fn allow(&self, server: &str, tool: &str) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.insert((server.to_owned(), tool.to_owned()));
    }

    /// Whether a person did.
    pub(crate) fn is_allowed(&self, server: &str, tool: &str) -> bool {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.contains(&(server.to_owned(), tool.to_owned()))
    }
}

impl State {
    fn server(&self) -> Option<&Arc<Server>> {
        match self {
            Self::Up(server) => Some(server),
            Self::Idle | Self::Down(_) | Self::Off => None,
        }
    }
}

impl Slot {
    async fn ready(&mut self, told: Told<'_>, cwd: &std::path::Path) {
        match &self.state {
            State::Idle => {}
            State::Up(server) if server.is_gone() => {
                server.end().await;
                self.state = State::Idle;
            }
            State::Up(_) | State::Down(_) | State::Off => return,
        }
        let name = self.settings.name.clone();
        told(startup(&name, "starting", None));
        match Server::start(&self.settings, &self.namespace, cwd).await {
            Ok(server) => {
                self.state = State::Up(Arc::new(server));
                told(startup(&name, "ready", None));
            }
            Err(why) => {
                let said = format!("the MCP server `{name}` did not start: {why}");
                self.state = State::Down(why);
                told(startup(&name, "failed", Some(&said)));
            }
        }
    }
}

/// The notification of how servers start.
pub(crate) const STARTUP: &str = "mcpServer/startupStatus/updated";

fn startup(name: &str, status: &str, error: Option<&str>) -> Value {
    json!({ "name": name, "status": status, "error": error, "failureReason": null })
}
