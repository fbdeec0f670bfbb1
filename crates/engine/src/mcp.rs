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

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use serde_json::json;

pub(crate) use self::server::{Called, Offered, Server};
pub use self::settings::{ServerSettings, Way, read};
use crate::turn::voice::Voice;

/// The servers of one thread.
pub(crate) struct Servers {
    slots: tokio::sync::Mutex<Vec<Slot>>,
    /// Where they run that say nothing else.
    cwd: PathBuf,
    /// Tools that a person has said yes to, for the whole thread.
    allowed: Mutex<HashSet<(String, String)>>,
}

struct Slot {
    settings: ServerSettings,
    namespace: String,
    state: State,
}

enum State {
    Idle,
    Up(Arc<Server>),
    /// It did not start, and is not tried again.
    Down,
}

impl Servers {
    /// The servers of a thread; none where none are configured, which then cost nothing.
    pub(crate) fn new(settings: Vec<ServerSettings>, cwd: PathBuf) -> Option<Arc<Self>> {
        if settings.is_empty() {
            return None;
        }
        let mut taken = HashSet::new();
        let slots = settings.into_iter().map(|settings| {
            let namespace = name::namespace(&settings.name, &mut taken);
            Slot { settings, namespace, state: State::Idle }
        });
        let slots = tokio::sync::Mutex::new(slots.collect());
        Some(Arc::new(Self { slots, cwd, allowed: Mutex::default() }))
    }

    /// Starts those that do not run yet, all at once, and gives those that do. Dropped before its
    /// end, it ends those that were being started.
    pub(crate) async fn ready(&self, voice: &Voice) -> Vec<Arc<Server>> {
        let mut slots = self.slots.lock().await;
        join_all(slots.iter_mut().map(|slot| slot.ready(voice, &self.cwd))).await;
        let up = slots.iter().filter_map(|slot| match &slot.state {
            State::Up(server) => Some(Arc::clone(server)),
            State::Idle | State::Down => None,
        });
        up.collect()
    }

    /// Ends all of them, and waits.
    pub(crate) async fn end(&self) {
        let slots = std::mem::take(&mut *self.slots.lock().await);
        let ending = slots.into_iter().map(|slot| async move {
            if let State::Up(server) = slot.state {
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

impl Slot {
    async fn ready(&mut self, voice: &Voice, cwd: &std::path::Path) {
        match &self.state {
            State::Idle => {}
            State::Up(server) if server.is_gone() => {
                server.end().await;
                self.state = State::Idle;
            }
            State::Up(_) | State::Down => return,
        }
        let name = self.settings.name.clone();
        tell(voice, &name, "starting", None);
        match Server::start(&self.settings, &self.namespace, cwd).await {
            Ok(server) => {
                self.state = State::Up(Arc::new(server));
                tell(voice, &name, "ready", None);
            }
            Err(why) => {
                self.state = State::Down;
                let why = format!("the MCP server `{name}` did not start: {why}");
                tell(voice, &name, "failed", Some(&why));
            }
        }
    }
}

fn tell(voice: &Voice, name: &str, status: &str, error: Option<&str>) {
    let params = json!({ "name": name, "status": status, "error": error, "failureReason": null });
    voice.tell_thread("mcpServer/startupStatus/updated", params);
}
