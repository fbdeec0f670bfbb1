//! How many bytes of requests are in memory at a time: for each tenant, and for all. A request
//! waits for its share before it is read. Small ones do not count, so that a tenant that fills its
//! share can still answer, steer and stop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::Error;

/// Requests up to this size are not counted: there are no more of them than connections.
pub const SMALL: u64 = 16 * 1024;

/// The unit that is counted in.
const KIB: u64 = 1024;

/// The bytes of requests in memory; clones share them.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    all: Arc<Semaphore>,
    tenants: Mutex<HashMap<String, TenantBudget>>,
    refused: AtomicU64,
}

/// A tenant's own bytes.
#[derive(Clone, Debug)]
struct TenantBudget {
    limit: u64,
    left: Arc<Semaphore>,
}

/// A share of the budget, given back when it is dropped.
#[derive(Debug, Default)]
pub struct BodyShare {
    _tenant: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

impl BodyBudget {
    /// So many bytes for all tenants together.
    pub fn new(limit: u64) -> Self {
        let all = Arc::new(Semaphore::new(units(limit) as usize));
        let (tenants, refused) = (Mutex::default(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { limit, all, tenants, refused }) }
    }

    /// Waits for a share of these bytes, which is at most the tenant's and at most all of it.
    pub async fn share(
        &self,
        tenant: &str,
        tenant_limit: u64,
        bytes: u64,
        within: Duration,
    ) -> Result<BodyShare, Error> {
        if bytes <= SMALL {
            return Ok(BodyShare::default());
        }
        let end = Instant::now() + within;
        // The tenant's own first: of what is everybody's, it can hold and wait for no more.
        let own = self.of(tenant, tenant_limit);
        let wanted = units(bytes).min(units(own.limit));
        let Ok(Ok(own)) = timeout_at(end, own.left.acquire_many_owned(wanted)).await else {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            let (what, retry_after) = ("bytes of requests at a time", Some(RETRY));
            return Err(Error::Limit { what, limit: tenant_limit, retry_after });
        };
        let wanted = units(bytes).min(units(self.shared.limit));
        let all = self.shared.all.clone().acquire_many_owned(wanted);
        let Ok(Ok(all)) = timeout_at(end, all).await else {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            let what = "bytes of requests at a time";
            return Err(Error::Full { what, limit: self.shared.limit });
        };
        Ok(BodyShare { _tenant: Some(own), _all: Some(all) })
    }

    /// Requests that waited in vain.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    fn of(&self, tenant: &str, limit: u64) -> TenantBudget {
        let mut tenants = self.shared.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        // Where nobody holds or waits for a share, the limit may have changed since.
        if tenants.get(tenant).is_none_or(|budget| budget.limit != limit) {
            tenants.retain(|_, budget| Arc::strong_count(&budget.left) > 1);
        }
        let left = || Arc::new(Semaphore::new(units(limit) as usize));
        let fresh = || TenantBudget { limit, left: left() };
        tenants.entry(tenant.to_owned()).or_insert_with(fresh).clone()
    }
}

/// When whoever waited in vain may come again.
const RETRY: Duration = Duration::from_secs(2);

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;
    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_tenant_waits_for_its_own_bytes_and_others_do_not() {
        let budget = BodyBudget::new(8 * MIB);
        let first = budget.share("a", 4 * MIB, 3 * MIB, SOON).await.unwrap();
        let refused = budget.share("a", 4 * MIB, 3 * MIB, SOON).await.unwrap_err();
        assert_eq!((refused.status(), refused.retry_after()), (429, Some(2)));
        let _other = budget.share("b", 4 * MIB, 4 * MIB, SOON).await.unwrap();
        assert!(budget.share("a", 4 * MIB, SMALL, SOON).await.is_ok(), "small ones do not wait");
        let second = budget.share("a", 4 * MIB, 3 * MIB, SOON);
        let (second, ()) = tokio::join!(second, async {
            tokio::task::yield_now().await;
            drop(first);
        });
        second.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn all_together_are_bounded_too_and_nothing_is_kept_of_a_wait_in_vain() {
        let budget = BodyBudget::new(4 * MIB);
        let held = budget.share("a", 4 * MIB, 64 * MIB, SOON).await.unwrap();
        let refused = budget.share("b", 4 * MIB, MIB, SOON).await.unwrap_err();
        assert_eq!((refused.status(), refused.retry_after()), (503, Some(2)));
        assert_eq!(budget.refused(), 1);
        drop(held);
        let _whole = budget.share("b", 4 * MIB, 4 * MIB, SOON).await.unwrap();
    }
}
