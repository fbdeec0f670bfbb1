//! The history after a compaction.

use crate::item::{HistoryItem, Message, Role};
use crate::prompt::base::SUMMARY_PREFIX;
use crate::prompt::told::{SUMMARY_HEAD, is_context};
use crate::thread::history::user_text;
use crate::tokens::of_bytes;
use crate::tools::Step;

/// Tokens of the user's own words that are kept at most.
const USER_TOKENS: u64 = 20_000;

const SUMMARY_TAIL: &str = "</summary_of_earlier_work>";

/// What stands between head and tail of words that were too long.
const CUT: &str = "\n[… the middle of this message was left out …]\n";

const PLAN: &str = "\nThe plan as it stands:\n";

const FILES: &str = "\nFiles you changed:\n";

/// What is kept beside words.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// The plan.
    pub(super) plan: Vec<Step>,
    /// Files the thread changed.
    pub(super) files: Vec<String>,
}

/// The user's newest words, the context before the last of them, the summary. In a small window the
/// words get half of the `limit` at which a history is summed up: else it would be full again.
pub(super) fn history(
    old: &[HistoryItem],
    context: Vec<HistoryItem>,
    summary: &str,
    kept: &Kept,
    limit: u64,
) -> Vec<HistoryItem> {
    let mut items: Vec<HistoryItem> = recent_words(old, USER_TOKENS.min(limit / 2))
        .into_iter()
        .map(|words| Message::text(Role::User, words).into())
        .collect();
    let before_last = items.len().saturating_sub(1);
    items.splice(before_last..before_last, context);
    items.push(Message::text(Role::User, summary_text(summary, kept)).into());
    items
}

/// Newest first until the budget is spent; the one that crosses it loses its middle.
fn recent_words(old: &[HistoryItem], budget: u64) -> Vec<String> {
    let mut left = budget;
    let mut words = Vec::new();
    for text in old.iter().rev().filter_map(user_text).filter(|text| !is_context(text)) {
        let cost = of_bytes(text.len());
        if cost > left {
            words.extend(shortened(&text, left));
            break;
        }
        left -= cost;
        words.push(text);
    }
    words.reverse();
    words
}

fn shortened(text: &str, tokens: u64) -> Option<String> {
    let room = usize::try_from(tokens).ok()?.saturating_mul(4).checked_sub(CUT.len())?;
    let head = floor(text, room / 2);
    let tail = ceil(text, text.len() - room.div_ceil(2));
    (room > 0).then(|| format!("{}{CUT}{}", &text[..head], &text[tail..]))
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn summary_text(summary: &str, kept: &Kept) -> String {
    let summary = summary.trim();
    let summary = if summary.is_empty() { "(no summary available)" } else { summary };
    let mut text = format!("{SUMMARY_HEAD}\n{}\n\n{summary}\n", SUMMARY_PREFIX.trim());
    if !kept.plan.is_empty() {
        text.push_str(PLAN);
        kept.plan.iter().for_each(|step| {
            text.push_str(&format!("- [{}] {}\n", step.status, step.step));
        });
    }
    if !kept.files.is_empty() {
        text.push_str(FILES);
        kept.files.iter().for_each(|file| text.push_str(&format!("- {file}\n")));
    }
    text.push_str(SUMMARY_TAIL);
    text
}

/// What a summary of ours kept; none for other words. The model's own words come before it.
pub(super) fn kept_in(text: &str) -> Option<Kept> {
    let text = text.strip_prefix(SUMMARY_HEAD)?.strip_suffix(SUMMARY_TAIL)?;
    let (text, files) = text.rsplit_once(FILES).unwrap_or((text, ""));
    let plan = text.rsplit_once(PLAN).map_or("", |(_, plan)| plan);
    let step = |line: &str| {
        let (status, step) = line.strip_prefix("- [")?.split_once("] ")?;
        Some(Step { step: step.to_owned(), status: status.to_owned() })
    };
    let file = |line: &str| line.strip_prefix("- ").map(str::to_owned);
    let plan = plan.lines().map_while(step).collect();
    Some(Kept { plan, files: files.lines().map_while(file).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> HistoryItem {
        Message::text(Role::User, text).into()
    }

    fn texts(items: &[HistoryItem]) -> Vec<String> {
        items.iter().filter_map(user_text).collect()
    }

    const NOTHING: Kept = Kept { plan: Vec::new(), files: Vec::new() };

    #[test]
    fn words_are_kept_and_context_is_not() {
        let old = [
            said("<environment_context>\n</environment_context>"),
            said("first"),
            Message::text(Role::Assistant, "answer").into(),
            said(&format!("{SUMMARY_HEAD}\nolder\n")),
            said("second"),
        ];
        let context = vec![said("<environment_context>new")];
        let new = texts(&history(&old, context, "S", &NOTHING, u64::MAX));
        assert_eq!(new[..3], ["first", "<environment_context>new", "second"]);
        assert!(new[3].starts_with(SUMMARY_HEAD) && new[3].contains("\n\nS\n"));
        assert_eq!(new.len(), 4);
    }

    #[test]
    fn the_newest_words_win_and_the_crossing_one_loses_its_middle() {
        let old = [
            said("too old"),
            said(&format!("A{}Z", "é".repeat(40_000))),
            said(&"x".repeat(40_000)),
        ];
        let new = texts(&history(&old, Vec::new(), "", &NOTHING, u64::MAX));
        assert_eq!(new.len(), 3);
        assert!(new[0].starts_with("Aé") && new[0].ends_with("éZ") && new[0].contains(CUT));
        assert!(of_bytes(new[0].len() + new[1].len()) <= USER_TOKENS);
        assert!(new[2].contains("(no summary available)"));
    }

    #[test]
    fn plan_and_files_go_along() {
        let step = Step { step: "Test it".to_owned(), status: "in_progress".to_owned() };
        let kept = Kept { plan: vec![step], files: vec!["src/lib.rs".to_owned()] };
        let text = summary_text("S", &kept);
        assert!(text.contains("- [in_progress] Test it\n") && text.contains("- src/lib.rs\n"));
    }
}
