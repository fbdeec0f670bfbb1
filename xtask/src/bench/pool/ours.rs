//! The pool on a Codex of its own.

use std::time::{Duration, Instant};

use anyhow::ensure;
use bindery_client::model::ModelSettings;
use bindery_client::pool::{Pool, PoolSettings, PooledModel};
use bindery_core::call::CallOptions;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::codex::RealCodex;
use futures_util::future::try_join_all;
use tokio::runtime::Runtime;

use crate::bench::turn::ours::{launch, read};

/// How long spare threads may take to be there again.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pool of one worker.
pub(super) struct Pooled {
    pool: Pool,
    model: PooledModel,
    question: CallOptions,
    warm: usize,
    runtime: Runtime,
    /// Ends last: its folders are Codex's home.
    _codex: RealCodex,
}

impl Pooled {
    /// Starts Codex, and so many spare threads on it for conversations that begin like this.
    pub(super) fn start(
        codex: RealCodex,
        warm: usize,
        question: CallOptions,
    ) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let settings = PoolSettings { workers: 1, warm, ..PoolSettings::default() };
        let pool = runtime.block_on(async { Pool::new(settings) });
        let cwd = Some(codex.project().display().to_string());
        let thread = ThreadSettings { cwd, ..ThreadSettings::default() };
        let settings = ModelSettings { thread, ..ModelSettings::default() };
        let model = pool.model(launch(&codex), settings);
        runtime.block_on(model.prepare(&question))?;
        Ok(Self { pool, model, question, warm, runtime, _codex: codex })
    }

    /// One conversation.
    pub(super) fn one(&self, start: Instant) -> anyhow::Result<Duration> {
        self.runtime.block_on(self.talk(start))
    }

    /// So many at once; gives when the last was over.
    pub(super) fn many(&self, count: usize, start: Instant) -> anyhow::Result<Duration> {
        let all = try_join_all((0..count).map(|_| self.talk(start)));
        Ok(self.runtime.block_on(all)?.into_iter().max().unwrap_or_default())
    }

    /// Waits until what was used up is replaced.
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        self.runtime.block_on(async {
            let begin = Instant::now();
            loop {
                let stats = self.pool.stats();
                if stats.turns == 0 && stats.warm >= self.warm {
                    return Ok(());
                }
                ensure!(begin.elapsed() < PATIENCE, "no spare threads: {stats:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
    }

    async fn talk(&self, start: Instant) -> anyhow::Result<Duration> {
        let call = self.model.stream(&self.question).await?;
        Ok(read(call.turn, start).await?.finish)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.runtime.block_on(self.pool.shutdown(Duration::from_secs(5)));
    }
}
