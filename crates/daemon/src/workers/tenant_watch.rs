//! Workers of the engine hide what is other tenants' as it was when they were started. When tenants
//! or their folders change, they are drained: they take no new turns, and the next one is started
//! when those that run are over.

use std::time::Duration;

use bindery_client::pool::Pool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Workers;
use crate::front::Fronts;
use crate::secret;
use crate::tenant::Tenant;

/// How often tenants are looked at: other processes add them.
const INTERVAL: Duration = Duration::from_secs(1);

/// A word for the folders of all tenants: another one when any of them changes.
pub(super) fn folders_hash(tenants: &[Tenant]) -> String {
    let mut folders: Vec<_> = tenants
        .iter()
        .map(|tenant| (&tenant.id, &tenant.settings.root, &tenant.settings.codex_home))
        .collect();
    folders.sort();
    secret::hash(&format!("{folders:?}"))
}

/// Drains workers of the engine that hide too little, until the server stops.
pub(crate) async fn watch(workers: Workers, fronts: Fronts, stop: CancellationToken) {
    let mut known = None;
    loop {
        if let Some(now) = workers.tenants_hash().await {
            let has_changed = known.as_ref().is_some_and(|known| *known != now);
            for pool in fronts.pools().into_iter().chain([workers.pool().clone()]) {
                drain(&workers, &pool, has_changed);
            }
            known = Some(now);
        }
        if stop.run_until_cancelled(sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

fn drain(workers: &Workers, pool: &Pool, all: bool) {
    for worker in pool.workers() {
        let is_engine = worker.key.launch().program == workers.engine();
        if is_engine && (all || workers.was_started_for_others(&worker.key)) && pool.drain(&worker)
        {
            tracing::info!("a worker hides too little since tenants have changed; drained");
        }
    }
}
