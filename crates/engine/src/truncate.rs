//! Long texts cut to a model's budget: the beginning and the end stay, the middle goes.

use std::collections::VecDeque;

use bindery_core::open::Open;
use serde::{Deserialize, Serialize};

use crate::item::{Content, Output};

/// Bytes that count as one token. No tokenizer: the numbers only have to be alike.
const BYTES_PER_TOKEN: usize = 4;

/// What a process may have said before its middle is forgotten.
pub const PROCESS_BYTES: usize = 1 << 20;

/// How much of a text a model gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// So many tokens.
    Tokens(usize),
    /// So many bytes.
    Bytes(usize),
}

impl Budget {
    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.saturating_mul(BYTES_PER_TOKEN),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// In tokens.
    pub fn tokens(self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Bytes(bytes) => tokens_in(bytes),
        }
    }

    /// A fifth more. A history is cut anew when it is recorded; a text that was cut to the budget
    /// and got a heading must pass that untouched.
    pub fn roomy(self) -> Self {
        let more = |amount: usize| amount.saturating_add(amount.div_ceil(5));
        match self {
            Self::Tokens(tokens) => Self::Tokens(more(tokens)),
            Self::Bytes(bytes) => Self::Bytes(more(bytes)),
        }
    }
}

/// How many tokens a text of so many bytes counts for.
pub fn tokens_in(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The text, or its two ends with a note of what is missing between them.
pub fn cut(text: &str, budget: Budget) -> String {
    let most = budget.bytes();
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - (most - most / 2)).max(head);
    let note = match budget {
        Budget::Tokens(_) => format!("…{} tokens truncated…", tokens_in(text.len() - most)),
        Budget::Bytes(_) => format!("…{} chars truncated…", text[head..tail].chars().count()),
    };
    [&text[..head], &note, &text[tail..]].concat()
}

/// The same for a command's output, with a heading that warns of the cut.
pub fn cut_output(text: &str, budget: Budget) -> String {
    if text.len() <= budget.bytes() {
        return text.to_owned();
    }
    let lines = format!("Total output lines: {}", text.lines().count());
    warned(tokens_in(text.len()), &lines, &cut(text, budget))
}

fn warned(tokens: usize, what: &str, text: &str) -> String {
    format!("Warning: truncated output (original token count: {tokens})\n{what}\n\n{text}")
}

/// A tool's answer within a budget.
pub fn cut_answer(output: Output, budget: Budget) -> Output {
    match output {
        Output::Text(text) => Output::Text(cut(&text, budget)),
        Output::Content(content) => Output::Content(cut_content(content, budget)),
    }
}

/// Pieces of text take from the budget in their order; what comes after it is spent is counted and
/// left out. Pictures, and what we do not know, stay.
pub fn cut_content(content: Vec<Open<Content>>, budget: Budget) -> Vec<Open<Content>> {
    let mut left = budget.bytes();
    let mut omitted = 0;
    let mut kept = Vec::new();
    for piece in content {
        let text = match piece {
            Open::Known(Content::InputText { text } | Content::OutputText { text }) => text,
            other => {
                kept.push(other);
                continue;
            }
        };
        if left == 0 && !text.is_empty() {
            omitted += 1;
            continue;
        }
        let rest = match budget {
            Budget::Tokens(_) => Budget::Tokens(left / BYTES_PER_TOKEN),
            Budget::Bytes(_) => Budget::Bytes(left),
        };
        left = left.saturating_sub(text.len());
        kept.push(Content::InputText { text: cut(&text, rest) }.into());
    }
    if omitted > 0 {
        kept.push(
            Content::InputText { text: format!("[omitted {omitted} text items ...]") }.into(),
        );
    }
    kept
}

/// The beginning and the end of a stream of bytes, half of the room each.
#[derive(Clone, Debug)]
pub struct HeadTail {
    room: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    breaks: u64,
    ends_line: bool,
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::new(PROCESS_BYTES)
    }
}

