//! Untrusted text made safe to show: nothing in it can move the cursor or reorder what is read.

use std::borrow::Cow;

/// Text whose control and direction characters are written out, as `\x1b` or `\u{202e}`.
///
/// Newlines and tabs stay. Idempotent, so that text may pass through it twice.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, unsafe_to_show)
}

/// As [`visible`], and characters that show nothing at all are written out too.
///
/// For what somebody is asked to approve: what is not seen must not be agreed to.
pub fn revealed(text: &str) -> Cow<'_, str> {
    written_out(text, |ch| unsafe_to_show(ch) || shows_nothing(ch))
}

/// One character as [`visible`] shows it.
pub(crate) fn push_visible(text: &mut String, ch: char) {
    if unsafe_to_show(ch) { push_escaped(text, ch) } else { text.push(ch) }
}

/// What a program printed, as lines: colours and cursor movements taken out, a line that was
/// redrawn after a carriage return as it was drawn last, the rest as [`visible`] shows it.
pub(crate) fn output_lines(text: &str) -> Vec<String> {
    let text = without_sequences(text);
    text.trim_end_matches(['\n', '\r', ' ']).split('\n').map(last_drawn).map(clean_line).collect()
}

fn clean_line(line: &str) -> String {
    visible(line).into_owned()
}

fn last_drawn(line: &str) -> &str {
    line.rsplit('\r').find(|drawn| !drawn.is_empty()).unwrap_or_default()
}

fn written_out(text: &str, hide: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&hide) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for ch in text.chars() {
        if hide(ch) { push_escaped(&mut shown, ch) } else { shown.push(ch) }
    }
    Cow::Owned(shown)
}

fn push_escaped(text: &mut String, ch: char) {
    match u32::from(ch) {
        code @ ..=0xff => text.push_str(&format!("\\x{code:02x}")),
        code => text.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// Controls (C0, DEL, C1), line and paragraph separators, and everything that sets the direction
/// of writing.
fn unsafe_to_show(ch: char) -> bool {
    (ch.is_control() && ch != '\n' && ch != '\t')
        || matches!(ch, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(ch, '\u{2066}'..='\u{2069}')
}

/// Characters of no width that are no accents, blanks that are no spaces, and tags.
///
/// Joiners and variation selectors are among them: emoji need those, commands do not.
fn shows_nothing(ch: char) -> bool {
    matches!(ch, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(ch, '\u{a0}' | '\u{2000}'..='\u{200f}' | '\u{202f}' | '\u{205f}'..='\u{206f}')
        || matches!(ch, '\u{180b}'..='\u{180f}' | '\u{3000}' | '\u{3164}' | '\u{ffa0}')
        || matches!(ch, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(ch, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Text without escape sequences; an unfinished one at the end is taken out as well.
fn without_sequences(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '\u{1b}' => skip_sequence(&mut chars),
            '\u{9b}' => skip_to(&mut chars, final_byte),
            _ => kept.push(ch),
        }
    }
    kept
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_sequence(chars: &mut Chars<'_>) {
    match chars.next() {
        Some('[') => skip_to(chars, final_byte),
        Some(']' | 'P' | '_' | '^' | 'X') => skip_string(chars),
        Some('(' | ')' | '#' | '%') => drop(chars.next()),
        _ => {}
    }
}

fn final_byte(ch: char) -> bool {
    ('@'..='~').contains(&ch)
}

/// A sequence never spans lines, so that one that is not ended cannot swallow the rest.
fn skip_to(chars: &mut Chars<'_>, end: impl Fn(char) -> bool) {
    while let Some(ch) = chars.next_if(|ch| *ch != '\n') {
        if end(ch) {
            return;
        }
    }
}

fn skip_string(chars: &mut Chars<'_>) {
    skip_to(chars, |ch| ch == '\u{7}' || ch == '\u{1b}');
    chars.next_if_eq(&'\\');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_written_out() {
        assert_eq!(visible("a\x1b[2Jb\r\u{9b}c\x07\td\n"), "a\\x1b[2Jb\\x0d\\x9bc\\x07\td\n");
        assert_eq!(visible("rm \u{202e}txt.exe\u{2066}"), "rm \\u{202e}txt.exe\\u{2066}");
        assert_eq!(visible("日本 é 👩‍🚀"), "日本 é 👩‍🚀");
    }

    #[test]
    fn what_shows_nothing_is_revealed_where_it_matters() {
        assert_eq!(revealed("git\u{200b} push\u{a0}x"), "git\\u{200b} push\\xa0x");
        assert_eq!(visible("git\u{200b}"), "git\u{200b}");
    }

    #[test]
    fn program_output_loses_its_colours_and_keeps_what_was_drawn_last() {
        let text = "\x1b[32mok\x1b[0m\x1b]0;title\x07!\n 10%\r 50%\r100%\r\ntail\x1b[3";
        assert_eq!(output_lines(text), ["ok!", "100%", "tail"]);
        assert_eq!(output_lines("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), ["link"]);
        assert_eq!(output_lines("\x1b[unfinished\nnext"), ["nfinished", "next"]);
        assert_eq!(output_lines("a\x08b"), ["a\\x08b"]);
    }
}
