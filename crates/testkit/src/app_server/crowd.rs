//! A server for many threads at once, whose turns do what their prompts say.
//!
//! A [`Script`](super::Script) is one line of events; a pool needs servers that answer whoever
//! asks. Several servers of one [`Crowd`] share its threads as Codex processes share a home: a
//! thread that one has loaded is refused to the others.

mod session;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use session::Session;

/// What a turn does; written as JSON, it is the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Part {
    /// Stands before every piece of text, so that a stray piece shows whose it is.
    pub tag: String,
    /// Pieces of text, `tag#0 tag#1 …`.
    pub say: usize,
    /// Commands to be approved, one after the other, before the text.
    pub ask: usize,
    /// Milliseconds before each of these.
    pub pause: u64,
    /// Each piece says when it was said, in microseconds since 1970: `tag#0@1700000000000000 …`.
    pub stamp: bool,
    /// How it ends.
    pub end: Ending,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Well.
    #[default]
    Complete,
    /// With an error.
    Fail,
    /// Not before it is interrupted.
    Hang,
    /// Not even when it is interrupted.
    Deaf,
    /// With the whole server.
    Crash,
}

impl Part {
    /// The prompt.
    pub fn prompt(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A piece of its text, said now.
    fn piece(&self, number: usize) -> String {
        let stamp = if self.stamp { format!("@{}", micros()) } else { String::new() };
        format!("{}#{number}{stamp} ", self.tag)
    }

    /// How long ago the pieces in a text were said, and the text without those stamps.
    pub fn unstamped(text: &str) -> (Vec<Duration>, String) {
        let (mut ages, mut plain) = (Vec::new(), String::new());
        for word in text.split_inclusive(' ') {
            match word.trim_end().split_once('@').map(|(said, at)| (said, at.parse::<u64>())) {
                Some((said, Ok(at))) => {
                    ages.push(Duration::from_micros(micros().saturating_sub(at)));
                    plain.push_str(said);
                    plain.push(' ');
                }
                _ => plain.push_str(word),
            }
        }
        (ages, plain)
    }

    /// The text it says when it ends well, without stamps.
    pub fn text(&self) -> String {
        (0..self.say).map(|piece| format!("{}#{piece} ", self.tag)).collect()
    }
}

/// Servers that share a home.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    home: Arc<Mutex<Home>>,
    start: Duration,
    any_thread: bool,
}

/// What the servers saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Servers that run.
    pub servers: usize,
    /// Servers that ever ran.
    pub served: usize,
    /// The most servers that ran at a time.
    pub most_servers: usize,
    /// Turns that run, on all servers.
    pub turns: usize,
    /// The most turns that ran on one server at a time.
    pub most_turns: usize,
    /// The most threads that one server was starting at a time.
    pub most_starts: usize,
    /// Threads started.
    pub started: usize,
    /// Threads resumed.
    pub resumed: usize,
    /// Threads no longer listened to.
    pub unsubscribed: usize,
    /// Threads deleted.
    pub deleted: usize,
    /// Threads that are loaded somewhere.
    pub loaded: usize,
    /// What a client should not have done.
    pub faults: BTreeSet<String>,
}

impl Crowd {
    /// A thread takes so long to start.
    pub fn starting_in(mut self, time: Duration) -> Self {
        self.start = time;
        self
    }

    /// Threads are resumed that nobody has heard of: servers in other processes may have.
    pub fn with_any_thread(mut self) -> Self {
        self.any_thread = true;
        self
    }

    /// Serves one client until it leaves or a turn crashes the server; true if one did.
    pub async fn serve(
        &self,
        from: impl AsyncRead + Send + Unpin,
        to: impl AsyncWrite + Send + Unpin,
    ) -> bool {
        Session::new(self.clone()).run(from, to).await
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        let home = self.home();
        let mut seen = home.seen.clone();
        seen.servers = home.running.len();
        seen.turns = home.running.values().sum();
        seen.loaded = home.threads.values().filter(|thread| thread.holder.is_some()).count();
        seen
    }

    fn home(&self) -> MutexGuard<'_, Home> {
        self.home.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros().try_into().unwrap_or(u64::MAX))
}

#[derive(Debug, Default)]
struct Home {
    next: u64,
    threads: HashMap<String, Thread>,
    /// Turns that run, by server.
    running: BTreeMap<u64, usize>,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Thread {
    holder: Option<u64>,
    ran: bool,
    subscribed: bool,
    active: bool,
}

impl Home {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A server comes.
    fn join(&mut self) -> u64 {
        let server = self.number();
        self.running.insert(server, 0);
        self.seen.served += 1;
        self.seen.most_servers = self.seen.most_servers.max(self.running.len());
        server
    }

    /// A thread begins.
    fn thread(&mut self, server: u64) -> String {
        let thread = format!("thread-{}-{}", std::process::id(), self.number());
        let record = Thread { holder: Some(server), subscribed: true, ..Thread::default() };
        self.threads.insert(thread.clone(), record);
        self.seen.started += 1;
        thread
    }

    fn resume(&mut self, server: u64, thread: &str, any: bool) -> Result<(), String> {
        if any && !self.threads.contains_key(thread) {
            self.threads.insert(thread.to_owned(), Thread::default());
        }
        let Some(record) = self.threads.get_mut(thread) else {
            return Err(format!("no rollout found for thread id {thread}"));
        };
        if record.holder.is_some_and(|holder| holder != server) {
            return Err(format!("thread {thread} already has an active writer"));
        }
        (record.holder, record.subscribed) = (Some(server), true);
        self.seen.resumed += 1;
        Ok(())
    }

    fn fault(&mut self, fault: &str) {
        self.seen.faults.insert(fault.to_owned());
    }

    fn begin(&mut self, server: u64, thread: &str) {
        let record = self.threads.entry(thread.to_owned()).or_default();
        let fault = match record {
            Thread { holder, .. } if *holder != Some(server) => Some("is not loaded here"),
            Thread { active: true, .. } => Some("runs already"),
            Thread { subscribed: false, .. } => Some("is listened to by nobody"),
            _ => None,
        };
        (record.ran, record.active) = (true, true);
        if let Some(fault) = fault {
            self.fault(&format!("a turn on a thread that {fault}"));
        }
        let running = self.running.entry(server).or_default();
        *running += 1;
        self.seen.most_turns = self.seen.most_turns.max(*running);
    }

    fn end(&mut self, server: u64, thread: &str) {
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.active = false;
        }
        if let Some(running) = self.running.get_mut(&server) {
            *running -= 1;
        }
    }
}
