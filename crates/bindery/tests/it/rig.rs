//! The engine in this process, and our client on it over memory.

use std::time::Duration;

use bindery::client::app_server::{AppServer, ConnectOptions};
use bindery::core::ids::ThreadId;
use bindery::core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery::{Engine, EngineOptions, start_engine};
use bindery_testkit::app_server::Step;
use bindery_testkit::codex::RealCodex;
use bindery_testkit::model::{Model, Reply, Step as Says};
use serde_json::json;

/// Generous: only a broken program reaches it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How the server is reached: there is one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind;

impl Kind {
    pub(crate) fn is_scripted(self) -> bool {
        false
    }

    pub(crate) fn version(self) -> String {
        "0.166.0".to_owned()
    }

    pub(crate) fn last_words(self) -> &'static str {
        "connection closed"
    }
}

/// A call of a command that prints `ran` and is asked about. The engine has the environment of
/// whoever runs the test, whose login shell may take its time.
pub(crate) fn asked_about(call_id: &str) -> Says {
    let arguments = json!({ "cmd": "env echo ran", "login": false });
    Says::call("exec_command", arguments, call_id)
}

/// What the model replies; steps are for a scripted server.
pub(crate) struct Scene {
    pub(crate) steps: Vec<Step>,
    pub(crate) replies: Vec<Reply>,
}

/// A greeted engine.
pub(crate) struct Rig {
    pub(crate) server: AppServer,
    pub(crate) far: Far,
}

/// The engine, its home and its model.
pub(crate) struct Far {
    engine: Option<Engine>,
    codex: RealCodex,
    _model: Model,
}

impl Rig {
    pub(crate) async fn new(_: Kind, scene: Scene) -> Self {
        let Scene { steps, replies } = scene;
        drop(steps);
        let model = Model::start(replies);
        let codex = RealCodex::new(&model);
        let options = EngineOptions { home: Some(codex.home()), ..EngineOptions::default() };
        let engine = start_engine(&options).await.unwrap();
        let server = engine.client(&ConnectOptions::default()).await.unwrap();
        Self { server, far: Far { engine: Some(engine), codex, _model: model } }
    }

    /// Files to read and write are in here.
    pub(crate) fn folder(&self) -> String {
        self.far.codex.project().display().to_string()
    }

    /// A thread that asks before it runs anything.
    pub(crate) async fn thread(&self) -> ThreadId {
        let settings = ThreadSettings {
            cwd: Some(self.folder()),
            approval_policy: Some(json!("untrusted")),
            sandbox: Some("read-only".into()),
            ..ThreadSettings::default()
        };
        let start = ThreadStart { settings, ..ThreadStart::default() };
        self.server.start_thread(&start).await.unwrap().thread.id
    }
}

impl Far {
    /// Ends the engine without a word to this client.
    pub(crate) fn die(&mut self) {
        tokio::spawn(self.engine.take().unwrap().close());
    }

    /// Checks that the engine lives on for others.
    pub(crate) async fn assert_left_alone(&mut self) {
        self.engine.as_ref().unwrap().server.models().await.unwrap();
    }
}
