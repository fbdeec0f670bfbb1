//! Tokens of a turn: the thread's total after it less the total before it.

use serde_json::{Value, json};

use crate::usage::{InputCounts, Usage};
use crate::wire::app_server::notification::{TokenUsage, Tokens};

/// A thread's token totals, handed from one turn's mapper to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    before: Option<Tokens>,
    now: Option<TokenUsage>,
}

impl Ledger {
    /// The ledger of a turn before which the thread had used so much.
    pub fn after(total: Tokens) -> Self {
        Self { before: Some(total), now: None }
    }

    /// Takes an update. One that belongs to another turn (Codex replays the last after a resume)
    /// only moves the base line.
    pub fn update(&mut self, usage: &TokenUsage, of_this_turn: bool) {
        if !of_this_turn {
            self.before = Some(usage.total);
            return;
        }
        if self.before.is_none() {
            self.before = Some(less(usage.total, usage.last));
        }
        self.now = Some(usage.clone());
    }

    /// The ledger the thread's next turn starts with.
    pub fn for_next_turn(&self) -> Self {
        Self { before: self.now.as_ref().map(|now| now.total).or(self.before), now: None }
    }

    /// Tokens of this turn; unknown when no response came.
    pub fn turn_usage(&self) -> Usage {
        let Some(now) = &self.now else { return Usage::default() };
        let turn = less(now.total, self.before.unwrap_or_default());
        let read = InputCounts {
            all: turn.input_tokens,
            cached: turn.cached_input_tokens,
            cache_written: turn.cache_write_input_tokens,
        };
        let raw = serde_json::to_value(turn).ok();
        Usage::of(read, turn.output_tokens, turn.reasoning_output_tokens, raw)
    }

    /// Adds the thread's totals and the room left in the model's window.
    pub(super) fn describe(&self, details: &mut Value) {
        let Some(now) = &self.now else { return };
        details["threadUsage"] = json!(now.total);
        if let Some(window) = now.model_context_window.filter(|window| *window > 0) {
            let left = window.saturating_sub(now.last.total_tokens);
            details["contextWindow"] = json!(window);
            details["contextLeftPercent"] = json!(u128::from(left) * 100 / u128::from(window));
        }
    }
}

fn less(total: Tokens, part: Tokens) -> Tokens {
    Tokens {
        total_tokens: total.total_tokens.saturating_sub(part.total_tokens),
        input_tokens: total.input_tokens.saturating_sub(part.input_tokens),
        cached_input_tokens: total.cached_input_tokens.saturating_sub(part.cached_input_tokens),
        cache_write_input_tokens: total
            .cache_write_input_tokens
            .saturating_sub(part.cache_write_input_tokens),
        output_tokens: total.output_tokens.saturating_sub(part.output_tokens),
        reasoning_output_tokens: total
            .reasoning_output_tokens
            .saturating_sub(part.reasoning_output_tokens),
    }
}

/// Seconds since 1970 as RFC 3339 in UTC (civil calendar, no leap seconds).
pub(super) fn rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 1 March of year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_a_calendar_does() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_794_773_391), "2026-11-15T20:09:51Z");
    }

    fn usage(total: u64, last: u64) -> TokenUsage {
        let tokens = |n| Tokens { total_tokens: n, input_tokens: n, ..Tokens::default() };
        TokenUsage { total: tokens(total), last: tokens(last), model_context_window: None }
    }

    #[test]
    fn a_turn_is_the_difference_of_totals() {
        let mut ledger = Ledger::default();
        ledger.update(&usage(240, 120), false);
        ledger.update(&usage(240, 120), true);
        ledger.update(&usage(360, 120), true);
        ledger.update(&usage(480, 120), true);
        assert_eq!(ledger.turn_usage().input_tokens.total, Some(240));
        let mut next = ledger.for_next_turn();
        next.update(&usage(500, 20), true);
        assert_eq!(next.turn_usage().input_tokens.total, Some(20));
    }

    #[test]
    fn without_a_base_line_the_first_response_gives_it() {
        let mut ledger = Ledger::default();
        ledger.update(&usage(240, 120), true);
        ledger.update(&usage(360, 120), true);
        assert_eq!(ledger.turn_usage().input_tokens.total, Some(240));
    }
}
