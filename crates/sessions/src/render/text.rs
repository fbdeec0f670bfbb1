//! Text of models and tools, made safe and short for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Takes out escape sequences and control characters: what is shown must not steer the terminal.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\n' | '\t' => clean.push(letter),
            '\r' if letters.peek() == Some(&'\n') => {}
            // Directions and invisible marks can make text look like other text.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => clean.push('\u{fffd}'),
            letter if letter.is_control() => clean.push('\u{fffd}'),
            letter => clean.push(letter),
        }
    }
    clean
}

fn skip_sequence(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        Some('[') => {
            // A control sequence ends with a letter or one of a few signs.
            for letter in letters.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&letter) {
                    break;
                }
            }
        }
        Some(']') => {
            while let Some(letter) = letters.next() {
                if letter == '\u{7}' || (letter == '\u{1b}' && letters.next_if_eq(&'\\').is_some())
                {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// The first and last lines of a text; between them how many are left out.
pub fn fold_lines(text: &str, first: usize, last: usize) -> (Vec<&str>, usize, Vec<&str>) {
    let lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    if lines.len() <= first + last + 1 {
        return (lines, 0, Vec::new());
    }
    let tail = lines[lines.len() - last..].to_vec();
    let left_out = lines.len() - first - last;
    (lines[..first].to_vec(), left_out, tail)
}

/// One line, cut in the middle to fit.
pub(super) fn fit(text: &str, width: usize) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    let more = line.len() < text.trim_end().len();
    let columns = line.width();
    if columns <= width && !more {
        return line.to_owned();
    }
    if columns <= width.saturating_sub(2) {
        return format!("{line} …");
    }
    let head = width * 2 / 3;
    let tail = width.saturating_sub(head + 1);
    let start = fitting(line.chars(), head);
    let end: String = fitting(line.chars().rev(), tail).chars().rev().collect();
    format!("{start}…{end}")
}

/// As many letters as fit.
fn fitting(letters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= columns
    };
    letters.take_while(fits).collect()
}

/// The text and blanks up to `width` columns.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        #[rustfmt::skip]
        let table = [
            ("a\u{1b}[31mred\u{1b}[0m",          "ared"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y", "xy"),
            ("a\r\nb\tc\u{8}",                   "a\nb\tc\u{fffd}"),
            ("\u{202e}abc",                      "\u{fffd}abc"),
            ("\u{1b}",                           ""),
        ];
        for (text, want) in table {
            assert_eq!(clean(text), want, "{text:?}");
        }
    }

    #[test]
    fn long_outputs_are_folded() {
        let text: String = (1..=40).map(|n| format!("{n}\n")).collect();
        let (head, out, tail) = fold_lines(&text, 5, 10);
        assert_eq!((head.len(), out, tail.first().copied()), (5, 25, Some("31")));
        assert_eq!(fold_lines("a\nb", 5, 10).0, ["a", "b"]);
        assert_eq!(fit("src/very/long/path/to/some/file.rs", 20), "src/very/long…ile.rs");
        for width in 4..30 {
            assert!(fit("日本語日本語日本語日本語日本語", width).width() <= width);
        }
    }
}
