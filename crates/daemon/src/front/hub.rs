//! Questions on their way to the stream that shows them.
//!
//! A turn outlives the stream it began in: it may wait for the caller and go on in a later one. So
//! a question goes to whichever stream its thread has now, and waits where there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bindery_core::ids::ThreadId;
use bindery_core::interrupt::Interrupt;
use tokio::sync::mpsc;

/// Questions of one model response come in handfuls; more than this wait for no stream.
const WAITING: usize = 64;

/// Threads whose questions wait for a stream; a caller who is gone does not come for them.
const THREADS: usize = 1024;

/// The streams of threads, by thread; clones share them.
#[derive(Clone, Default)]
pub(super) struct Hub {
    threads: Arc<Mutex<HashMap<ThreadId, Place>>>,
}

enum Place {
    /// A stream is there.
    Open(mpsc::Sender<Interrupt>),
    /// Nobody listens yet, since then.
    Waiting(Instant, Vec<Interrupt>),
}

impl Hub {
    /// Shows a question in the thread's stream, now or when there is one.
    pub(super) fn show(&self, interrupt: Interrupt) {
        let mut threads = self.threads();
        let thread = interrupt.thread_id.clone();
        let nobody = || Place::Waiting(Instant::now(), Vec::new());
        let place = threads.entry(thread).or_insert_with(nobody);
        let interrupt = match place {
            Place::Open(stream) => match stream.try_send(interrupt) {
                Ok(()) => return,
                Err(full_or_gone) => full_or_gone.into_inner(),
            },
            Place::Waiting(..) => interrupt,
        };
        match place {
            Place::Waiting(_, waiting) if waiting.len() < WAITING => waiting.push(interrupt),
            // Unshown is unanswered, and unanswered is refused at its deadline.
            Place::Waiting(..) => tracing::warn!(id = %interrupt.id, "a question found no room"),
            Place::Open(_) => *place = Place::Waiting(Instant::now(), vec![interrupt]),
        }
        make_room(&mut threads);
    }

    /// The questions of a thread from now on, those that wait first.
    pub(super) fn listen(&self, thread: &ThreadId) -> Questions {
        let (stream, questions) = mpsc::channel(WAITING);
        let earlier = self.threads().insert(thread.clone(), Place::Open(stream.clone()));
        if let Some(Place::Waiting(_, waiting)) = earlier {
            for interrupt in waiting {
                // There is room for all that may wait.
                let _ = stream.try_send(interrupt);
            }
        }
        Questions { questions, thread: thread.clone(), hub: self.clone() }
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Place>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what waits longest where too much does.
fn make_room(threads: &mut HashMap<ThreadId, Place>) {
    let waiting = threads.iter().filter_map(|(thread, place)| match place {
        Place::Waiting(since, _) => Some((*since, thread)),
        Place::Open(_) => None,
    });
    if waiting.clone().count() <= THREADS {
        return;
    }
    let oldest = waiting.min_by_key(|(since, _)| *since).map(|(_, thread)| thread.clone());
    if let Some(thread) = oldest {
        tracing::warn!(%thread, "nobody came for its questions");
        threads.remove(&thread);
    }
}

/// The questions that one stream shows.
pub(super) struct Questions {
    questions: mpsc::Receiver<Interrupt>,
    thread: ThreadId,
    hub: Hub,
}

impl Questions {
    pub(super) async fn next(&mut self) -> Option<Interrupt> {
        self.questions.recv().await
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        let mut threads = self.hub.threads();
        // A later stream of the same thread may have taken the place.
        self.questions.close();
        if let Some(Place::Open(stream)) = threads.get(&self.thread)
            && stream.is_closed()
        {
            threads.remove(&self.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use bindery_core::interrupt::Ask;

    use super::*;

    fn question(id: &str) -> Interrupt {
        Interrupt {
            id: id.into(),
            thread_id: "t".into(),
            turn_id: "u".into(),
            call_id: "c".into(),
            ask: Ask::UserInput { questions: Vec::new() },
        }
    }

    #[tokio::test]
    async fn callers_who_never_come_back_take_no_more_than_their_room() {
        let hub = Hub::default();
        let mut listened = hub.listen(&"t".into());
        for number in 0..THREADS + 10 {
            let thread_id = format!("gone-{number}").as_str().into();
            hub.show(Interrupt { thread_id, ..question("1") });
        }
        assert_eq!(hub.threads().len(), THREADS + 1);
        assert!(!hub.threads().contains_key("gone-9"), "the oldest go first");
        assert!(hub.threads().contains_key("gone-10"));
        hub.show(question("2"));
        assert_eq!(listened.next().await.unwrap().id.as_str(), "2", "a stream stays");
    }

    #[tokio::test]
    async fn questions_wait_for_a_stream_and_follow_the_thread() {
        let hub = Hub::default();
        hub.show(question("1"));
        let mut first = hub.listen(&"t".into());
        hub.show(question("2"));
        assert_eq!(first.next().await.unwrap().id.as_str(), "1");
        assert_eq!(first.next().await.unwrap().id.as_str(), "2");
        let mut second = hub.listen(&"t".into());
        drop(first);
        hub.show(question("3"));
        assert_eq!(second.next().await.unwrap().id.as_str(), "3");
        drop(second);
        hub.show(question("4"));
        assert_eq!(hub.listen(&"t".into()).next().await.unwrap().id.as_str(), "4");
    }
}
