//! Our client on a Codex of its own, on a runtime of either kind.

use std::time::Instant;

use anyhow::Context;
use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::model::{LanguageModel, ModelSettings};
use bindery_client::transport::stdio::Launch;
use bindery_client::turn::TurnRequest;
use bindery_core::call::CallOptions;
use bindery_core::ids::ThreadId;
use bindery_core::part::Part;
use bindery_core::prompt::Prompt;
use bindery_core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery_testkit::codex::RealCodex;
use futures_util::{Stream, StreamExt};
use tokio::runtime::{Builder, Runtime};

use super::{Marks, QUESTION};

/// The client and what it runs on.
pub(super) struct Ours {
    server: AppServer,
    model: LanguageModel,
    open: Option<ThreadId>,
    start: ThreadStart,
    runtime: Runtime,
    /// Ends last: its folders are Codex's home.
    _codex: RealCodex,
}

/// What a turn is read on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threads {
    /// Everything on the caller's thread, as `bindery run` does it.
    One,
    /// A worker for each core, as `#[tokio::main]` gives it; the turn is read outside of them.
    Many,
}

impl Threads {
    fn runtime(self) -> std::io::Result<Runtime> {
        let mut builder = match self {
            Self::One => Builder::new_current_thread(),
            Self::Many => Builder::new_multi_thread(),
        };
        builder.enable_all().build()
    }
}

impl Ours {
    /// Starts Codex and greets it.
    pub(super) fn start(codex: RealCodex, threads: Threads) -> anyhow::Result<Self> {
        let runtime = threads.runtime()?;
        let launch = launch(&codex);
        let server = runtime.block_on(AppServer::spawn(&launch, &ConnectOptions::default()))?;
        let cwd = Some(codex.project().display().to_string());
        let settings = ThreadSettings { cwd, ..ThreadSettings::default() };
        let model = LanguageModel::new(
            server.clone(),
            ModelSettings { thread: settings.clone(), ..ModelSettings::default() },
        );
        let start = ThreadStart { settings, ..ThreadStart::default() };
        Ok(Self { server, model, open: None, start, runtime, _codex: codex })
    }

    /// A turn on a new thread.
    pub(super) fn new_thread(&self, start: Instant) -> anyhow::Result<Marks> {
        self.runtime.block_on(async {
            let thread = self.server.start_thread(&self.start).await?.thread.id;
            self.turn(thread, start).await
        })
    }

    /// A turn on the open thread.
    pub(super) fn open_thread(&self, start: Instant) -> anyhow::Result<Marks> {
        let thread = self.open.clone().context("no thread is open")?;
        self.runtime.block_on(self.turn(thread, start))
    }

    /// A call of the AI SDK: plan, new thread, turn.
    pub(super) fn stream(&self, start: Instant) -> anyhow::Result<Marks> {
        self.runtime.block_on(async {
            let options = CallOptions { prompt: Prompt::user(QUESTION), ..CallOptions::default() };
            read(self.model.stream(&options).await?.turn, start).await
        })
    }

    /// Opens another thread for [`Self::open_thread`], and uses it once.
    pub(super) fn renew(&mut self) -> anyhow::Result<()> {
        let opened = self.runtime.block_on(self.server.start_thread(&self.start))?;
        self.open = Some(opened.thread.id);
        self.open_thread(Instant::now()).map(drop)
    }

    async fn turn(&self, thread: ThreadId, start: Instant) -> anyhow::Result<Marks> {
        let turn = self.server.start_turn(TurnRequest::new(thread, QUESTION)).await?;
        read(turn, start).await
    }
}

/// The same environment as the raw client's Codex has, and nothing else, so that both run alike.
pub(in crate::bench) fn launch(codex: &RealCodex) -> Launch {
    let mut launch = Launch::new(codex.program());
    launch.args = codex.args().into_iter().map(Into::into).collect();
    launch.env_remove = std::env::vars_os().map(|(name, _)| name).collect();
    launch.env = codex.env().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    launch.cwd = Some(codex.project());
    launch
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.runtime.block_on(self.server.close());
    }
}

/// Reads a turn to its end.
pub(in crate::bench) async fn read(
    mut turn: impl Stream<Item = Part> + Unpin,
    start: Instant,
) -> anyhow::Result<Marks> {
    let (mut text, mut finish) = (None, None);
    while let Some(part) = turn.next().await {
        match part {
            Part::TextDelta(_) if text.is_none() => text = Some(start.elapsed()),
            Part::Finish { .. } => finish = Some(start.elapsed()),
            Part::Error { error } => anyhow::bail!("the turn failed: {error}"),
            _ => {}
        }
    }
    let text = text.context("the turn had no text")?;
    Ok(Marks { text, finish: finish.context("the turn had no finish")? })
}
