//! Tokens: by response where a version records that, else by the steps of the running total.

use std::hash::{DefaultHasher, Hash, Hasher};

use bindery_core::usage::{InputTokens, OutputTokens, Usage};
use bindery_core::wire::app_server::notification::Tokens as LiveTokens;

use super::Normaliser;
use crate::ledger::Account;
use crate::wire::{TokenCount, Tokens, UsageRecord};

impl Normaliser<'_> {
    /// `token_usage_record`: a response is counted once, however often it was copied.
    pub(super) fn usage_record(&mut self, record: UsageRecord) {
        self.settle(Account::Usage);
        let mut hasher = DefaultHasher::new();
        record.response_id.hash(&mut hasher);
        if !self.responses.insert(hasher.finish()) {
            return;
        }
        let number = record.turn_id.as_deref().and_then(|id| self.turn_number(id));
        let Some(turn) = number.or(self.last_number()).and_then(|n| self.turn_at(n)) else {
            return;
        };
        turn.by_record = Some(plus(turn.by_record.unwrap_or_default(), record.usage));
    }

    /// `token_count`: versions up to 0.130 repeat it, so only a changed total counts.
    pub(super) fn token_count(&mut self, count: TokenCount) {
        self.settle(Account::Usage);
        let Some(info) = count.info else { return };
        if self.last_total.replace(info.total_token_usage) == Some(info.total_token_usage) {
            return;
        }
        // After a compaction an estimate comes: only its sum is set.
        if info.last_token_usage.input_tokens == 0 && info.last_token_usage.output_tokens == 0 {
            return;
        }
        if let Some(turn) = self.turns.back_mut() {
            turn.by_count = Some(plus(turn.by_count.unwrap_or_default(), info.last_token_usage));
        }
    }
}

/// The tokens of a turn in the AI SDK's shape.
pub(super) fn of_turn(tokens: Option<Tokens>) -> Option<Usage> {
    let tokens = tokens?;
    let raw = LiveTokens {
        total_tokens: tokens.total_tokens,
        input_tokens: tokens.input_tokens,
        cached_input_tokens: tokens.cached_input_tokens,
        cache_write_input_tokens: tokens.cache_write_input_tokens,
        output_tokens: tokens.output_tokens,
        reasoning_output_tokens: tokens.reasoning_output_tokens,
    };
    let (input, output) = (tokens.input_tokens, tokens.output_tokens);
    Some(Usage {
        input_tokens: InputTokens {
            total: Some(input),
            no_cache: Some(input.saturating_sub(tokens.cached_input_tokens)),
            cache_read: Some(tokens.cached_input_tokens),
            cache_write: Some(tokens.cache_write_input_tokens),
        },
        output_tokens: OutputTokens {
            total: Some(output),
            text: Some(output.saturating_sub(tokens.reasoning_output_tokens)),
            reasoning: Some(tokens.reasoning_output_tokens),
        },
        raw: serde_json::to_value(raw).ok(),
    })
}

fn plus(a: Tokens, b: Tokens) -> Tokens {
    Tokens {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        cached_input_tokens: a.cached_input_tokens.saturating_add(b.cached_input_tokens),
        cache_write_input_tokens: a
            .cache_write_input_tokens
            .saturating_add(b.cache_write_input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        reasoning_output_tokens: a
            .reasoning_output_tokens
            .saturating_add(b.reasoning_output_tokens),
        total_tokens: a.total_tokens.saturating_add(b.total_tokens),
    }
}
