//! How often a tenant may ask, and how much it may keep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::app::App;
use super::uploads;
use crate::error::{DISK, Error};
use crate::tenant::{Limits, Tenant};

/// How long a count of what is kept is good for.
const COUNTED: Duration = Duration::from_secs(20);

/// What tenants have used; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Used {
    tenants: Arc<Mutex<HashMap<String, Account>>>,
}

#[derive(Debug)]
struct Account {
    /// Requests that may come at once.
    left: f64,
    at: Instant,
    /// Bytes kept, and when they were counted.
    disk: Option<(u64, Instant)>,
}

impl Used {
    /// Counts a request. One that is too many is told when to come again.
    pub fn request(&self, tenant: &str, limits: &Limits, now: Instant) -> Result<(), Error> {
        let most = f64::from(limits.requests_per_minute.max(1));
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let account = account(&mut tenants, tenant, most, now);
        let gained = now.saturating_duration_since(account.at).as_secs_f64() * most / 60.0;
        (account.left, account.at) = ((account.left + gained).min(most), now);
        if account.left >= 1.0 {
            account.left -= 1.0;
            return Ok(());
        }
        let wait = Duration::from_secs_f64((1.0 - account.left) * 60.0 / most);
        let limit = u64::from(limits.requests_per_minute);
        Err(Error::Limit { what: "requests a minute", limit, retry_after: Some(wait) })
    }

    fn disk(&self, tenant: &str, now: Instant) -> Option<u64> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, at) = tenants.get(tenant)?.disk?;
        (now.saturating_duration_since(at) < COUNTED).then_some(bytes)
    }

    /// Adds to what is kept, until it is counted again.
    pub fn add(&self, tenant: &str, bytes: u64) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept, _)) = tenants.get_mut(tenant).and_then(|known| known.disk.as_mut()) {
            *kept += bytes;
        }
    }

    /// Something was removed: what is kept is to be counted again.
    pub fn recount(&self, tenant: &str) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = tenants.get_mut(tenant) {
            account.disk = None;
        }
    }

    fn counted(&self, tenant: &Tenant, bytes: u64, now: Instant) {
        let most = f64::from(tenant.settings.limits.requests_per_minute.max(1));
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        account(&mut tenants, &tenant.id, most, now).disk = Some((bytes, now));
    }
}

fn account<'a>(
    tenants: &'a mut HashMap<String, Account>,
    tenant: &str,
    most: f64,
    now: Instant,
) -> &'a mut Account {
    let fresh = || Account { left: most, at: now, disk: None };
    tenants.entry(tenant.to_owned()).or_insert_with(fresh)
}

/// Whether a tenant may keep so much more.
pub async fn room(app: &App, tenant: &Tenant, more: u64) -> Result<(), Error> {
    let now = Instant::now();
    let kept = match app.used.disk(&tenant.id, now) {
        Some(bytes) => bytes,
        None => {
            let events = app.store.bytes(&tenant.id).await?;
            let bytes = events + uploads::kept(app, tenant).await;
            app.used.counted(tenant, bytes, now);
            bytes
        }
    };
    let limit = tenant.settings.limits.disk;
    if kept.saturating_add(more) <= limit {
        return Ok(());
    }
    Err(Error::Limit { what: DISK, limit, retry_after: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_requests_are_told_when_to_come_again() {
        let (used, now) = (Used::default(), Instant::now());
        let limits = Limits { requests_per_minute: 60, ..Limits::default() };
        assert!((0..60).all(|_| used.request("a", &limits, now).is_ok()));
        let refused = used.request("a", &limits, now).unwrap_err();
        assert_eq!((refused.status(), refused.retry_after()), (429, Some(1)));
        assert!(used.request("b", &limits, now).is_ok(), "another tenant is not held up");
        assert!(used.request("a", &limits, now + Duration::from_secs(1)).is_ok());
        assert!(used.request("a", &limits, now + Duration::from_secs(1)).is_err());
    }
}
