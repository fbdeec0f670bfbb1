//! An app-server behind each transport, and our client before it.

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::transport::dial::{self, Dial};
use bindery_client::transport::{Incoming, Transport, memory, stdio};
use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery_testkit::app_server::{AppServer as Scripted, Script, initialize};
use bindery_testkit::codex::RealCodex;
use bindery_testkit::listening::Listening;
use bindery_testkit::model::{Model, Reply};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;

pub(crate) use crate::server::LONG;
use crate::stage::launch;
use crate::stdio::assert_dies;

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Stdio,
    Ws,
    #[cfg(unix)]
    Unix,
}

impl Kind {
    /// Whether a scripted server is there rather than a real one.
    pub(crate) fn is_scripted(self) -> bool {
        self == Self::Memory
    }

    /// The version of whoever is there.
    pub(crate) fn version(self) -> String {
        if self.is_scripted() { "0.169.0".to_owned() } else { crate::backend::version() }
    }

    /// How a connection that we closed is said to have ended.
    pub(crate) fn last_words(self) -> &'static str {
        if self == Self::Stdio { "exit code 0" } else { "connection closed" }
    }
}

/// A call of a command that prints `ran` and is asked about.
pub(crate) fn asked_about(call_id: &str) -> bindery_testkit::model::Step {
    bindery_testkit::model::Step::exec(crate::backend::asked_about(), call_id)
}

/// What the far side does: the scripted server's steps, or the real Codex's model's replies.
pub(crate) struct Scene {
    pub(crate) steps: Vec<bindery_testkit::app_server::Step>,
    pub(crate) replies: Vec<Reply>,
}

/// A greeted server.
pub(crate) struct Rig {
    pub(crate) server: AppServer,
    pub(crate) far: Far,
}

/// Who is at the other end.
pub(crate) enum Far {
    Scripted(JoinHandle<()>),
    Child(u32, Real),
    Listening(Listening, Real),
}

/// A real Codex and its model, which lives as long as it.
pub(crate) struct Real {
    codex: RealCodex,
    _model: Model,
}

impl Rig {
    /// Connects to a server of this scene.
    pub(crate) async fn new(kind: Kind, scene: Scene) -> Self {
        let (transport, far) = match kind {
            Kind::Memory => scripted(scene),
            Kind::Stdio => {
                let real = real(scene);
                let transport = stdio::spawn(&launch(&real.codex)).unwrap();
                let process = transport.closer.process().unwrap();
                (transport, Far::Child(process, real))
            }
            Kind::Ws => dialled(scene, |codex| Listening::ws(codex, &[])).await,
            #[cfg(unix)]
            Kind::Unix => dialled(scene, Listening::unix).await,
        };
        let server = AppServer::connect(transport, &ConnectOptions::default()).await.unwrap();
        Self { server, far }
    }

    /// Files to read and write are in here.
    pub(crate) fn folder(&self) -> String {
        match &self.far {
            Far::Scripted(_) => "/nowhere".to_owned(),
            Far::Child(_, real) | Far::Listening(_, real) => {
                real.codex.project().display().to_string()
            }
        }
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
    /// Ends the server without warning.
    pub(crate) fn die(&mut self) {
        match self {
            Self::Scripted(task) => task.abort(),
            #[cfg(unix)]
            Self::Child(process, ..) => {
                let process = process.to_string();
                std::process::Command::new("kill").args(["-9", &process]).status().unwrap();
            }
            #[cfg(not(unix))]
            Self::Child(..) => panic!("not on this system"),
            Self::Listening(listening, ..) => listening.kill(),
        }
    }

    /// Checks that our end has gone from it, and that one we did not start lives on.
    pub(crate) async fn assert_left_alone(&mut self) {
        match self {
            Self::Scripted(task) => task.await.unwrap(),
            Self::Child(process, ..) => assert_dies(*process).await,
            Self::Listening(listening, ..) => assert!(listening.runs()),
        }
    }
}

fn real(scene: Scene) -> Real {
    let model = Model::start(scene.replies);
    Real { codex: RealCodex::new(&model), _model: model }
}

async fn dialled(scene: Scene, listen: impl Fn(&RealCodex) -> Listening) -> (Transport, Far) {
    let real = real(scene);
    let listening = listen(&real.codex);
    let dial = Dial::new(listening.address().parse().unwrap());
    let transport = dial::connect(&dial).await.unwrap();
    (transport, Far::Listening(listening, real))
}

fn scripted(scene: Scene) -> (Transport, Far) {
    let (near, far) = memory::pair();
    let script = Script::new([initialize(), scene.steps]);
    (near, Far::Scripted(tokio::spawn(bridge(far, script))))
}

/// Puts a scripted server, which speaks bytes, behind an end of a connection that has none.
async fn bridge(far: Transport, script: Script) {
    let (play, from, mut to) = Scripted::start(script);
    let Transport { outgoing, mut incoming, closer, .. } = far;
    let inward = async {
        while let Some(Incoming::Line(mut line)) = incoming.recv().await {
            line.push(b'\n');
            to.write_all(&line).await.unwrap();
        }
        drop(to);
    };
    let outward = async {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if outgoing.send(line.into_bytes()).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(inward, outward);
    play.outcome().await;
    closer.close().await;
}
