//! Parts of messages that we do not know: shown as they are, each as a card.

use serde_json::{Value, json};

use super::Normaliser;
use crate::wire::{Block, Message};

impl Normaliser<'_> {
    /// A role that we do not know: shown as what it is, not taken for anybody's words.
    pub(super) fn other_role(&mut self, role: &str, message: Message) {
        let content: Vec<_> = message.content.into_iter().map(Block::into_value).collect();
        let raw = json!({ "role": role, "content": content });
        self.card("response_item/message", &format!("unknown role `{role}`"), raw);
    }

    /// Takes the blocks that we do not know out of a message, each as a card. True if there is
    /// nothing else in it.
    pub(super) fn odd_content(&mut self, tag: &str, content: &mut Vec<Block>) -> bool {
        if content.iter().all(Block::is_known) {
            return false;
        }
        let (known, odd): (Vec<_>, Vec<_>) = content.drain(..).partition(Block::is_known);
        *content = known;
        let odd = odd.into_iter().map(Block::into_value).collect();
        self.odd_blocks(tag, odd, content.is_empty())
    }

    /// Blocks that we do not know as cards; the line is theirs if there is nothing else in it.
    pub(super) fn odd_blocks(&mut self, tag: &str, odd: Vec<Value>, alone: bool) -> bool {
        let owns_line = alone && !odd.is_empty();
        for (index, block) in odd.into_iter().enumerate() {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
            let tag = format!("{tag}/content/{kind}");
            if owns_line && index == 0 {
                self.card(&tag, "unknown content", block);
            } else {
                self.card_beside(&tag, "unknown content", block);
            }
        }
        owns_line
    }
}
