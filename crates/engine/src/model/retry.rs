//! Two layers of repeats: posting a request again, and beginning an answer anew.
//!
//! Codex has the same two, with the same numbers. Who may be repeated at all says
//! [`classify`](super::classify).

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::classify::{Again, Failure};
use super::{Answered, ModelError, ModelEvent, Provider, Wire};

/// More repeats than this nobody means.
const MOST: u32 = 100;

/// No back-off is longer, however many went before.
const LONGEST: Duration = Duration::from_secs(120);

/// A server that counts requests counts them by the second or minute.
const LIMITED_FACTOR: u32 = 5;

/// How often and how fast we repeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) request: u32,
    pub(super) stream: u32,
    /// Whether a limit without a time to wait is waited for.
    pub(super) waits_unasked: bool,
    /// A factor about one, so that clients who failed together do not come back together.
    pub(super) jitter: fn() -> f64,
}

impl Pace {
    pub(super) fn of(provider: &Provider) -> Self {
        Self {
            request: provider.request_max_retries.min(MOST),
            stream: provider.stream_max_retries.min(MOST),
            waits_unasked: provider.wire == Wire::Chat,
            jitter,
        }
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let doubled = Duration::from_millis(200).saturating_mul(1 << (attempt - 1).min(20));
        doubled.min(LONGEST).mul_f64((self.jitter)())
    }
}

/// Posts until it is taken, or failed for good as far as this layer goes.
pub(super) async fn request<T, Posting>(
    pace: &Pace,
    post: impl Fn() -> Posting,
) -> Result<T, Failure>
where
    Posting: Future<Output = Result<T, Failure>>,
{
    for attempt in 1.. {
        let failure = match post().await {
            Ok(taken) => return Ok(taken),
            Err(failure) => failure,
        };
        let spent = attempt > pace.request;
        match failure.again {
            Again::Request | Again::RequestOnly if !spent => {
                let delay = pace.backoff(attempt);
                tracing::debug!(attempt, ?delay, cause = %failure.error, "post again");
                sleep(delay).await;
            }
            Again::Request => return Err(Failure { again: Again::Stream, ..failure }),
            Again::RequestOnly => return Err(Failure { again: Again::Never, ..failure }),
            Again::Never | Again::Stream | Again::After(_) | Again::Unspecified => {
                return Err(failure);
            }
        }
    }
    unreachable!("the loop ends by returning")
}

/// Asks until there is an answer, or no hope of one. Says so each time it begins anew.
pub(super) async fn answer<Asking>(
    pace: &Pace,
    events: &mpsc::Sender<ModelEvent>,
    ask: impl Fn() -> Asking,
) -> Result<Answered, ModelError>
where
    Asking: Future<Output = Result<Answered, Failure>>,
{
    for attempt in 1.. {
        let Failure { error, again } = match ask().await {
            Ok(answered) => return Ok(answered),
            Err(failure) => failure,
        };
        let delay = match again {
            Again::Never | Again::RequestOnly => return Err(error),
            Again::Unspecified if !pace.waits_unasked => return Err(error),
            Again::Unspecified => pace.backoff(attempt).saturating_mul(LIMITED_FACTOR),
            Again::After(delay) => delay,
            Again::Request | Again::Stream => pace.backoff(attempt),
        };
        if attempt > pace.stream {
            return Err(given_up(error, pace.stream));
        }
        tracing::debug!(attempt, ?delay, cause = %error, "ask again");
        let cause = error.message;
        // Nobody listening is no reason to leave the answer half.
        let _ =
            events.send(ModelEvent::Retrying { attempt, most: pace.stream, cause, delay }).await;
        sleep(delay).await;
    }
    unreachable!("the loop ends by returning")
}

fn given_up(error: ModelError, repeats: u32) -> ModelError {
    match repeats {
        0 => error,
        1 => ModelError { message: format!("{}; asked twice", error.message), ..error },
        _ => {
            let asked = repeats + 1;
            ModelError { message: format!("{}; asked {asked} times", error.message), ..error }
        }
    }
}

