//! A running app-server: the requests we use, with types, and turns on its threads.

use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::wire::app_server::input::{ResponseItem, UserInput};
use bindery_core::wire::app_server::notification::Notification;
use bindery_core::wire::app_server::params::{
    InjectItems, OfThread, ThreadFork, ThreadResume, ThreadSettings, ThreadStart, TurnInterrupt,
    TurnStart, TurnSteer,
};
use bindery_core::wire::app_server::reply::{
    Initialized, Model, Page, Steered, Thread, ThreadOpened, ThreadRead, TurnOpened,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::link::{Keeper, Link, Redial};
use crate::packet_log::{self, PacketLog};
use crate::peer::{Bounds, Peer};
use crate::switchboard::Switchboard;
use crate::transport::dial::{self, Dial};
use crate::transport::stdio::{self, Launch};
use crate::transport::{End, Transport};
use crate::turn::{Adoption, Turn, TurnRequest};
use crate::version::Version;

/// How to introduce ourselves, and how long to wait for replies.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Our name; Codex passes it on to the provider as the originator.
    pub client_name: String,
    /// Our name for people.
    pub client_title: Option<String>,
    /// Our version.
    pub client_version: String,
    /// Ask for the experimental API (dynamic tools need it).
    pub experimental: bool,
    /// Notifications that Codex need not send.
    pub opt_out: Vec<String>,
    /// Where every line to and from the server is logged, secrets masked.
    pub packet_log: Option<PacketLog>,
    /// How long a request may take. Starting a thread loads configuration and MCP servers.
    pub request_deadline: Duration,
    /// How long to look for a server that was dialled when its connection is lost; zero for not at
    /// all. Its turns live on meanwhile.
    pub reconnect: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            client_name: "bindery".to_owned(),
            client_title: Some("Bindery".to_owned()),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            experimental: true,
            opt_out: Vec::new(),
            packet_log: None,
            request_deadline: Duration::from_secs(60),
            reconnect: Duration::from_secs(60),
        }
    }
}

/// A connection to an app-server; clones share it.
///
/// When the last clone and the last turn are dropped, a server that we started is ended.
#[derive(Clone, Debug)]
pub struct AppServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    link: Arc<Link>,
    switchboard: Arc<Switchboard>,
    tasks: TaskTracker,
    version: Version,
    hello: Initialized,
    deadline: Duration,
}

impl AppServer {
    /// Starts an app-server as a child process and greets it.
    pub async fn spawn(launch: &Launch, options: &ConnectOptions) -> Result<Self, Error> {
        Self::connect(stdio::spawn(launch)?, options).await
    }

    /// Greets an app-server over a transport. When that ends, so does the connection.
    pub async fn connect(transport: Transport, options: &ConnectOptions) -> Result<Self, Error> {
        Self::over(transport, options, None).await
    }

    /// Greets an app-server that runs already, and reaches it again when the connection is lost.
    ///
    /// Requests under way then fail, new ones wait, and turns go on: what they missed is told when
    /// there is a connection again.
    pub async fn dial(dial: &Dial, options: &ConnectOptions) -> Result<Self, Error> {
        let redial = Redial { dial: dial.clone(), options: options.clone() };
        let redial = Some(redial).filter(|_| !options.reconnect.is_zero());
        Self::over(dial::connect(dial).await?, options, redial).await
    }

