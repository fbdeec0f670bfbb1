//! Parts for a reader whom every one of them wakes: fewer deltas, and nothing sent alone that
//! nobody waits for.
//!
//! The first words of a text go at once, so nobody waits for them; those that follow too soon
//! are kept back for a moment and go together: forty times a second, words come smoothly, and a
//! reader that draws each does not fall behind. What only opens or ends something goes with what
//! follows, or before long. Everything else goes when it comes, behind what was kept back.

use std::time::{Duration, Instant};

use super::echo::ECHO;
use super::{Delta, Part};

/// The longest that words are kept back: a frame of a film, which nobody sees as a wait.
pub const GAP: Duration = Duration::from_millis(25);

/// The longest that a part is kept back that says nothing: what a person takes for at once.
pub const LINGER: Duration = Duration::from_millis(100);

/// A joined delta is not longer than this by much.
const LONG: usize = 8 * 1024;

/// No more parts than this are kept back.
const MANY: usize = 64;

/// Keeps parts back and joins them; the caller has the clock.
#[derive(Debug, Default)]
pub struct Pacer {
    /// Kept back, in order.
    held: Vec<Part>,
    /// When they must go.
    due: Option<Instant>,
    /// Until then, deltas are kept back.
    until: Option<Instant>,
}

impl Pacer {
    /// Takes a part, and gives those that are to be sent now, in order.
    pub fn push(&mut self, part: Part, now: Instant, out: &mut Vec<Part>) {
        let haste = part.haste();
        let wait = self.wait(haste, now);
        let part = match self.held.last_mut() {
            Some(last) => last.join(part),
            None => Some(part),
        };
        self.held.extend(part);
        match wait.filter(|_| !self.is_full()) {
            Some(wait) => self.due = Some(self.due.map_or(now + wait, |due| due.min(now + wait))),
            None => self.release(now, out),
        }
        // The first words of what begins now go at once, too.
        if matches!(haste, Haste::Opens | Haste::Matters) {
            self.until = None;
        }
    }

    /// When what is kept back must go, if anything is.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What was kept back.
    pub fn release(&mut self, now: Instant, out: &mut Vec<Part>) {
        self.due = None;
        if self.held.iter().any(Part::is_delta) {
            self.until = Some(now + GAP);
        }
        out.append(&mut self.held);
    }

    /// How long a part can wait; none if it goes at once.
    fn wait(&self, haste: Haste, now: Instant) -> Option<Duration> {
        match haste {
            Haste::Opens | Haste::Ends => Some(LINGER),
            Haste::Says => {
                let until = self.until.filter(|until| now < *until)?;
                Some(until.saturating_duration_since(now))
            }
            Haste::Matters => None,
        }
    }

    fn is_full(&self) -> bool {
        let last = self.held.last().and_then(Part::delta);
        self.held.len() >= MANY || last.is_some_and(|held| held.delta.len() >= LONG)
    }
}

/// Joins neighbours that are there already.
pub fn joined(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        let other = match out.last_mut() {
            Some(last) if last.delta().is_none_or(|held| held.delta.len() < LONG) => {
                last.join(part)
            }
            _ => Some(part),
        };
        out.extend(other);
    }
    out
}

/// Who waits for a part.
#[derive(Clone, Copy)]
enum Haste {
    /// Nobody: it says nothing before what follows does.
    Opens,
    /// Nobody but a reader who wants to know that there is no more.
    Ends,
    /// Whoever reads along.
    Says,
    /// Somebody may.
    Matters,
}

impl Part {
    fn haste(&self) -> Haste {
        match self {
            Self::StreamStart { .. } | Self::ResponseMetadata { .. } => Haste::Opens,
            Self::TextStart { .. } | Self::ReasoningStart { .. } => Haste::Opens,
            Self::Custom { kind, .. } if kind == ECHO => Haste::Opens,
            Self::TextEnd { .. } | Self::ReasoningEnd { .. } => Haste::Ends,
            _ if self.is_delta() => Haste::Says,
            _ => Haste::Matters,
        }
    }

    fn is_delta(&self) -> bool {
        self.delta().is_some()
    }

    fn delta(&self) -> Option<&Delta> {
        match self {
            Self::TextDelta(delta) | Self::ReasoningDelta(delta) | Self::ToolInputDelta(delta) => {
                Some(delta)
            }
            _ => None,
        }
    }

