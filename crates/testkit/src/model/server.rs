//! The server: accepts, records, chooses a reply and has its steps played.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;

use super::choice::Choice;
use super::filling::filled;
use super::http;
use super::play::{Played, Voice, play};
use super::script::{Reply, Script, Step};

/// Requests kept for the test to look at; older ones are let go, so that a bench can run on.
const KEPT: usize = 1024;

/// A running scripted model. Dropping it ends it.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body; a string if it was not JSON.
    pub body: Value,
}

impl Model {
    /// Starts a server on a free loopback port.
    ///
    /// # Panics
    /// If no port or thread can be had.
    pub fn start(script: impl Into<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a non-blocking socket");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::new(script.into()));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || run(listener, serving, stopped))
            .expect("a thread for the scripted model");
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// What a provider's `base_url` must be.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests for responses so far, oldest first (the last 1024 of them).
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.iter().cloned().collect()
    }

    /// The bodies of [`Self::requests`].
    pub fn bodies(&self) -> Vec<Value> {
        self.requests().into_iter().map(|request| request.body).collect()
    }

    /// How many requests for responses came.
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Requests no reply applied to; a test that means to be strict asserts that it is empty.
    pub fn unanswered(&self) -> Vec<Request> {
        self.shared.state().unanswered.clone()
    }

    /// Waits until so many requests for responses have come in all.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        wait_for(&self.shared.count, count).await;
        self.requests()
    }

    /// Waits until so many clients left before their answer was complete.
    pub async fn wait_for_hang_ups(&self, count: usize) {
        wait_for(&self.shared.hang_ups, count).await;
    }

    /// Lets one waiting (or future) reply through this gate.
    pub fn open(&self, gate: &str) {
        self.shared.gate(gate).permits.add_permits(1);
    }

    /// Waits until replies have reached this gate so many times in all.
    pub async fn wait_for_gate(&self, gate: &str, count: usize) {
        wait_for(&self.shared.gate(gate).arrivals, count).await;
    }

    /// Answers whatever else is asked at this path, whatever the method, with this status and body.
    pub fn serve_page(&self, path: &str, status: u16, body: Value) {
        self.shared.state().pages.insert(path.to_owned(), (status, body));
    }

    /// Requests for anything but responses, oldest first (the first 1024 of them).
    pub fn visits(&self) -> Vec<Request> {
        self.shared.state().visits.clone()
    }

    /// Adds replies behind those of the script.
    pub fn push(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.state().choice.extend(replies.into_iter().collect());
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // The runtime ends with its thread and takes every open connection with it.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    count: watch::Sender<usize>,
    hang_ups: watch::Sender<usize>,
}

struct State {
    choice: Choice,
    requests: VecDeque<Request>,
    unanswered: Vec<Request>,
    gates: HashMap<String, Arc<Gate>>,
    pages: HashMap<String, (u16, Value)>,
    visits: Vec<Request>,
}

struct Gate {
    permits: Semaphore,
    arrivals: watch::Sender<usize>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(script: Script) -> Self {
        let state = State {
            choice: Choice::new(script),
            requests: VecDeque::new(),
            unanswered: Vec::new(),
            gates: HashMap::new(),
            pages: HashMap::new(),
            visits: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            count: watch::Sender::new(0),
            hang_ups: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn gate(&self, name: &str) -> Arc<Gate> {
        let gate = || Gate { permits: Semaphore::new(0), arrivals: watch::Sender::new(0) };
        let mut state = self.state();
        Arc::clone(state.gates.entry(name.to_owned()).or_insert_with(|| Arc::new(gate())))
    }

    /// Records a visit and finds what there is at this path.
    fn page(&self, request: &Request, path: &str) -> (u16, Value) {
        let mut state = self.state();
        if state.visits.len() < KEPT {
            state.visits.push(request.clone());
        }
        let page = state.pages.get(path).cloned();
        page.unwrap_or_else(|| other(&request.method, path))
    }

    /// Waits until the test opens this gate once more.
    pub(super) async fn pass(&self, name: &str) {
        let gate = self.gate(name);
        gate.arrivals.send_modify(|count| *count += 1);
        if let Ok(permit) = gate.permits.acquire().await {
            permit.forget();
        }
    }

    /// Records a request and finds its number and its reply.
    fn take(&self, request: Request) -> (usize, Reply) {
        let mut state = self.state();
        let reply = state.choice.take(&request).map(|reply| fill(reply, &request.body));
        if reply.is_none() && state.unanswered.len() < KEPT {
            state.unanswered.push(request.clone());
        }
        state.requests.push_back(request);
        if state.requests.len() > KEPT {
            state.requests.pop_front();
        }
        drop(state);
        let mut number = 0;
        self.count.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        (number, reply.unwrap_or_else(exhausted))
    }
}

fn fill(mut reply: Reply, body: &Value) -> Reply {
    for step in &mut reply.steps {
        if let Step::Call { arguments, .. } = step {
            *arguments = filled(arguments, body);
        }
    }
    reply
}

/// 400, because that is the one status Codex neither retries nor hides the text of.
fn exhausted() -> Reply {
    Reply::new([Step::status(400, "script", "no reply of the script applies to this request")])
}

async fn wait_for(counter: &watch::Sender<usize>, count: usize) {
    // The sender outlives the borrow, so that this cannot fail.
    let _ = counter.subscribe().wait_for(|now| *now >= count).await;
}

fn run(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime for the scripted model");
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            () = accept(listener, shared) => {}
        }
    });
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a tokio socket");
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        }
    }
}

/// Requests of one connection, up to one that wants it closed or whose answer is cut.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Ok(request) = http::read(&mut reader).await {
        let is_last = request.headers.get("connection").is_some_and(|word| word == "close");
        if !answered(request, &mut reader, &mut writer, &shared).await || is_last {
            return;
        }
    }
}

/// Answers a request; whether another may follow.
async fn answered(
    request: Request,
    reader: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
    shared: &Shared,
) -> bool {
    let path = request.path.split('?').next().unwrap_or_default();
    let is_asked = request.method == "POST" && Voice::of(path, 0, &request.body).is_some();
    if !is_asked {
        let (status, body) = shared.page(&request, path);
        return http::answer(writer, status, &BTreeMap::new(), &body).await.is_ok();
    }
    let (path, body) = (path.to_owned(), request.body.clone());
    let (number, reply) = shared.take(request);
    let Some(voice) = Voice::of(&path, number, &body) else { return false };
    let played = tokio::select! {
        biased;
        played = play(&reply, voice, writer, shared) => played.ok(),
        _ = reader.read_u8() => None,
    };
    if played.is_none() {
        shared.hang_ups.send_modify(|count| *count += 1);
    }
    played == Some(Played::Whole)
}

fn other(method: &str, path: &str) -> (u16, Value) {
    if method == "GET" && path.ends_with("/models") {
        let model = |id: &str| json!({ "id": id, "object": "model", "owned_by": "script" });
        return (200, json!({ "object": "list", "data": [model("gpt-5.5")] }));
    }
    (404, json!({ "error": { "type": "not_found", "message": format!("no {method} {path}") } }))
}