    async fn over(
        transport: Transport,
        options: &ConnectOptions,
        redial: Option<Redial>,
    ) -> Result<Self, Error> {
        let transport = match &options.packet_log {
            Some(log) => packet_log::logged(transport, log),
            None => transport,
        };
        let (peer, inbound) = Peer::start(transport, Bounds::default());
        let (switchboard, tasks) = (Arc::new(Switchboard::default()), TaskTracker::new());
        let link = Arc::new(Link::new(peer.clone(), redial.is_some()));
        let keeper = Keeper::new(&link, &switchboard, redial);
        tasks.spawn(keeper.run(peer.downgrade(), inbound));
        let (hello, version) = greet(&peer, options).await?;
        let deadline = options.request_deadline;
        let inner = Inner { link, switchboard, tasks, version, hello, deadline };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The version at the other end.
    pub fn version(&self) -> Version {
        self.inner.version
    }

    /// The server's home folder.
    pub fn codex_home(&self) -> Option<&str> {
        self.inner.hello.codex_home.as_deref()
    }

    /// Process id of the server, if we started one.
    pub fn process(&self) -> Option<u32> {
        self.inner.link.peer().process()
    }

    /// What the server told about itself: configuration warnings, deprecations.
    pub fn notices(&self) -> Vec<Notification> {
        self.inner.switchboard.notices()
    }

    /// Starts a thread.
    pub async fn start_thread(&self, params: &ThreadStart) -> Result<ThreadOpened, Error> {
        self.opened("thread/start", params).await
    }

    /// Opens a thread that ran before.
    pub async fn resume_thread(&self, params: &ThreadResume) -> Result<ThreadOpened, Error> {
        self.opened("thread/resume", params).await
    }

    /// Copies a thread into a new one.
    pub async fn fork_thread(&self, params: &ThreadFork) -> Result<ThreadOpened, Error> {
        self.opened("thread/fork", params).await
    }

    /// A page of threads; `filter` as Codex takes it (`limit`, `cursor`, `cwd`, `archived` …).
    pub async fn list_threads(&self, filter: &Map<String, Value>) -> Result<Page<Thread>, Error> {
        self.request("thread/list", filter).await
    }

    /// A thread without opening it.
    pub async fn read_thread(&self, thread: &ThreadId) -> Result<Thread, Error> {
        let read: ThreadRead = self.request("thread/read", &of(thread)).await?;
        Ok(read.thread)
    }

    /// Puts a thread away.
    pub async fn archive_thread(&self, thread: &ThreadId) -> Result<(), Error> {
        self.done("thread/archive", &of(thread)).await?;
        self.inner.switchboard.forget(thread);
        Ok(())
    }

    /// Names a thread.
    pub async fn name_thread(&self, thread: &ThreadId, name: &str) -> Result<(), Error> {
        self.done("thread/name/set", &json!({ "threadId": thread, "name": name })).await
    }

    /// Appends Responses items to a thread's history without a turn.
    pub async fn inject_items(
        &self,
        thread: &ThreadId,
        items: Vec<ResponseItem>,
    ) -> Result<(), Error> {
        let params = InjectItems { thread_id: thread.clone(), items };
        self.done("thread/inject_items", &params).await
    }

    /// Asks for a compaction, which runs as a turn of its own.
    pub async fn compact_thread(&self, thread: &ThreadId) -> Result<(), Error> {
        self.done("thread/compact/start", &of(thread)).await
    }

    /// Hears no more of a thread; the server keeps it loaded for a while.
    pub async fn unsubscribe(&self, thread: &ThreadId) -> Result<(), Error> {
        self.done("thread/unsubscribe", &of(thread)).await?;
        self.inner.switchboard.forget(thread);
        Ok(())
    }

    /// Has the server unload a thread that nothing runs in, with its MCP servers and whatever else
    /// it left running; false where it must stay, and is only unsubscribed from. It can be resumed.
    ///
    /// Codex 0.166 and 0.169 have no request for it. They unload a thread that is archived, at
    /// once. One that is unsubscribed from stays for 30 minutes, with all its processes.
    pub async fn unload_thread(&self, thread: &ThreadId) -> Result<bool, Error> {
        self.unsubscribe(thread).await?;
        let known = self.read_thread(thread).await?;
        // Without a file there is nothing to resume; an active one has a turn of somebody else's.
        if known.path.is_none() || known.status["type"] != "idle" {
            return Ok(false);
        }
        self.archive_thread(thread).await?;
        self.done("thread/unarchive", &of(thread)).await?;
        Ok(true)
    }

    /// The models to choose from.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let mut models = Vec::new();
        let mut cursor = None;
        // A bound, in case a server pages in circles.
        for _ in 0..64 {
            let params = json!({ "cursor": cursor, "limit": 100 });
            let page: Page<Model> = self.request("model/list", &params).await?;
            models.extend(page.data);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(models)
    }

    /// Starts a turn and gives its parts.
    pub async fn start_turn(&self, request: TurnRequest) -> Result<Turn, Error> {
        Turn::start(self, request, "turn/start").await
    }

    /// Goes on with a turn that a process which is gone has started; of the request, the input and
    /// the settings are not used.
    pub fn adopt_turn(&self, request: TurnRequest, adoption: Adoption) -> Result<Turn, Error> {
        Turn::adopt(self, request, adoption)
    }

    /// Starts a review as a turn; `target` as Codex takes it (`{"type":"uncommittedChanges"}` …).
    pub async fn start_review(&self, request: TurnRequest, target: Value) -> Result<Turn, Error> {
        let mut request = request;
        request.settings.extra.insert("target".to_owned(), target);
        request.settings.extra.insert("delivery".to_owned(), json!("inline"));
        Turn::start(self, request, "review/start").await
    }

    /// Any other request, for what has no method here.
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, Error> {
        self.request_within(method, params, self.inner.deadline).await
    }

    /// Ends the connection, and the server if we started it. Running turns end with an error.
    pub async fn close(&self) -> End {
        let end = self.inner.link.close().await;
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        end
    }

    pub(crate) async fn open_turn(
        &self,
        method: &str,
        params: &TurnStart,
        within: Duration,
    ) -> Result<TurnOpened, Error> {
        self.request_within(method, params, within).await
    }

    pub(crate) async fn steer(
        &self,
        thread: &ThreadId,
        turn: &TurnId,
        input: Vec<UserInput>,
    ) -> Result<TurnId, Error> {
        let (thread_id, expected_turn_id) = (thread.clone(), turn.clone());
        let params = TurnSteer { thread_id, expected_turn_id, input };
        let steered: Steered = self.request("turn/steer", &params).await?;
        Ok(steered.turn_id)
    }

    pub(crate) async fn interrupt(
        &self,
        thread: &ThreadId,
        turn: &TurnId,
        within: Duration,
    ) -> Result<(), Error> {
        let params = TurnInterrupt { thread_id: thread.clone(), turn_id: turn.clone() };
        self.request_within::<Value>("turn/interrupt", &params, within).await.map(drop)
    }

    /// The connection in use; a dead one while another is looked for.
    pub(crate) fn peer(&self) -> Peer {
        self.inner.link.peer()
    }

    /// Fails if the connection is known to be gone.
    pub(crate) async fn check_open(&self) -> Result<(), Error> {
        let peer = self.inner.link.ready().await;
        if !peer.has_ended() {
            return Ok(());
        }
        let End { status, stderr } = peer.ended().await;
        Err(Error::Closed { status, stderr })
    }

    /// Hears of a thread over the connection in use; false for one that cannot be opened because it
    /// has not run yet (0.166 writes it down with its first turn).
    pub(crate) async fn attach(&self, thread: &ThreadId) -> Result<bool, Error> {
        if self.inner.link.is_attached(thread) {
            return Ok(true);
        }
        let settings = ThreadSettings::default();
        let params = ThreadResume { thread_id: thread.clone(), settings, exclude_turns: true };
        match self.resume_thread(&params).await {
            Ok(_) => Ok(true),
            Err(Error::Rpc { message, .. }) if message.contains("no rollout found") => Ok(false),
            Err(err) => Err(err),
        }
    }

    pub(crate) fn switchboard(&self) -> &Arc<Switchboard> {
        &self.inner.switchboard
    }

    pub(crate) fn track(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.tasks.spawn(task);
    }

    async fn done(&self, method: &str, params: &impl Serialize) -> Result<(), Error> {
        self.request::<Value>(method, params).await.map(drop)
    }

    async fn opened(&self, method: &str, params: &impl Serialize) -> Result<ThreadOpened, Error> {
        let opened: ThreadOpened = self.request(method, params).await?;
        self.inner.link.attached(&opened.thread.id);
        Ok(opened)
    }

    async fn request_within<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        within: Duration,
    ) -> Result<T, Error> {
        let begin = Instant::now();
        let Ok(peer) = timeout(within, self.inner.link.ready()).await else {
            return Err(Error::Timeout { what: method.to_owned(), after: within });
        };
        let left = within.saturating_sub(begin.elapsed());
        let reply = peer.request(method, params, left).await?;
        read(method, reply.get())
    }
}

