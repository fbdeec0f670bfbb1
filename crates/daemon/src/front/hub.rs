//! Questions on their way to the stream that shows them.
//!
//! A turn outlives the stream it began in: it may wait for the caller and go on in a later one. So
//! a question goes to whichever stream its thread has now, and waits where there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_core::ids::ThreadId;
use bindery_core::interrupt::Interrupt;
use tokio::sync::mpsc;

/// Questions of one model response come in handfuls; more than this wait for no stream.
const WAITING: usize = 64;

/// The streams of threads, by thread; clones share them.
#[derive(Clone, Default)]
pub(super) struct Hub {
    threads: Arc<Mutex<HashMap<ThreadId, Place>>>,
}

enum Place {
    /// A stream is there.
    Open(mpsc::Sender<Interrupt>),
    /// Nobody listens yet.
    Waiting(Vec<Interrupt>),
}

impl Hub {
    /// Shows a question in the thread's stream, now or when there is one.
    pub(super) fn show(&self, interrupt: Interrupt) {
        let mut threads = self.threads();
        let thread = interrupt.thread_id.clone();
        let place = threads.entry(thread).or_insert_with(|| Place::Waiting(Vec::new()));
        let interrupt = match place {
            Place::Open(stream) => match stream.try_send(interrupt) {
                Ok(()) => return,
                Err(full_or_gone) => full_or_gone.into_inner(),
            },
            Place::Waiting(_) => interrupt,
        };
        match place {
            Place::Waiting(waiting) if waiting.len() < WAITING => waiting.push(interrupt),
            // Unshown is unanswered, and unanswered is refused at its deadline.
            Place::Waiting(_) => tracing::warn!(id = %interrupt.id, "a question found no room"),
            Place::Open(_) => *place = Place::Waiting(vec![interrupt]),
        }
    }

    /// The questions of a thread from now on, those that wait first.
    pub(super) fn listen(&self, thread: &ThreadId) -> Questions {
        let (stream, questions) = mpsc::channel(WAITING);
        let earlier = self.threads().insert(thread.clone(), Place::Open(stream.clone()));
        if let Some(Place::Waiting(waiting)) = earlier {
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
