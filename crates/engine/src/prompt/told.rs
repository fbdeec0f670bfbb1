//! Which messages in the user's place are context, and which are words of a person.

use super::SectionKind;

/// How a summary of earlier work begins.
pub(crate) const SUMMARY_HEAD: &str = "<summary_of_earlier_work>";

/// Beginnings of context beside the sections, ours and those of other Codex versions.
const HEADS: [&str; 10] = [
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_instructions>",
    "<environments>",
    "<skill",
    "<user_action>",
    "<external_",
    "<permissions instructions>",
    SUMMARY_HEAD,
    // Codex wraps its summaries in nothing; they are known by their first words.
    "Another language model started to solve this problem and produced a summary",
];

/// Whether this text is context that we told in the user's place.
pub fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty()
        || SectionKind::of(text).is_some()
        || HEADS.iter().any(|head| text.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_ours_are_context_and_words_are_not() {
        for block in ["<environment_context>\n", "<git_context>\n", "# AGENTS.md instructions\n"] {
            assert!(is_context(block), "{block}");
        }
        assert!(!is_context("what is in <this> folder?"));
    }
}
