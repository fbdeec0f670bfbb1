//! Tokens of a turn, from totals that Codex counts over the whole thread.

use crate::ndjson::Tokens;

/// A thread's tokens before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Baseline {
    /// The thread is new: none.
    #[default]
    New,
    /// So many.
    Known(Tokens),
    /// The thread was resumed, and nobody knows: tokens of its first turn are not told.
    Unknown,
}

/// The thread's total so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// None where it is not known.
    before: Option<Tokens>,
}

impl Totals {
    pub(super) fn new(baseline: Baseline) -> Self {
        let before = match baseline {
            Baseline::New => Some(Tokens::default()),
            Baseline::Known(tokens) => Some(tokens),
            Baseline::Unknown => None,
        };
        Self { before }
    }

    /// Takes the total after a turn; gives the turn's own tokens.
    ///
    /// 0.58 and older count anew in every process, even in one that resumes. Every turn reads
    /// something, so a total that did not grow is one that began again.
    pub(super) fn turn(&mut self, total: Tokens) -> Option<Tokens> {
        let before = self.before.replace(total)?;
        if total.input_tokens <= before.input_tokens {
            return Some(total);
        }
        Some(less(total, before))
    }

    /// Takes what a turn used; gives the total after it (0.42 and older tell only that).
    pub(super) fn add(&mut self, turn: Tokens) -> Tokens {
        let total = plus(self.before.unwrap_or_default(), turn);
        self.before = Some(total);
        total
    }
}

/// The sum, field by field.
pub(super) fn plus(a: Tokens, b: Tokens) -> Tokens {
    each(a, b, u64::saturating_add)
}

fn less(total: Tokens, before: Tokens) -> Tokens {
    each(total, before, u64::saturating_sub)
}

fn each(a: Tokens, b: Tokens, op: fn(u64, u64) -> u64) -> Tokens {
    Tokens {
        input_tokens: op(a.input_tokens, b.input_tokens),
        cached_input_tokens: op(a.cached_input_tokens, b.cached_input_tokens),
        cache_write_input_tokens: op(a.cache_write_input_tokens, b.cache_write_input_tokens),
        output_tokens: op(a.output_tokens, b.output_tokens),
        reasoning_output_tokens: op(a.reasoning_output_tokens, b.reasoning_output_tokens),
    }
}