    /// Takes the next part in, if both are plain deltas of one run; else gives it back.
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::TextDelta(held), Self::TextDelta(next))
            | (Self::ReasoningDelta(held), Self::ReasoningDelta(next))
            | (Self::ToolInputDelta(held), Self::ToolInputDelta(next))
                if held.id == next.id
                    && held.provider_metadata.is_none()
                    && next.provider_metadata.is_none() =>
            {
                held.delta.push_str(&next.delta);
                None
            }
            (_, next) => Some(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(delta: &str) -> Part {
        part(json!({ "type": "text-delta", "id": "1", "delta": delta }))
    }

    fn part(value: serde_json::Value) -> Part {
        serde_json::from_value(value).unwrap()
    }

    fn said(parts: &[Part]) -> Vec<&str> {
        parts.iter().map(|part| part.delta().map_or("-", |delta| &delta.delta)).collect()
    }

    /// A clock that only counts from here.
    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        Instant::now()
    }

    #[test]
    fn the_first_goes_at_once_and_a_burst_goes_together() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        for word in ["a", "b", "c"] {
            pacer.push(text(word), start, &mut out);
        }
        assert_eq!(said(&out), ["a"]);
        assert_eq!(pacer.due(), Some(start + GAP));
        pacer.release(start + GAP, &mut out);
        assert_eq!(said(&out), ["a", "bc"]);
        assert_eq!(pacer.due(), None);
        // What was released counts as sent.
        pacer.push(text("d"), start + GAP, &mut out);
        assert_eq!(said(&out), ["a", "bc"]);
    }

    #[test]
    fn a_stream_that_never_pauses_is_not_kept_back_for_ever() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        for at in 0..20 {
            pacer.push(text("x"), start + GAP * at / 4, &mut out);
        }
        assert_eq!(said(&out), ["x", "xxxx", "xxxx", "xxxx", "xxxx"]);
    }

    #[test]
    fn a_slow_stream_is_left_alone() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        for (at, word) in (0..).zip(["a", "b", "c"]) {
            pacer.push(text(word), start + GAP * at, &mut out);
        }
        assert_eq!(said(&out), ["a", "b", "c"]);
        assert_eq!(pacer.due(), None);
    }

    #[test]
    fn another_part_waits_for_nothing_and_overtakes_nothing() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let reasoning = part(json!({ "type": "reasoning-delta", "id": "1", "delta": "r" }));
        let notice = part(json!({ "type": "custom", "kind": "codex.notice" }));
        for part in [text("a"), text("b"), reasoning, text("c"), text("d"), notice, text("e")] {
            pacer.push(part, start, &mut out);
        }
        assert_eq!(said(&out), ["a", "b", "r", "cd", "-", "e"]);
        assert_eq!(pacer.due(), None);
    }

    #[test]
    fn an_end_goes_with_what_follows_and_a_beginning_with_its_first_words() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let end = part(json!({ "type": "text-end", "id": "1" }));
        let begin = part(json!({ "type": "text-start", "id": "2" }));
        pacer.push(text("a"), start, &mut out);
        pacer.push(text("b"), start, &mut out);
        pacer.push(end.clone(), start + GAP / 2, &mut out);
        // Words that were kept back before it do not wait longer for it.
        assert_eq!((said(&out), pacer.due()), (vec!["a"], Some(start + GAP)));
        pacer.push(begin.clone(), start + GAP / 2, &mut out);
        assert_eq!((said(&out), pacer.due()), (vec!["a"], Some(start + GAP)));
        pacer.push(text("c"), start + GAP / 2, &mut out);
        assert_eq!((&out[1..], pacer.due()), (&[text("b"), end, begin, text("c")][..], None));
    }

    #[test]
    fn an_end_alone_goes_before_long() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let end = part(json!({ "type": "text-end", "id": "1" }));
        pacer.push(end.clone(), start, &mut out);
        assert_eq!((out.len(), pacer.due()), (0, Some(start + LINGER)));
        pacer.release(start + LINGER, &mut out);
        assert_eq!(out, [end]);
    }

    #[test]
    fn no_more_than_a_few_are_kept_back() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let begin = part(json!({ "type": "stream-start", "warnings": [] }));
        for _ in 0..MANY {
            assert_eq!(out, []);
            pacer.push(begin.clone(), start, &mut out);
        }
        assert_eq!((out.len(), pacer.due()), (MANY, None));
    }

    #[test]
    fn what_opens_a_stream_goes_with_the_first_that_says_something() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let begin = part(json!({ "type": "stream-start", "warnings": [] }));
        let echo = part(json!({ "type": "custom", "kind": ECHO }));
        let notice = part(json!({ "type": "custom", "kind": "codex.notice" }));
        pacer.push(begin.clone(), start, &mut out);
        pacer.push(echo.clone(), start + GAP, &mut out);
        assert_eq!((out.len(), pacer.due()), (0, Some(start + LINGER)));
        pacer.push(text("a"), start + GAP, &mut out);
        assert_eq!((&out, pacer.due()), (&vec![begin, echo.clone(), text("a")], None));
        // Words added while it runs come behind what was said before, and before what comes after.
        for part in [text("b"), echo.clone(), notice.clone()] {
            pacer.push(part, start + GAP, &mut out);
        }
        assert_eq!(out[3..], [text("b"), echo, notice]);
    }

    #[test]
    fn what_opens_a_stream_does_not_wait_for_ever() {
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        let begin = part(json!({ "type": "stream-start", "warnings": [] }));
        pacer.push(begin.clone(), start, &mut out);
        pacer.release(start + LINGER, &mut out);
        assert_eq!((out, pacer.due()), (vec![begin], None));
    }

    #[test]
    fn what_carries_metadata_stays_alone_and_nothing_grows_without_end() {
        let noted = part(json!({ "type": "text-delta", "id": "1", "delta": "x",
            "providerMetadata": { "codex": { "n": 1 } } }));
        assert_eq!(said(&joined([text("a"), noted, text("b"), text("c")])), ["a", "x", "bc"]);
        let long = "y".repeat(LONG);
        let pieces = [text(&long), text("z"), text("z")];
        assert_eq!(said(&joined(pieces.clone())), [long.as_str(), "zz"]);
        let (mut pacer, start, mut out) = (Pacer::default(), start(), Vec::new());
        pacer.push(text("a"), start, &mut out);
        for piece in pieces {
            pacer.push(piece, start, &mut out);
        }
        assert_eq!(said(&out), ["a", long.as_str()]);
        pacer.release(start + GAP, &mut out);
        assert_eq!(said(&out[2..]), ["zz"]);
    }
}
