//! Thoughts and calls that a model writes into its text, because its server does not parse them.
//!
//! A `<think>` at the beginning of an answer opens thoughts; a `<tool_call>` anywhere opens a call.
//! A tag may be cut anywhere, so that the end of a text is kept back while it may be one.

use super::tools_as_text::{CLOSE, OPEN};

const THINK: &str = "<think>";
const END_THINK: &str = "</think>";

/// A piece of a text, told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextPiece {
    /// Said.
    Text(String),
    /// Thought.
    Thought(String),
    /// What stood between the tags of a call.
    Call(String),
}

/// Tells a text apart while it comes.
#[derive(Debug, Default)]
pub(super) struct TagSplitter {
    state: TagState,
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagState {
    /// Nothing but blanks so far.
    #[default]
    Start,
    Text,
    Thoughts,
    Call,
}

impl TagSplitter {
    /// Takes a piece of the text.
    pub(super) fn push(&mut self, text: &str) -> Vec<TextPiece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        while self.step(&mut pieces) {}
        pieces
    }

    /// The end: what was kept back is no tag. A call that was not closed is taken as one.
    pub(super) fn flush(&mut self) -> Vec<TextPiece> {
        let rest = std::mem::take(&mut self.held);
        let state = std::mem::take(&mut self.state);
        if rest.is_empty() {
            return Vec::new();
        }
        vec![match state {
            TagState::Start | TagState::Text => TextPiece::Text(rest),
            TagState::Thoughts => TextPiece::Thought(rest),
            TagState::Call => TextPiece::Call(rest),
        }]
    }

    /// Does one thing; false when more text is needed.
    fn step(&mut self, pieces: &mut Vec<TextPiece>) -> bool {
        match self.state {
            TagState::Start => self.begin(),
            TagState::Text => self.upto(OPEN, TagState::Call, TextPiece::Text, pieces),
            TagState::Thoughts => self.upto(END_THINK, TagState::Text, TextPiece::Thought, pieces),
            TagState::Call => self.close_call(pieces),
        }
    }

    fn begin(&mut self) -> bool {
        let text = self.held.trim_start();
        if let Some(rest) = text.strip_prefix(THINK) {
            self.held = rest.to_owned();
            self.state = TagState::Thoughts;
            return true;
        }
        if THINK.starts_with(text) {
            return false;
        }
        self.state = TagState::Text;
        true
    }

    /// Tells what stands before a tag; keeps back what may be the beginning of it.
    fn upto(
        &mut self,
        tag: &str,
        next: TagState,
        piece: fn(String) -> TextPiece,
        pieces: &mut Vec<TextPiece>,
    ) -> bool {
        let (end, is_found) = match self.held.find(tag) {
            Some(at) => (at, true),
            None => (self.held.len() - partial(&self.held, tag), false),
        };
        let rest = self.held.split_off(end);
        let told = std::mem::replace(&mut self.held, rest);
        if !told.is_empty() {
            pieces.push(piece(told));
        }
        if is_found {
            self.held.drain(..tag.len());
            self.state = next;
        }
        is_found
    }

    fn close_call(&mut self, pieces: &mut Vec<TextPiece>) -> bool {
        let Some(at) = self.held.find(CLOSE) else { return false };
        let rest = self.held.split_off(at + CLOSE.len());
        let mut call = std::mem::replace(&mut self.held, rest);
        call.truncate(at);
        pieces.push(TextPiece::Call(call));
        self.state = TagState::Text;
        true
    }
}

/// How many bytes at the end of a text may be the beginning of a tag.
fn partial(text: &str, tag: &str) -> usize {
    let longest = tag.len().min(text.len());
    (1..=longest).rev().find(|&count| text.ends_with(&tag[..count])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{TagSplitter, TextPiece};

    fn split(chunks: &[&str]) -> Vec<TextPiece> {
        let mut splitter = TagSplitter::default();
        let mut pieces: Vec<_> = chunks.iter().flat_map(|chunk| splitter.push(chunk)).collect();
        pieces.extend(splitter.flush());
        join(pieces)
    }

    fn join(pieces: Vec<TextPiece>) -> Vec<TextPiece> {
        let mut joined: Vec<TextPiece> = Vec::new();
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (Some(TextPiece::Text(before)), TextPiece::Text(more))
                | (Some(TextPiece::Thought(before)), TextPiece::Thought(more)) => {
                    before.push_str(&more);
                }
                (_, piece) => joined.push(piece),
            }
        }
        joined
    }

    #[test]
    fn tags_are_found_wherever_the_text_is_cut() {
        let text = "\n<think>Hm < 3</think>I look.<tool_call>{\"name\":\"ä\"}</tool_call> Done <t";
        let want = [
            TextPiece::Thought("Hm < 3".to_owned()),
            TextPiece::Text("I look.".to_owned()),
            TextPiece::Call("{\"name\":\"ä\"}".to_owned()),
            TextPiece::Text(" Done <t".to_owned()),
        ];
        assert_eq!(split(&[text]), want);
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            let (a, b) = text.split_at(cut);
            assert_eq!(split(&[a, b]), want, "cut at {cut}");
        }
    }

    #[test]
    fn text_about_thinking_is_text() {
        let text = "Use <think> to think, and 1 < 2.";
        assert_eq!(split(&[text]), [TextPiece::Text(text.to_owned())]);
        assert_eq!(split(&["<thin"]), [TextPiece::Text("<thin".to_owned())]);
    }

    #[test]
    fn a_call_that_is_not_closed_is_a_call() {
        let want = [TextPiece::Call("{}".to_owned())];
        assert_eq!(split(&["<tool_call>{}"]), want);
    }
}
