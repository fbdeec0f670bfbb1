//! The writer's clock: what time it is, and where.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Tells the time; injected, so that tests write the same file every time.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> i64 + Send + Sync>,
    zone: TimeZone,
}

impl Clock {
    /// The system's clock and time zone.
    pub fn system() -> Self {
        let now = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        };
        Self { now: Arc::new(now), zone: TimeZone::system() }
    }

    /// A clock in UTC that is asked for milliseconds since 1970.
    pub fn of(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), zone: TimeZone::UTC }
    }

    /// Milliseconds since 1970.
    pub fn millis(&self) -> i64 {
        (self.now)()
    }

    /// Now, as lines are stamped: `2026-11-15T20:14:38.993Z`.
    pub fn stamp(&self) -> String {
        stamp(self.millis())
    }

    /// `2026-11-15T20-14-38` where the clock is: the time in a file's name.
    pub(crate) fn file_time(&self, millis: i64) -> String {
        // A time no calendar has is as good as the first one.
        let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H-%M-%S").to_string()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Clock").finish_non_exhaustive()
    }
}

/// A time as lines are stamped.
pub fn stamp(millis: i64) -> String {
    let seconds = crate::clock::rfc3339(millis);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), millis.rem_euclid(1_000))
}
