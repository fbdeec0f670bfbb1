//! Whether the next worker may be started, and why not.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::BackOff;
use crate::error::Error;

/// What the workers of a key have come to.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    last: Option<(Instant, Arc<Error>)>,
}

impl Health {
    /// A worker did not start, or ended by itself after so long.
    pub(super) fn failed(
        &mut self,
        reason: Arc<Error>,
        lived: Duration,
        now: Instant,
        back_off: &BackOff,
    ) {
        // One that lasted shows that starting another is worth it at once.
        self.failures = if lived < back_off.quick { self.failures.saturating_add(1) } else { 0 };
        self.last = Some((now + back_off.pause(self.failures), reason));
    }

    /// The pause to be kept, and its reason.
    pub(super) fn pause(&self, now: Instant) -> Option<(Duration, Arc<Error>)> {
        let (until, reason) = self.last.as_ref()?;
        (*until > now).then(|| (*until - now, reason.clone()))
    }
}
