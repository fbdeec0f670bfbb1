//! How much memory workers use, with all their processes. One that uses too much is drained: it
//! takes no new turns, and the next one is started when those that run are over.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use bindery_client::pool::Pool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Workers;
use crate::front::Fronts;
use crate::http::metrics::Metrics;

/// How often it is measured.
const SAMPLE: Duration = Duration::from_secs(2);

/// Drains workers that use more than the limit, until the server stops.
pub(crate) async fn watch(
    workers: Workers,
    fronts: Fronts,
    limit: u64,
    metrics: Metrics,
    stop: CancellationToken,
) {
    if limit == 0 || !cfg!(target_os = "linux") {
        return;
    }
    while stop.run_until_cancelled(sleep(SAMPLE)).await.is_some() {
        let pools: Vec<Pool> = fronts.pools().into_iter().chain([workers.pool().clone()]).collect();
        if pools.iter().all(|pool| pool.workers().is_empty()) {
            continue;
        }
        let Ok(used) = tokio::task::spawn_blocking(Processes::read).await else { continue };
        for pool in pools {
            for worker in pool.workers() {
                let Some(pid) = workers.process_of(&worker).await else { continue };
                let bytes = used.tree(pid);
                if bytes > limit && pool.drain(&worker) {
                    metrics.refuse("worker_memory");
                    tracing::warn!(pid, bytes, limit, "a worker uses too much memory; drained");
                }
            }
        }
    }
}

/// The processes of this machine, with their parents and their own memory.
#[derive(Debug, Default)]
struct Processes {
    children: HashMap<u32, Vec<u32>>,
    bytes: HashMap<u32, u64>,
}

impl Processes {
    fn read() -> Self {
        let mut all = Self::default();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // One that has ended meanwhile uses nothing.
            let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
            all.take(pid, &status);
        }
        all
    }

    fn take(&mut self, pid: u32, status: &str) {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let parent = field("PPid:").and_then(|parent| u32::try_from(parent).ok());
        self.children.entry(parent.unwrap_or(0)).or_default().push(pid);
        // Not the pages of files, which processes share.
        let own = ["RssAnon:", "RssShmem:", "VmSwap:"].iter().filter_map(|name| field(name));
        self.bytes.insert(pid, own.sum::<u64>() * 1024);
    }

    /// The memory of a process and all below it.
    fn tree(&self, root: u32) -> u64 {
        let (mut bytes, mut next) = (0, vec![root]);
        while let Some(pid) = next.pop() {
            bytes += self.bytes.get(&pid).copied().unwrap_or(0);
            next.extend(
                self.children.get(&pid).into_iter().flatten().filter(|child| **child != pid),
            );
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_measured_with_all_its_processes() {
        let mut all = Processes::default();
        let status = |parent: u32, kib: u32| {
            format!(
                "Name:\tx\nPPid:\t{parent}\nRssAnon:\t{kib} kB\nRssFile:\t900 kB\n\
                RssShmem:\t1 kB\nVmSwap:\t2 kB\n"
            )
        };
        for (pid, parent, kib) in [(1, 0, 10), (5, 1, 20), (6, 5, 40), (7, 6, 80), (8, 1, 160)] {
            all.take(pid, &status(parent, kib));
        }
        assert_eq!(all.tree(5), (20 + 40 + 80 + 9) * 1024);
        assert_eq!(all.tree(99), 0);
    }
}
