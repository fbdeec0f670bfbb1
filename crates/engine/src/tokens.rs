//! What an answer cost, in the shape both wires and the app-server protocol share, and what an
//! item is likely to cost.

use std::ops::AddAssign;

use bindery_core::open::Open;
use serde::{Deserialize, Serialize};

use crate::item::{Content, HistoryItem, Item, Output};

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

/// What a thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Since it began, compactions included.
    pub total: TokenCount,
    /// Of the last response.
    pub last: TokenCount,
}

impl ThreadUsage {
    /// Counts one more response.
    pub fn add(&mut self, count: TokenCount) {
        self.total += count;
        self.last = count;
    }
}

/// Every prompt needs about this much before anyone says a word; it is not the user's to fill.
const BASELINE: u64 = 12_000;

/// A picture costs about this many bytes' worth of tokens, whatever its data URL weighs.
const PICTURE_BYTES: usize = 7_373;

/// How much of a window is left for the user, in percent.
pub fn percent_left(window: u64, used: u64) -> u8 {
    if window <= BASELINE {
        return 0;
    }
    let room = window - BASELINE;
    let left = room.saturating_sub(used.saturating_sub(BASELINE));
    u8::try_from((left * 200 / room).div_ceil(2).min(100)).unwrap_or(100)
}

/// Tokens of so many bytes: four bytes each, without a tokenizer.
pub fn of_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// What an item is likely to cost when it is sent.
pub fn estimate(item: &HistoryItem) -> u64 {
    let bytes = match item {
        Open::Known(Item::Message(message)) => 60 + content_bytes(&message.content),
        Open::Known(Item::Reasoning(reasoning)) => match &reasoning.encrypted_content {
            Some(sealed) => (sealed.len() * 3 / 4).saturating_sub(650),
            None => json_bytes(item),
        },
        Open::Known(Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)) => {
            80 + match &output.output {
                Output::Text(text) => text.len(),
                Output::Content(content) => content_bytes(content),
            }
        }
        _ => json_bytes(item),
    };
    of_bytes(bytes)
}

fn content_bytes(content: &[Open<Content>]) -> usize {
    content
        .iter()
        .map(|piece| match piece {
            Open::Known(Content::InputText { text } | Content::OutputText { text }) => {
                30 + text.len()
            }
            Open::Known(Content::InputImage { .. }) => PICTURE_BYTES,
            Open::Unknown { raw, .. } => json_bytes(raw),
        })
        .sum()
}

/// The length of the JSON, without writing it.
fn json_bytes<T: Serialize>(value: &T) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) | Err(_) => count.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Message, Role};

    #[test]
    fn the_percentage_leaves_the_baseline_out() {
        #[rustfmt::skip]
        let table = [
            // window, used, left
            (12_000,       0,   0),
            (272_000,      0, 100),
            (272_000, 12_000, 100),
            (272_000, 142_000, 50),
            (272_000, 272_000,  0),
            (272_000, 900_000,  0),
            (112_000, 12_400, 100),
            (112_000, 12_600,  99),
        ];
        for (window, used, left) in table {
            assert_eq!(percent_left(window, used), left, "{used} of {window}");
        }
    }

    #[test]
    fn a_picture_costs_what_pictures_cost() {
        let picture = Content::InputImage { image_url: "x".repeat(1_000_000), detail: None };
        let message =
            Message { id: None, role: Role::User, content: vec![picture.into()], phase: None };
        assert_eq!(estimate(&message.into()), of_bytes(60 + PICTURE_BYTES));
    }

    #[test]
    fn text_costs_a_token_for_four_bytes() {
        let message = Message::text(Role::User, "x".repeat(4_000));
        let cost = estimate(&message.into());
        assert!((1_000..1_050).contains(&cost), "{cost}");
    }
}