/// Shakes hands; fails if the server is none that we can speak to.
pub(crate) async fn greet(
    peer: &Peer,
    options: &ConnectOptions,
) -> Result<(Initialized, Version), Error> {
    let mut capabilities = json!({ "experimentalApi": options.experimental });
    if options.experimental {
        // Commands that a person must decide (0.169) come as questions instead of being refused.
        capabilities["requiredHumanApproval"] = json!(true);
    }
    if !options.opt_out.is_empty() {
        capabilities["optOutNotificationMethods"] = json!(options.opt_out);
    }
    let params = json!({
        "clientInfo": {
            "name": options.client_name,
            "title": options.client_title,
            "version": options.client_version,
        },
        "capabilities": capabilities,
    });
    let reply = peer.request("initialize", params, options.request_deadline).await?;
    let hello: Initialized = read("initialize", reply.get())?;
    let Some(version) = Version::from_user_agent(&hello.user_agent) else {
        let why = format!("no version in the user agent `{}`", hello.user_agent);
        return Err(Error::Protocol { what: "initialize".to_owned(), why });
    };
    version.check()?;
    peer.notify("initialized", ()).await?;
    Ok((hello, version))
}

fn read<T: DeserializeOwned>(method: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|err| Error::Protocol { what: method.to_owned(), why: err.to_string() })
}

fn of(thread: &ThreadId) -> OfThread {
    OfThread { thread_id: thread.clone() }
}
