//! History for a Codex without `thread/inject_items`: a labelled transcript in the first message.

use serde_json::Value;

use super::notes::Notes;
use crate::wire::app_server::input::{ResponseItem, UserInput};

/// Items as text, with their images after it.
///
/// Every line of content is quoted, so that no content can pass for a label.
pub(super) fn as_input(items: &[ResponseItem], notes: &mut Notes<'_>) -> Vec<UserInput> {
    notes.compatibility(
        "history",
        "this Codex has no `thread/inject_items`; earlier messages are sent as a transcript",
    );
    let mut teller = Teller { text: INTRODUCTION.to_owned(), images: Vec::new() };
    items.iter().for_each(|item| teller.item(item));
    teller.text.push_str("\n[end of transcript]");
    let mut input = vec![UserInput::text(teller.text)];
    input.append(&mut teller.images);
    input
}

const INTRODUCTION: &str = "[transcript of the conversation so far; \
    lines that begin with `> ` are quoted content, all other lines are labels]\n";

struct Teller {
    text: String,
    images: Vec<UserInput>,
}

impl Teller {
    fn item(&mut self, item: &Value) {
        let field = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("function_call") => {
                self.label(&format!("tool call {}: {}", field("call_id"), field("name")));
                self.quote(&field("arguments"));
            }
            Some("function_call_output") => {
                self.label(&format!("tool result {}", field("call_id")));
                self.content(&item["output"]);
            }
            _ => {
                self.label(&field("role"));
                self.content(&item["content"]);
            }
        }
    }

    fn content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.quote(text),
            Value::Array(pieces) => pieces.iter().for_each(|piece| self.piece(piece)),
            _ => {}
        }
    }

    fn piece(&mut self, piece: &Value) {
        if let Some(url) = piece["image_url"].as_str() {
            let detail = piece["detail"].as_str().map(str::to_owned);
            self.images.push(UserInput::Image { url: url.to_owned(), detail });
            let number = self.images.len();
            self.text.push_str(&format!("(image {number} of those after the transcript)\n"));
        } else {
            self.quote(piece["text"].as_str().unwrap_or_default());
        }
    }

    /// Labels hold ids of others, which must not break the line.
    fn label(&mut self, label: &str) {
        let label = label.replace(is_line_break, " ");
        self.text.push_str(&format!("\n[{label}]\n"));
    }

    fn quote(&mut self, text: &str) {
        for line in text.replace("\r\n", "\n").split(is_line_break) {
            self.text.push_str(&format!("> {line}\n"));
        }
    }
}

/// All that a reader may take for the start of a line.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
