//! The time of day, as everything stored has it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub type Millis = i64;

/// Now.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A time as RFC 3339 has it.
pub fn rfc3339(time: Millis) -> String {
    let time = jiff::Timestamp::from_millisecond(time);
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// So long after a time.
pub fn after(time: Millis, duration: Duration) -> Millis {
    time.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// How long until a time; none at all if it is past.
pub fn until(time: Millis) -> Duration {
    Duration::from_millis(u64::try_from(time.saturating_sub(now())).unwrap_or(0))
}