/// Between 0.9 and 1.1.
fn jitter() -> f64 {
    let mut byte = [0u8];
    // Without chance all is as well, only less polite.
    let _ = getrandom::fill(&mut byte);
    0.9 + f64::from(byte[0]) / 255.0 * 0.2
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::super::classify::{Again, Failure};
    use super::super::{Answered, Fault, ModelError, ModelEvent, Provider, Wire};
    use super::{Pace, answer, jitter, request};

    const PACE: Pace = Pace { request: 4, stream: 5, waits_unasked: true, jitter: || 1.0 };

    fn failure(again: Again) -> Failure {
        let error =
            ModelError { kind: Fault::Transport, message: "broken".to_owned(), status: None };
        Failure { error, again }
    }

    fn millis(list: &[u64]) -> Vec<Duration> {
        list.iter().copied().map(Duration::from_millis).collect()
    }

    /// The times between posts, and how it ended.
    async fn posts(again: Again) -> (Vec<Duration>, Again) {
        let times = RefCell::new(vec![Instant::now()]);
        let ended = request(&PACE, || async {
            times.borrow_mut().push(Instant::now());
            Err::<(), _>(failure(again))
        });
        let again = ended.await.unwrap_err().again;
        let times = times.into_inner();
        (times[1..].windows(2).map(|two| two[1] - two[0]).collect(), again)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_posted_again_only_where_that_may_help() {
        let after = Again::After(Duration::from_secs(2));
        #[rustfmt::skip]
        let table = [
            (Again::Request,     millis(&[200, 400, 800, 1600]), Again::Stream),
            (Again::RequestOnly, millis(&[200, 400, 800, 1600]), Again::Never),
            (Again::Never,       millis(&[]),                    Again::Never),
            (Again::Stream,      millis(&[]),                    Again::Stream),
            (after,              millis(&[]),                    after),
        ];
        for (again, delays, end) in table {
            assert_eq!(posts(again).await, (delays, end), "{again:?}");
        }
    }

    /// The delays told, the delays kept, and the last words.
    async fn asks(again: Again) -> (Vec<Duration>, Vec<Duration>, String) {
        let (sender, mut events) = mpsc::channel(64);
        let times = RefCell::new(Vec::new());
        let ended = answer(&PACE, &sender, || async {
            times.borrow_mut().push(Instant::now());
            Err(failure(again))
        });
        let error = ended.await.unwrap_err();
        drop(sender);
        let mut told = Vec::new();
        while let Some(event) = events.recv().await {
            let ModelEvent::Retrying { attempt, most, delay, cause } = event else { panic!() };
            told.push(delay);
            assert_eq!((attempt as usize, most, cause.as_str()), (told.len(), 5, "broken"));
        }
        let kept = times.into_inner().windows(2).map(|two| two[1] - two[0]).collect();
        (told, kept, error.message)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_begun_anew_and_says_so() {
        let after = Again::After(Duration::from_secs(2));
        #[rustfmt::skip]
        let table = [
            (Again::Stream,      millis(&[200, 400, 800, 1600, 3200]),    "broken; asked 6 times"),
            (Again::Request,     millis(&[200, 400, 800, 1600, 3200]),    "broken; asked 6 times"),
            (after,              millis(&[2000, 2000, 2000, 2000, 2000]), "broken; asked 6 times"),
            (Again::Never,       millis(&[]),                             "broken"),
            (Again::RequestOnly, millis(&[]),                             "broken"),
        ];
        for (again, delays, words) in table {
            let want = (delays.clone(), delays, words.to_owned());
            assert_eq!(asks(again).await, want, "{again:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_that_comes_in_the_end_counts() {
        let (sender, _events) = mpsc::channel(1);
        let asked = RefCell::new(0);
        let ended = answer(&Pace { stream: 1, ..PACE }, &sender, || async {
            *asked.borrow_mut() += 1;
            match *asked.borrow() {
                1 => Err(failure(Again::Stream)),
                _ => Ok(Answered::default()),
            }
        });
        assert_eq!(ended.await.unwrap(), Answered::default());
    }

    #[test]
    fn back_off_has_a_bound_and_a_little_chance() {
        assert_eq!(PACE.backoff(100), Duration::from_secs(120));
        let hurried = Pace { jitter: || 0.9, ..PACE };
        assert_eq!([1, 2, 5].map(|n| hurried.backoff(n)).to_vec(), millis(&[180, 360, 2880]));
        let factors: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(factors.iter().all(|factor| (0.9..=1.1).contains(factor)), "{factors:?}");
        assert!(factors.iter().any(|factor| factor != &factors[0]), "{factors:?}");
    }

    #[test]
    fn repeats_are_four_and_five_unless_said_otherwise_and_a_hundred_at_most() {
        let mut provider = Provider::new(Wire::Responses, "http://localhost");
        let pace = Pace::of(&provider);
        assert_eq!((pace.request, pace.stream), (4, 5));
        assert_eq!(provider.idle_timeout, Duration::from_secs(300));
        for (said, kept) in [(0, 0), (100, 100), (101, 100), (u32::MAX, 100)] {
            (provider.request_max_retries, provider.stream_max_retries) = (said, said);
            let pace = Pace::of(&provider);
            assert_eq!((pace.request, pace.stream), (kept, kept), "{said}");
        }
    }
}
