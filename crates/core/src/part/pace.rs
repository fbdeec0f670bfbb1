//! Parts for a reader whom every one of them wakes: fewer deltas, and nothing sent alone that
//! nobody waits for.
//!
//! The first delta goes at once, so nobody waits for the first word; those that follow too soon
//! are kept back for a moment and go together. At the pace of a model that is read as it writes,
//! none is ever kept back. What opens a stream goes with the first part that says something, or
//! before long. Everything else goes when it comes, behind what was kept back.

use std::time::{Duration, Instant};

use super::{Delta, Part};

/// The longest that a delta is kept back: shorter than a frame of a screen.
pub const GAP: Duration = Duration::from_millis(5);

/// The longest that a part is kept back that says nothing yet: what a person takes for at once.
pub const LINGER: Duration = Duration::from_millis(100);

/// A joined delta is not longer than this by much.
const LONG: usize = 8 * 1024;

/// Keeps parts back and joins them; the caller has the clock.
#[derive(Debug, Default)]
pub struct Pacer {
    /// Parts that nobody waits for, and when the first of them must go.
    lingering: Vec<Part>,
    linger_until: Option<Instant>,
    /// A delta; never one while others linger.
    held: Option<Part>,
    /// Until then, deltas are kept back.
    until: Option<Instant>,
}

impl Pacer {
    /// Takes a part, and gives those that are to be sent now, in order.
    pub fn push(&mut self, part: Part, now: Instant, out: &mut Vec<Part>) {
        if part.can_linger() {
            out.extend(self.held.take());
            self.linger_until.get_or_insert(now + LINGER);
            return self.lingering.push(part);
        }
        self.leave(out);
        let part = match &mut self.held {
            Some(held) => match held.join(part) {
                None => return self.check(now, out),
                Some(other) => other,
            },
            None => part,
        };
        out.extend(self.held.take());
        if !part.is_delta() {
            // The first words of what begins now go at once, too.
            self.until = None;
            out.push(part);
        } else if self.until.is_some_and(|until| now < until) {
            self.held = Some(part);
        } else {
            self.until = Some(now + GAP);
            out.push(part);
        }
    }

    /// When what is kept back must go, if anything is.
    pub fn due(&self) -> Option<Instant> {
        self.linger_until.or(self.held.as_ref().and(self.until))
    }

    /// What was kept back.
    pub fn release(&mut self, now: Instant, out: &mut Vec<Part>) {
        self.leave(out);
        if let Some(held) = self.held.take() {
            self.until = Some(now + GAP);
            out.push(held);
        }
    }

    fn leave(&mut self, out: &mut Vec<Part>) {
        self.linger_until = None;
        out.append(&mut self.lingering);
    }

    /// Lets go of what has been kept long enough, or has become long enough.
    fn check(&mut self, now: Instant, out: &mut Vec<Part>) {
        let length = self.held.as_ref().and_then(Part::delta).map_or(0, |held| held.delta.len());
        if length >= LONG || self.until.is_none_or(|until| now >= until) {
            self.release(now, out);
        }
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

/// The user's own words, come back.
const ECHO: &str = "codex.user-message";

impl Part {
    /// Whether nobody waits for it.
    fn can_linger(&self) -> bool {
        match self {
            Self::StreamStart { .. } | Self::ResponseMetadata { .. } => true,
            Self::Custom { kind, .. } => kind == ECHO,
            _ => false,
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
        let end = part(json!({ "type": "text-end", "id": "1" }));
        for part in [text("a"), text("b"), reasoning, text("c"), text("d"), end, text("e")] {
            pacer.push(part, start, &mut out);
        }
        assert_eq!(said(&out), ["a", "b", "r", "cd", "-", "e"]);
        assert_eq!(pacer.due(), None);
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
        let both = format!("{long}z");
        assert_eq!(said(&out), ["a", both.as_str()]);
    }
}
