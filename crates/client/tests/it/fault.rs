//! Turns against a scripted app-server that does what a real one cannot be made to do.

mod rubbish;

mod ending;

mod stopping;

mod traffic;

mod pressure;

use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::transport;
use bindery_client::turn::TurnRequest;
use bindery_core::ids::ThreadId;
use bindery_core::part::Part;
use bindery_core::wire::app_server::params::ThreadStart;
use bindery_testkit::app_server::{
    AppServer as Scripted, End, Outcome, Script, Step, Turn, initialize, start_thread,
};
use tokio::time::timeout;

use crate::stage::Told;

/// Reaching it is a hang, on the real clock or on a paused one.
const HANG: Duration = Duration::from_secs(300);

/// The only turn of most scripts.
fn turn() -> Turn {
    Turn::new("thread-1", "turn-1")
}

/// A greeted app-server and a thread on it.
struct Scene {
    client: AppServer,
    scripted: Scripted,
    thread: ThreadId,
}

impl Scene {
    /// Plays these steps after the greeting and `thread/start`.
    async fn open(groups: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let first = [initialize(), start_thread("thread-1")];
        let (client, scripted) = connect(Script::new(first.into_iter().chain(groups))).await;
        let client = client.unwrap();
        let thread = client.start_thread(&ThreadStart::default()).await.unwrap().thread.id;
        Self { client, scripted, thread }
    }

    fn request(&self) -> TurnRequest {
        TurnRequest::new(self.thread.clone(), "go")
    }

    async fn run(&self, request: TurnRequest) -> Told {
        Told::of(self.client.start_turn(request).await.unwrap()).await
    }

    /// Hangs up; gives what the server heard, having played its whole script.
    async fn close(self) -> Outcome {
        self.client.close().await;
        let outcome = timeout(HANG, self.scripted.outcome()).await.unwrap();
        assert_eq!(outcome.end, End::Finished, "{:#?}", outcome.received);
        outcome
    }
}

/// Plays these steps as a turn, from the answer to `turn/start` on.
async fn play(groups: impl IntoIterator<Item = Vec<Step>>) -> (Told, Outcome) {
    let scene = Scene::open(std::iter::once(turn().begin()).chain(groups)).await;
    let told = scene.run(scene.request()).await;
    (told, scene.close().await)
}

async fn connect(script: Script) -> (Result<AppServer, Error>, Scripted) {
    let (scripted, from, to) = Scripted::start(script);
    let transport = transport::over(from, to, transport::LINE_LIMIT);
    let options = ConnectOptions { request_deadline: SOON, ..ConnectOptions::default() };
    (AppServer::connect(transport, &options).await, scripted)
}

/// How long a request may take in these tests.
const SOON: Duration = Duration::from_secs(30);

/// How often the server was asked this.
fn count(outcome: &Outcome, method: &str) -> usize {
    outcome.received.iter().filter(|message| message["method"] == method).count()
}

/// The answers to the server's question with this id.
fn answers(outcome: &Outcome, id: u64) -> Vec<&serde_json::Value> {
    let to = |message: &&serde_json::Value| message.get("method").is_none() && message["id"] == id;
    outcome.received.iter().filter(to).collect()
}

/// Everything a turn told, as text to search in.
fn text_of(parts: &[Part]) -> String {
    serde_json::to_string(parts).unwrap()
}