impl HeadTail {
    /// Keeps at most so many bytes.
    pub fn new(room: usize) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { room, head, tail, total: 0, breaks: 0, ends_line: true }
    }

    /// Takes the next bytes; they may end anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.total += bytes.len() as u64;
        self.breaks += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.ends_line = *last == b'\n';
        let free = (self.room / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(free);
        self.head.extend_from_slice(first);
        let most = self.room - self.room / 2;
        let rest = &rest[rest.len().saturating_sub(most)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(most);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How many bytes came.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// How many lines came, the last one counted even if it does not end.
    pub fn total_lines(&self) -> u64 {
        self.breaks + u64::from(!self.ends_line)
    }

    /// How many tokens came.
    pub fn total_tokens(&self) -> usize {
        tokens_in(usize::try_from(self.total).unwrap_or(usize::MAX))
    }

    /// How many bytes between the two ends were forgotten.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// What is kept, as text; a note stands where something was forgotten.
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.omitted() == 0 {
            return lossy(&[&self.head, front, back].concat());
        }
        let tail = [front, back].concat();
        // A character cut in two at the gap is part of what is forgotten.
        let whole = tail.iter().take(3).take_while(|byte| (**byte & 0xc0) == 0x80).count();
        let head = &self.head[..sound_end(&self.head)];
        format!("{}\n{}\n{}", lossy(head), self.gap(), lossy(&tail[whole..]))
    }

    /// The text within a budget, with a heading if anything is missing from it.
    pub fn cut(&self, budget: Budget) -> String {
        let text = self.text();
        if self.omitted() == 0 {
            return cut_output(&text, budget);
        }
        warned(self.total_tokens(), &self.gap(), &cut(&text, budget))
    }

    fn gap(&self) -> String {
        format!("... {} bytes omitted ...", self.omitted())
    }

    /// Hands over what came so far and begins anew.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.room))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the last whole character ends, if the bytes were cut within one.
fn sound_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(err) if err.error_len().is_none() => err.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_within_its_budget_is_untouched() {
        for text in ["", "a", "12345678", "grüße"] {
            assert_eq!(cut(text, Budget::Tokens(2)), text);
            assert_eq!(cut_output(text, Budget::Bytes(8)), text);
        }
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        assert_eq!(cut("0123456789", Budget::Tokens(1)), "01…2 tokens truncated…89");
        assert_eq!(cut("0123456789", Budget::Bytes(5)), "01…5 chars truncated…789");
        assert_eq!(cut("0123456789", Budget::Bytes(0)), "…10 chars truncated…");
        assert_eq!(cut("äöüäöü", Budget::Bytes(5)), "ä…4 chars truncated…ü");
        assert_eq!(cut("🎉🎉", Budget::Bytes(3)), "…2 chars truncated…");
    }

    #[test]
    fn a_cut_output_says_so_first() {
        let text = "line\n".repeat(30_000);
        let cut = cut_output(&text, Budget::Tokens(10_000));
        let (heading, rest) = cut.split_once("\n\n").unwrap();
        assert_eq!(
            heading,
            "Warning: truncated output (original token count: 37500)\nTotal output lines: 30000"
        );
        assert!(rest.contains("…27500 tokens truncated…"), "{}", rest.len());
        assert!(cut.len() < Budget::Tokens(10_000).roomy().bytes());
    }

    fn text(text: &str) -> Open<Content> {
        Content::InputText { text: text.to_owned() }.into()
    }

    #[test]
    fn pieces_share_a_budget_and_pictures_stay() {
        let image = || -> Open<Content> {
            Content::InputImage { image_url: "data:,x".to_owned(), detail: None }.into()
        };
        let pieces = vec![text("1234"), image(), text("567890ab"), text("cd"), image(), text("ef")];
        let kept = cut_content(pieces, Budget::Bytes(8));
        let want = vec![
            text("1234"),
            image(),
            text("56…4 chars truncated…ab"),
            image(),
            text("[omitted 2 text items ...]"),
        ];
        assert_eq!(kept, want);
        let unknown = Open::Unknown { raw: serde_json::json!({ "a": 1 }), why: "new".to_owned() };
        assert_eq!(cut_content(vec![unknown.clone()], Budget::Bytes(0)), [unknown]);
    }

    #[test]
    fn a_small_stream_is_kept_whole_however_it_is_cut() {
        let text = "äöü\n🎉 end";
        for size in 1..text.len() {
            let mut buffer = HeadTail::new(text.len());
            text.as_bytes().chunks(size).for_each(|chunk| buffer.push(chunk));
            assert_eq!(buffer.text(), text);
            assert_eq!((buffer.total_lines(), buffer.omitted()), (2, 0));
        }
    }

    #[test]
    fn a_long_stream_keeps_both_ends() {
        let mut buffer = HeadTail::new(8);
        for chunk in ["012345", "6789\n", "", "abcdefghij\nklmn"] {
            buffer.push(chunk.as_bytes());
        }
        assert_eq!(buffer.text(), "0123\n... 18 bytes omitted ...\nklmn");
        assert_eq!((buffer.total_bytes(), buffer.total_lines()), (26, 3));
        assert_eq!(buffer.take().total_tokens(), 7);
        assert_eq!((buffer.text(), buffer.total_lines()), (String::new(), 0));
    }

    #[test]
    fn a_stream_is_cut_with_its_true_numbers() {
        let mut buffer = HeadTail::new(8);
        buffer.push(b"01234567");
        assert_eq!(buffer.cut(Budget::Bytes(8)), "01234567");
        let heading = "Warning: truncated output (original token count: 2)\nTotal output lines: 1";
        let cut = format!("{heading}\n\n01…4 chars truncated…67");
        assert_eq!(buffer.cut(Budget::Bytes(4)), cut);
        buffer.push(b"89");
        let text = "Warning: truncated output (original token count: 3)\n\
                    ... 2 bytes omitted ...\n\n0123\n... 2 bytes omitted ...\n6789";
        assert_eq!(buffer.cut(Budget::Bytes(100)), text);
    }

    #[test]
    fn characters_are_not_broken_at_the_gap() {
        let mut buffer = HeadTail::new(6);
        buffer.push("ää🎉öööö".as_bytes());
        assert_eq!(buffer.text(), "ä\n... 10 bytes omitted ...\nö");
    }

    proptest! {
        #[test]
        fn no_cut_breaks_a_character_or_keeps_too_much(
            text in "\\PC{0,200}", amount in 0_usize..300, tokens: bool,
        ) {
            let budget = if tokens { Budget::Tokens(amount) } else { Budget::Bytes(amount) };
            let cut = cut(&text, budget);
            prop_assert!(cut == text || cut.len() <= budget.bytes() + 40);
            prop_assert_eq!(cut == text, text.len() <= budget.bytes() || cut == text);
        }

        #[test]
        fn a_buffer_never_keeps_more_than_its_room(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            room in 0_usize..64,
        ) {
            let mut buffer = HeadTail::new(room);
            chunks.iter().for_each(|chunk| buffer.push(chunk));
            let all = chunks.concat();
            prop_assert!(buffer.head.len() + buffer.tail.len() <= room);
            prop_assert_eq!(buffer.omitted(), all.len().saturating_sub(room) as u64);
            prop_assert!(all.starts_with(&buffer.head));
            prop_assert!(all.ends_with(&buffer.tail.iter().copied().collect::<Vec<_>>()));
            let _ = buffer.text();
        }
    }
}
