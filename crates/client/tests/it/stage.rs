//! A real Codex with a scripted model behind it and our client before it.

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::transport::stdio::Launch;
use bindery_client::turn::TurnRequest;
use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Script};
use serde_json::Value;

pub(crate) use crate::told::Told;

/// Everything a test needs, in the order it must be torn down.
pub(crate) struct Stage {
    pub(crate) server: AppServer,
    pub(crate) codex: RealCodex,
    pub(crate) model: Model,
}

impl Stage {
    /// A Codex that asks nobody and runs commands at once.
    pub(crate) async fn free(script: impl Into<Script>) -> Self {
        Self::with(script, &Options::unrestricted()).await
    }

    /// A Codex of these options.
    pub(crate) async fn with(script: impl Into<Script>, options: &Options) -> Self {
        let model = Model::start(script);
        let codex = RealCodex::with(&model, options);
        let server = connect(&codex).await;
        Self { server, codex, model }
    }

    /// A second client process on the same home.
    pub(crate) async fn reopen(&mut self) {
        self.server.close().await;
        self.server = connect(&self.codex).await;
    }

    /// A new thread in the project.
    pub(crate) async fn thread(&self) -> ThreadId {
        self.thread_with(ThreadSettings::default()).await
    }

    /// A new thread in the project with these settings.
    pub(crate) async fn thread_with(&self, settings: ThreadSettings) -> ThreadId {
        let cwd = Some(self.codex.project().display().to_string());
        let settings = ThreadSettings { cwd, ..settings };
        let start = ThreadStart { settings, ..ThreadStart::default() };
        self.server.start_thread(&start).await.unwrap().thread.id
    }

    /// Runs a turn of plain text on a new thread.
    pub(crate) async fn say(&self, text: &str) -> Told {
        let thread = self.thread().await;
        self.run(TurnRequest::new(thread, text)).await
    }

    /// Runs a turn to its end.
    pub(crate) async fn run(&self, request: TurnRequest) -> Told {
        Told::of(self.server.start_turn(request).await.unwrap()).await
    }
}

async fn connect(codex: &RealCodex) -> AppServer {
    AppServer::spawn(&launch(codex), &ConnectOptions::default()).await.unwrap()
}

/// How to start this Codex.
pub(crate) fn launch(codex: &RealCodex) -> Launch {
    let mut launch = Launch::new(codex.program());
    launch.args = codex.args().into_iter().map(Into::into).collect();
    launch.env = codex.env().into_iter().map(|(k, v)| (k.into(), v.into())).collect();
    launch.cwd = Some(codex.project());
    launch
}

/// The roles and texts of a request's input, one line a message, developer messages left out.
pub(crate) fn heard(body: &Value) -> Vec<String> {
    let items = body["input"].as_array().cloned().unwrap_or_default();
    items.iter().filter(|item| item["role"] != "developer").map(line).collect()
}

fn line(item: &Value) -> String {
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            let parts = item["content"].as_array().into_iter().flatten();
            let texts: Vec<&str> =
                parts.map(|part| part["text"].as_str().unwrap_or("<image>")).collect();
            format!("{}: {}", item["role"].as_str().unwrap_or_default(), texts.join(" / "))
        }
        "function_call" => format!("call {}: {}", item["name"], item["arguments"]),
        "function_call_output" => format!("output {}: {}", item["call_id"], item["output"]),
        other => other.to_owned(),
    }
}
