//! What a turn is started with.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of a user's turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum UserInput {
    /// Text. Several texts become one user message: turn borders are not kept.
    Text {
        /// The text.
        text: String,
        /// Places in it that stand for something else; the model does not see them.
        #[serde(default)]
        text_elements: Vec<TextElement>,
    },
    /// An image as a data URL; http(s) addresses make Codex refuse the whole turn.
    Image {
        /// The data URL.
        url: String,
        /// `auto`, `low`, `high`, `original`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// An image on the machine that runs Codex.
    LocalImage {
        /// Its path.
        path: String,
        /// `auto`, `low`, `high`, `original`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// A skill, whose file Codex reads to the model.
    Skill {
        /// Its name.
        name: String,
        /// Its file.
        path: String,
    },
    /// A file or app that is spoken of.
    Mention {
        /// Its name.
        name: String,
        /// Its path.
        path: String,
    },
}

impl UserInput {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_elements: Vec::new() }
    }
}

/// A place in a text that stands for something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextElement {
    /// Where, in UTF-8 bytes.
    pub byte_range: ByteRange,
    /// What to show there.
    pub placeholder: Option<String>,
}

/// A range of UTF-8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

/// A Responses item for `thread/inject_items`; we build them, Codex checks them.
pub type ResponseItem = Value;
