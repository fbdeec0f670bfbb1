//! Wrong tokens, counted by address. Too many are answered late and with 429, later each time. A
//! valid token is never held up by the wrong ones of its neighbours: it is looked up all the same.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Addresses that are remembered; beyond it the one that is quiet longest is forgotten.
const MAX_ADDRESSES: usize = 4096;

/// The longest time to come again after.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// The longest time that an answer is kept back: so long it takes up a connection of ours.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Wrong tokens of all addresses; clones share them.
#[derive(Clone, Debug, Default)]
pub struct WrongTokens {
    addresses: Arc<Mutex<HashMap<IpAddr, Attempts>>>,
}

#[derive(Debug)]
struct Attempts {
    /// Wrong tokens that are answered at once.
    left: f64,
    at: Instant,
    /// Wrong tokens beyond those, since the last time of peace.
    strikes: u32,
}

/// What to do about a wrong token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// How long to keep the answer back.
    pub delay: Duration,
    /// When to come again.
    pub retry_after: Duration,
}

impl WrongTokens {
    /// Counts a wrong token; none if it is one of few.
    pub fn count(&self, address: IpAddr, per_minute: u32, now: Instant) -> Option<Penalty> {
        let most = f64::from(per_minute.max(1));
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&address) {
            forget_one(&mut addresses);
        }
        let fresh = Attempts { left: most, at: now, strikes: 0 };
        let attempts = addresses.entry(address).or_insert(fresh);
        let gained = now.saturating_duration_since(attempts.at).as_secs_f64() * most / 60.0;
        attempts.left += gained;
        attempts.at = now;
        if attempts.left >= most {
            (attempts.left, attempts.strikes) = (most, 0);
        }
        if attempts.left >= 1.0 {
            attempts.left -= 1.0;
            return None;
        }
        let doubled = 2u32.saturating_pow(attempts.strikes.min(16));
        attempts.strikes = attempts.strikes.saturating_add(1);
        let retry_after = Duration::from_secs(1).saturating_mul(doubled).min(MAX_RETRY);
        let delay = Duration::from_millis(50).saturating_mul(doubled).min(MAX_DELAY);
        Some(Penalty { delay, retry_after })
    }
}

fn forget_one(addresses: &mut HashMap<IpAddr, Attempts>) {
    let quiet = addresses.iter().min_by_key(|(_, attempts)| attempts.at);
    if let Some(address) = quiet.map(|(address, _)| *address) {
        addresses.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_few_wrong_tokens_are_free_and_the_rest_wait_longer_each_time() {
        let (wrong, now) = (WrongTokens::default(), Instant::now());
        assert!((0..30).all(|_| wrong.count(HERE, 30, now).is_none()));
        let times: Vec<u64> =
            (0..8).map(|_| wrong.count(HERE, 30, now).unwrap().retry_after.as_secs()).collect();
        assert_eq!(times, [1, 2, 4, 8, 16, 32, 60, 60]);
        let delay = wrong.count(HERE, 30, now).unwrap().delay;
        assert_eq!(delay, MAX_DELAY);
        let other = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(wrong.count(other, 30, now), None, "another address is not held up");
    }

    #[test]
    fn a_minute_of_peace_forgives() {
        let (wrong, now) = (WrongTokens::default(), Instant::now());
        let held: Vec<_> = (0..40).map(|_| wrong.count(HERE, 30, now)).collect();
        assert!(held[39].is_some());
        let later = now + Duration::from_secs(2);
        assert_eq!(wrong.count(HERE, 30, later), None, "one is earned every two seconds");
        assert!(wrong.count(HERE, 30, later).unwrap().retry_after > Duration::from_secs(8));
        let peace = later + Duration::from_secs(61);
        assert!((0..30).all(|_| wrong.count(HERE, 30, peace).is_none()));
        assert_eq!(wrong.count(HERE, 30, peace).unwrap().retry_after.as_secs(), 1);
    }

    #[test]
    fn the_table_is_bounded() {
        let (wrong, now) = (WrongTokens::default(), Instant::now());
        for number in 0..(MAX_ADDRESSES as u32 + 100) {
            wrong.count(IpAddr::from(number.to_be_bytes()), 30, now);
        }
        assert_eq!(wrong.addresses.lock().unwrap().len(), MAX_ADDRESSES);
    }
}
