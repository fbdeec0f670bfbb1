//! Long texts cut to a model's budget: the beginning and the end stay, the middle goes.

use bindery_core::open::Open;
use serde::{Deserialize, Serialize};

use crate::item::{Content, Output};

/// Bytes that count as one token. No tokenizer: the numbers only have to be alike.
const BYTES_PER_TOKEN: usize = 4;

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

/// The same for a command's output of `total` bytes, with a heading that warns of the cut. Of one
/// that was too long to be kept, `omitted` bytes are missing from the middle already, with
/// [`gap`] in their place.
pub fn cut_output(text: &str, total: u64, omitted: u64, budget: Budget) -> String {
    if omitted > 0 {
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        return warned(tokens_in(total), &gap(omitted), &cut(text, budget));
    }
    if text.len() <= budget.bytes() {
        return text.to_owned();
    }
    let lines = format!("Total output lines: {}", text.lines().count());
    warned(tokens_in(text.len()), &lines, &cut(text, budget))
}

/// What stands where bytes were not kept.
pub fn gap(omitted: u64) -> String {
    format!("... {omitted} bytes omitted ...")
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_within_its_budget_is_untouched() {
        for text in ["", "a", "12345678", "grüße"] {
            assert_eq!(cut(text, Budget::Tokens(2)), text);
            assert_eq!(cut_output(text, 8, 0, Budget::Bytes(8)), text);
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
        let cut = cut_output(&text, 150_000, 0, Budget::Tokens(10_000));
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
    fn an_output_that_was_not_kept_whole_says_so_even_if_the_rest_fits() {
        let kept = "0123\n... 2 bytes omitted ...\n6789";
        assert_eq!(
            cut_output(kept, 10, 2, Budget::Bytes(100)),
            format!(
                "Warning: truncated output (original token count: 3)\n\
                 ... 2 bytes omitted ...\n\n{kept}"
            )
        );
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
    }
}
