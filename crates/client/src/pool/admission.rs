//! How many threads a worker starts at a time.
//!
//! Codex 0.166 on its way to a thread mostly computes, and few at a time are over soonest. Where it
//! mostly waits, as in a home of thousands of sessions, so few would leave the machine idle: starts
//! that take long let one more in, up to a bound, and quick ones take that back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A start that takes this long waits for something: ten times what it takes in a small home.
const SLOW: Duration = Duration::from_millis(150);

/// A start this short computes.
const QUICK: Duration = Duration::from_millis(75);

/// So many times the usual number is the most.
const MORE: usize = 4;

/// Lets so many in at a time, and learns from how long they take.
pub(super) struct Admission {
    room: Semaphore,
    rule: Mutex<Rule>,
}

impl Admission {
    pub(super) fn new(usual: usize) -> Self {
        Self { room: Semaphore::new(usual), rule: Mutex::new(Rule::new(usual)) }
    }

    /// Starts a thread when it is its turn to.
    pub(super) async fn admit<T, E>(
        &self,
        start: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // The semaphore is never closed; without a permit there is only a bound less.
        let permit = self.room.acquire().await.ok();
        let since = Instant::now();
        let outcome = start.await;
        // How long a refusal takes says nothing of a start.
        let step = if outcome.is_ok() { self.learn(since.elapsed()) } else { Step::Stay };
        match (step, permit) {
            (Step::More, _) => self.room.add_permits(1),
            (Step::Fewer, Some(permit)) => permit.forget(),
            (Step::Fewer | Step::Stay, _) => {}
        }
        outcome
    }

    fn learn(&self, took: Duration) -> Step {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner).after(took)
    }
}

/// What a start that is over has taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    More,
    Stay,
    Fewer,
}

/// The rule, without the clock.
#[derive(Debug)]
struct Rule {
    allowed: usize,
    usual: usize,
}

impl Rule {
    fn new(usual: usize) -> Self {
        Self { allowed: usual, usual }
    }

    fn after(&mut self, took: Duration) -> Step {
        if took >= SLOW && self.allowed < self.usual.saturating_mul(MORE) {
            self.allowed += 1;
            Step::More
        } else if took <= QUICK && self.allowed > self.usual {
            self.allowed -= 1;
            Step::Fewer
        } else {
            Step::Stay
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Runs so many starts at once, each as long, and gives how many were ever under way together.
    async fn crowd(admission: &Arc<Admission>, starts: usize, each: Duration) -> usize {
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..starts)
            .map(|_| {
                let (admission, under_way, most) =
                    (admission.clone(), under_way.clone(), most.clone());
                tokio::spawn(async move {
                    let start = async {
                        let now = under_way.fetch_add(1, Ordering::Relaxed) + 1;
                        most.fetch_max(now, Ordering::Relaxed);
                        tokio::time::sleep(each).await;
                        under_way.fetch_sub(1, Ordering::Relaxed);
                        Ok::<_, ()>(())
                    };
                    admission.admit(start).await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        most.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn quick_starts_go_two_at_a_time() {
        let admission = Arc::new(Admission::new(2));
        assert_eq!(crowd(&admission, 32, Duration::from_millis(20)).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_starts_let_more_in_up_to_a_bound() {
        let admission = Arc::new(Admission::new(2));
        assert_eq!(crowd(&admission, 64, Duration::from_millis(240)).await, 8);
    }

    #[tokio::test(start_paused = true)]
    async fn what_slow_starts_gave_quick_ones_take_back() {
        let admission = Arc::new(Admission::new(2));
        crowd(&admission, 64, Duration::from_millis(240)).await;
        crowd(&admission, 64, Duration::from_millis(20)).await;
        assert_eq!(crowd(&admission, 32, Duration::from_millis(20)).await, 2);
        assert_eq!(admission.room.available_permits(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_teaches_nothing_and_gives_its_place_back() {
        let admission = Admission::new(2);
        for _ in 0..8 {
            let slow_no = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err::<(), _>(())
            };
            assert_eq!(admission.admit(slow_no).await, Err(()));
        }
        assert_eq!(admission.room.available_permits(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_leaves_gives_the_place_back() {
        let admission = Admission::new(1);
        let never = std::future::pending::<Result<(), ()>>();
        let left = tokio::time::timeout(Duration::from_secs(1), admission.admit(never)).await;
        assert!(left.is_err());
        assert_eq!(admission.admit(std::future::ready(Ok::<_, ()>(7))).await, Ok(7));
    }
}
