//! How long a call may wait for a command.

use std::time::Duration;

/// Without a wish of the model's, a start waits this long.
const START: u64 = 10_000;

/// After input, a call waits this long.
const AFTER_INPUT: u64 = 250;

/// A call that starts or writes waits within these.
const SHORT: (u64, u64) = (250, 30_000);

/// A call that only looks waits within these: looking often costs tokens.
const LOOK: (u64, u64) = (5_000, 300_000);

/// The older forms' limit.
const RUN: u64 = 10_000;

/// The window of a start.
pub fn start(wish_ms: Option<u64>) -> Duration {
    clamped(wish_ms.unwrap_or(START), SHORT)
}

/// The window of a call to a running command.
pub fn write(chars: &str, wish_ms: Option<u64>) -> Duration {
    let bounds = if chars.is_empty() { LOOK } else { SHORT };
    clamped(wish_ms.unwrap_or(AFTER_INPUT), bounds)
}

/// The limit of the older forms.
pub fn limit(wish_ms: Option<u64>) -> Duration {
    Duration::from_millis(wish_ms.unwrap_or(RUN))
}

fn clamped(wish: u64, (least, most): (u64, u64)) -> Duration {
    Duration::from_millis(wish.clamp(least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_kept_within_bounds() {
        let ms = Duration::from_millis;
        assert_eq!(
            [start(None), start(Some(0)), start(Some(99_999))],
            [10_000, 250, 30_000].map(ms)
        );
        assert_eq!([write("x", None), write("x", Some(60_000))], [250, 30_000].map(ms));
        assert_eq!([write("", None), write("", Some(u64::MAX))], [5_000, 300_000].map(ms));
        assert_eq!([limit(None), limit(Some(3))], [10_000, 3].map(ms));
    }
}
