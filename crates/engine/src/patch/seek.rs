//! Finds lines in a file, ever less strictly: models copy text with small mistakes.

/// How two lines are compared, the strictest first.
const PASSES: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| a.trim().chars().map(fold).eq(b.trim().chars().map(fold)),
];

/// The first place at or after `from` where `wanted` stands; a later place that fits more strictly
/// wins over an earlier one. With `at_end` only the end of the file counts.
pub fn seek(lines: &[&str], wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    let from = if at_end { from.max(last) } else { from };
    PASSES.iter().find_map(|same| {
        (from..=last).find(|&at| lines[at..].iter().zip(wanted).all(|(a, b)| same(a, b)))
    })
}

/// Typographic characters as they are typed.
fn fold(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_fit_below_wins_over_a_loose_one_above() {
        let lines = ["  a", "a ", "a"];
        assert_eq!(seek(&lines, &["a"], 0, false), Some(2));
        assert_eq!(seek(&lines[..2], &["a"], 0, false), Some(1));
        assert_eq!(seek(&lines[..1], &["a"], 0, false), Some(0));
        assert_eq!(seek(&["“a”\u{2003}— ‘b’"], &["\"a\" - 'b'"], 0, false), Some(0));
    }

    #[test]
    fn the_search_begins_at_the_cursor_and_ends_with_the_file() {
        let lines = ["a", "b", "a", "b"];
        assert_eq!(seek(&lines, &["a", "b"], 1, false), Some(2));
        assert_eq!(seek(&lines, &["a", "b"], 3, false), None);
        assert_eq!(seek(&lines, &["a"], 0, true), None);
        assert_eq!(seek(&lines, &["b"], 0, true), Some(3));
        assert_eq!(seek(&lines, &["a"; 5], 0, false), None);
        assert_eq!(seek(&lines, &[], 4, false), Some(4));
        assert_eq!(seek(&lines, &["b"], usize::MAX, true), None);
    }
}
