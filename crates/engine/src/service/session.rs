//! One client: its greeting, its requests in their order, its answers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindery_core::wire::rpc::{self, Head, Message, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::connection::{Connection, Incoming, LINE_LIMIT};
use super::ears::{Client, ConnectionId, Ear};
use super::line;
use super::methods::{self, Run};
use super::outbox::Outbox;
use super::refused::Refused;
use super::serve::{self, Cx, Reply};
use super::{CODEX_VERSION, Inner};
use crate::outlet::Refusal;

/// Requests that may wait; beyond that the server says that it is overloaded.
const WAITING: usize = 128;

/// Bytes of all requests that wait.
const WAITING_BYTES: usize = 64 << 20;

/// Requests that run beside each other.
const BESIDE: usize = 32;

/// How long the last requests of a client that is gone may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves one connection to its end.
pub(crate) async fn run(inner: Arc<Inner>, id: ConnectionId, connection: Connection) {
    let Connection { mut incoming, outbox, over } = connection;
    let (jobs, queue) = mpsc::channel(WAITING);
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut desk = Reception { inner: inner.clone(), id, outbox, jobs, waiting, ear: None };
    let read = async {
        while let Some(incoming) = incoming.recv().await {
            desk.hear(incoming);
        }
        drop(desk);
        // What was asked before the client hung up is still done, within reason: it may have been
        // a pipe.
        tokio::time::sleep(FAREWELL).await;
    };
    let serve = async {
        tokio::select! {
            biased;
            () = work(queue) => {}
            () = read => {}
        }
    };
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        () = inner.stop.cancelled() => {}
        () = serve => {}
    }
    inner.forget(id);
}

/// A request that waits to be served.
struct Job {
    cx: Cx,
    id: RequestId,
    method: String,
    run: Run,
    params: Box<RawValue>,
    waiting: Arc<AtomicUsize>,
}

/// Sorts what a client sends: greetings and answers at once, requests into the queue.
struct Reception {
    inner: Arc<Inner>,
    id: ConnectionId,
    outbox: Outbox,
    jobs: mpsc::Sender<Job>,
    waiting: Arc<AtomicUsize>,
    ear: Option<Arc<Ear>>,
}

impl Reception {
    fn hear(&mut self, incoming: Incoming) {
        let line = match incoming {
            Incoming::Line(line) => line,
            Incoming::TooLong { head, bytes } => return self.too_long(&head, bytes),
        };
        match rpc::decode(&line) {
            Message::Request { id, method, params } => {
                if let Err(refused) = self.request(&id, method, params) {
                    self.outbox.put(line::refusal(&id, &refused));
                }
            }
            Message::Response { id, result } => {
                self.answered(&id, Ok(serde_json::from_str(result.get()).unwrap_or_default()));
            }
            Message::Error { id, error } => {
                self.answered(&id, Err(Refusal { why: error.message }));
            }
            Message::Notification { method, .. } => tracing::debug!(method, "told"),
            // Codex answers such a line with nothing but a word in its log.
            Message::Unknown { why, bytes, .. } => {
                tracing::error!(bytes, why, "a line that cannot be read");
            }
        }
    }

    fn too_long(&self, head: &[u8], bytes: u64) {
        let why = format!(
            "Invalid request: {bytes} bytes in one message; at most {LINE_LIMIT} are taken"
        );
        match rpc::decode_head(head) {
            Head::Request(id) => {
                self.outbox.put(line::refusal(&id, &Refused::invalid(why)));
            }
            Head::Reply(id) => self.answered(&id, Err(Refusal { why })),
            Head::Other => tracing::error!(bytes, "a line that is too long"),
        }
    }

    fn answered(&self, id: &RequestId, answer: Result<Value, Refusal>) {
        match id {
            RequestId::Number(number) => self.inner.desk.answer(self.id, *number, answer),
            RequestId::Text(text) => tracing::debug!(text, "an answer to no question of ours"),
        }
    }

