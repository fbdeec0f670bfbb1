//! Limits and patience of a pool, and its counts.

use std::time::Duration;

/// Limits and patience of a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Workers of one key at a time; a further one is started only when all are full.
    pub workers: usize,
    /// Turns that one worker runs at a time.
    pub turns_per_worker: usize,
    /// Callers of one key that may wait for room; further ones are told to come again.
    pub queue: usize,
    /// Threads that one worker starts at a time; four times as many where starts are slow. Codex
    /// 0.166 is slower at many at once: of 32 new conversations on two cores the last was over
    /// soonest with two. In a home of thousands of sessions it was soonest with eight.
    pub starts: usize,
    /// Spare threads kept started on each worker for each settings lately used. They read
    /// configuration and `AGENTS.md` when they are started, not when they are used.
    pub warm: usize,
    /// Spare threads on all workers together.
    pub warm_total: usize,
    /// How long a spare thread is good for, and how long settings count as lately used.
    pub warm_idle: Duration,
    /// How long a worker may have nothing to do before it is ended.
    pub idle: Duration,
    /// How long a thread may have nothing to do before the worker may unload it.
    pub thread_idle: Duration,
    /// What to do about workers that do not last.
    pub back_off: BackOff,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            workers: 4,
            turns_per_worker: 64,
            queue: 256,
            starts: 2,
            warm: 1,
            warm_total: 32,
            warm_idle: Duration::from_secs(10 * 60),
            idle: Duration::from_secs(10 * 60),
            thread_idle: Duration::from_secs(10 * 60),
            back_off: BackOff::default(),
        }
    }
}

impl PoolSettings {
    /// Limits of none would let nobody in.
    pub(super) fn checked(mut self) -> Self {
        self.workers = self.workers.max(1);
        self.turns_per_worker = self.turns_per_worker.max(1);
        self.starts = self.starts.max(1);
        self
    }
}

/// How long to wait before the next worker when they do not last.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    /// A worker that ends by itself sooner than this counts as a failure.
    pub quick: Duration,
    /// The pause after the second failure in a row; after the first there is none.
    pub first: Duration,
    /// The longest pause; up to it, each is twice the one before.
    pub most: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            quick: Duration::from_secs(10),
            first: Duration::from_millis(500),
            most: Duration::from_secs(60),
        }
    }
}

impl BackOff {
    pub(super) fn pause(&self, failures: u32) -> Duration {
        match failures {
            0 | 1 => Duration::ZERO,
            many => self.first.saturating_mul(1 << (many - 2).min(20)).min(self.most),
        }
    }
}

/// Counts of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Workers that run.
    pub workers: usize,
    /// Workers being started.
    pub starting: usize,
    /// Threads bound to a worker, spare ones not counted.
    pub threads: usize,
    /// Turns that run or are being opened.
    pub turns: usize,
    /// Callers that wait.
    pub queue: usize,
    /// Spare threads.
    pub warm: usize,
    /// Workers that ended by themselves, since the pool began.
    pub restarts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most() {
        let pauses: Vec<_> = [0, 1, 2, 3, 4, 9, 40, u32::MAX]
            .map(|failures| BackOff::default().pause(failures).as_millis())
            .into();
        assert_eq!(pauses, [0, 0, 500, 1000, 2000, 60_000, 60_000, 60_000]);
    }
}
