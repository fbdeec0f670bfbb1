//! Threads started ahead, and for which settings.

use std::time::Duration;

use bindery_core::wire::app_server::params::ThreadStart;
use bindery_core::wire::app_server::reply::ThreadOpened;
use tokio::time::Instant;

/// Settings of one key that spares are kept for; of more, the longest unused are let go.
const WISHES: usize = 8;

/// A spare is replaced this much later: it was taken to make a turn fast, which starting another
/// at the same moment would slow down.
pub(super) const REFILL: Duration = Duration::from_millis(250);

/// Settings that spares are kept for.
#[derive(Debug)]
pub(super) struct Wish {
    /// The settings, whole.
    pub(super) start: ThreadStart,
    /// Not before then is anything started.
    pub(super) fill_at: Instant,
    used: Instant,
    /// Somebody asked for spares; they are kept up however long nobody uses them.
    declared: bool,
}

/// The settings of a key.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    wishes: Vec<Wish>,
}

impl Wishes {
    /// A conversation begins with these settings.
    pub(super) fn used(&mut self, start: &ThreadStart, now: Instant) {
        let wish = self.entry(start, now);
        wish.used = now;
        wish.fill_at = now + REFILL;
    }

    /// Conversations will begin with these settings.
    pub(super) fn declare(&mut self, start: &ThreadStart, now: Instant) {
        self.entry(start, now).declared = true;
    }

    /// No start of these for a while: the last one failed.
    pub(super) fn postpone(&mut self, start: &ThreadStart, until: Instant) {
        let same = self.wishes.iter_mut().find(|wish| wish.start == *start);
        if let Some(wish) = same {
            wish.fill_at = until;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Wish> {
        self.wishes.iter()
    }

    pub(super) fn has(&self, start: &ThreadStart) -> bool {
        self.wishes.iter().any(|wish| wish.start == *start)
    }

    /// Lets go what nobody has used for so long; gives the next time to look.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) -> Option<Instant> {
        self.wishes.retain(|wish| wish.declared || wish.used + idle > now);
        let lasting = self.wishes.iter().filter(|wish| !wish.declared);
        lasting.map(|wish| wish.used + idle).min()
    }

    fn entry(&mut self, start: &ThreadStart, now: Instant) -> &mut Wish {
        let at = match self.wishes.iter().position(|wish| wish.start == *start) {
            Some(at) => at,
            None => {
                if self.wishes.len() >= WISHES {
                    let oldest = self.wishes.iter().enumerate().min_by_key(|(_, wish)| wish.used);
                    let oldest = oldest.map_or(0, |(at, _)| at);
                    self.wishes.swap_remove(oldest);
                }
                let start = start.clone();
                self.wishes.push(Wish { start, fill_at: now, used: now, declared: false });
                self.wishes.len() - 1
            }
        };
        &mut self.wishes[at]
    }
}

/// A thread that nobody uses yet.
#[derive(Debug)]
pub(super) struct Spare {
    /// What it was started with.
    pub(super) start: ThreadStart,
    /// What Codex said to that.
    pub(super) opened: ThreadOpened,
    /// When.
    pub(super) since: Instant,
}

/// The spare threads of a worker.
#[derive(Debug, Default)]
pub(super) struct Spares {
    ready: Vec<Spare>,
    /// Being started.
    filling: Vec<ThreadStart>,
}

impl Spares {
    /// Takes one out that was started with exactly these settings, the oldest first.
    pub(super) fn take(&mut self, start: &ThreadStart) -> Option<ThreadOpened> {
        let at = self.ready.iter().position(|spare| spare.start == *start)?;
        Some(self.ready.remove(at).opened)
    }

    pub(super) fn fill(&mut self, start: &ThreadStart) {
        self.filling.push(start.clone());
    }

    /// The start that [`Self::fill`] announced has ended, with a thread or without.
    pub(super) fn filled(&mut self, start: &ThreadStart) {
        if let Some(at) = self.filling.iter().position(|filling| filling == start) {
            self.filling.swap_remove(at);
        }
    }

    pub(super) fn put(&mut self, spare: Spare) {
        self.ready.push(spare);
    }

    /// Takes out those that are too old or no longer wanted.
    pub(super) fn expire(&mut self, wishes: &Wishes, now: Instant, idle: Duration) -> Vec<Spare> {
        let stale = |spare: &Spare| spare.since + idle <= now || !wishes.has(&spare.start);
        let (stale, ready) = self.ready.drain(..).partition(stale);
        self.ready = ready;
        stale
    }

    /// When the next one gets too old.
    pub(super) fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        self.ready.iter().map(|spare| spare.since + idle).min()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Ready and being started.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.filling.len()
    }

    /// Of these settings, ready and being started.
    pub(super) fn count(&self, start: &ThreadStart) -> usize {
        let ready = self.ready.iter().filter(|spare| spare.start == *start).count();
        ready + self.filling.iter().filter(|filling| *filling == start).count()
    }
}
