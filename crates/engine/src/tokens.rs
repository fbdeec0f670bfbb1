//! What an answer cost, in the shape both wires and the app-server protocol share.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of one response, or of many added up. Cached ones are among the input, reasoning is
/// among the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenCount {
    /// All that was read.
    pub input_tokens: u64,
    /// Of that, from the server's cache.
    pub cached_input_tokens: u64,
    /// Of that, written to the server's cache.
    pub cache_write_input_tokens: u64,
    /// All that was written.
    pub output_tokens: u64,
    /// Of that, thoughts.
    pub reasoning_output_tokens: u64,
    /// Read and written.
    pub total_tokens: u64,
}

impl AddAssign for TokenCount {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.cache_write_input_tokens += other.cache_write_input_tokens;
        self.output_tokens += other.output_tokens;
        self.reasoning_output_tokens += other.reasoning_output_tokens;
        self.total_tokens += other.total_tokens;
    }
}