    fn request(
        &mut self,
        id: &RequestId,
        method: String,
        params: Box<RawValue>,
    ) -> Result<(), Refused> {
        let Some(run) = methods::served(&method) else {
            return Err(match methods::LEFT_OUT.contains(&method.as_str()) {
                true if self.ear.is_none() => Refused::invalid("Not initialized"),
                true => Refused::not_served(&method),
                false => Refused::invalid(methods::unknown(&method)),
            });
        };
        if method == "initialize" {
            let result = self.greet(&params)?;
            self.outbox.put(line::reply(id, &result));
            return Ok(());
        }
        let Some(ear) = &self.ear else { return Err(Refused::invalid("Not initialized")) };
        let bytes = params.get().len();
        let before = self.waiting.fetch_add(bytes, Ordering::AcqRel);
        let (id, waiting) = (id.clone(), self.waiting.clone());
        let cx = Cx { inner: self.inner.clone(), ear: ear.clone() };
        let job = Job { cx, id, method, run, params, waiting };
        if before > 0 && before + bytes > WAITING_BYTES {
            return Err(Refused::overloaded());
        }
        self.jobs.try_send(job).map_err(|_| Refused::overloaded())
    }

    fn greet(&mut self, params: &RawValue) -> Result<Value, Refused> {
        let hello: Hello = serve::read(params)?;
        if self.ear.is_some() {
            return Err(Refused::invalid("Already initialized"));
        }
        let Hello { client_info, capabilities } = hello;
        let capabilities = capabilities.unwrap_or_default();
        let deaf_to = capabilities.opt_out_notification_methods.unwrap_or_default();
        let client = Client { name: client_info.name, version: client_info.version };
        let agent = user_agent(&client);
        let ear = Arc::new(Ear {
            id: self.id,
            outbox: self.outbox.clone(),
            deaf_to,
            client,
            experimental: capabilities.experimental_api,
        });
        self.inner.ears.add(ear.clone());
        self.ear = Some(ear);
        Ok(json!({
            "userAgent": agent,
            "codexHome": self.inner.home,
            "platformFamily": std::env::consts::FAMILY,
            "platformOs": std::env::consts::OS,
        }))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.params.get().len(), Ordering::AcqRel);
    }
}

/// Serves requests: those with an order in it, the others beside each other.
async fn work(mut queue: mpsc::Receiver<Job>) {
    let mut beside = JoinSet::new();
    while let Some(job) = queue.recv().await {
        match job.run {
            Run::InOrder => serve_one(job).await,
            Run::Beside => {
                if beside.len() >= BESIDE {
                    beside.join_next().await;
                }
                beside.spawn(serve_one(job));
            }
        }
        while beside.try_join_next().is_some() {}
    }
    while beside.join_next().await.is_some() {}
}

async fn serve_one(job: Job) {
    let outbox = &job.cx.ear.outbox;
    match serve::serve(&job.cx, &job.method, &job.params).await {
        Ok(Reply { result, after }) => {
            outbox.put(line::reply(&job.id, &result));
            if let Some(after) = after {
                after();
            }
        }
        Err(refused) => outbox.put(line::refusal(&job.id, &refused)),
    }
}

/// Codex tells its version in here and nowhere else, so ours is told beside the one we speak.
fn user_agent(client: &Client) -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let ours = env!("CARGO_PKG_VERSION");
    let Client { name, version } = client;
    format!("{name}/{CODEX_VERSION} ({os}; {arch}) bindery-engine/{ours} ({name}; {version})")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hello {
    client_info: ClientInfo,
    #[serde(default)]
    capabilities: Option<Capabilities>,
}

#[derive(Deserialize)]
struct ClientInfo {
    name: String,
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default)]
    experimental_api: bool,
    #[serde(default)]
    opt_out_notification_methods: Option<HashSet<String>>,
}
