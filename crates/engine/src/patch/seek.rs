//! Finds lines in a file, ever less strictly: models copy text with small mistakes.

/// Whether two lines are alike. Each of ours compares what the lines become on their own, so that
/// what is alike to one line is alike to all that are.
type Alike = fn(&str, &str) -> bool;

/// How lines are compared, the strictest first.
const PASSES: [Alike; 4] = [
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
    if wanted.is_empty() || from > last {
        return (from <= last).then_some(from);
    }
    PASSES.iter().find_map(|alike| find(lines, wanted, from, *alike))
}

/// Knuth, Morris and Pratt: a file of many like lines must not take time without end.
fn find(lines: &[&str], wanted: &[&str], from: usize, alike: Alike) -> Option<usize> {
    let borders = borders(wanted, alike);
    let mut found = 0;
    for (at, line) in lines.iter().enumerate().skip(from) {
        found = longer(line, wanted, &borders, found, alike);
        if found == wanted.len() {
            return Some(at + 1 - found);
        }
    }
    None
}

/// For each beginning of the wanted lines, how many of its last lines begin them again.
fn borders(wanted: &[&str], alike: Alike) -> Vec<usize> {
    let mut borders = vec![0; wanted.len()];
    for at in 1..wanted.len() {
        borders[at] = longer(wanted[at], wanted, &borders, borders[at - 1], alike);
    }
    borders
}

/// How many of the wanted lines end with this one, when so many ended with the line before it.
fn longer(line: &str, wanted: &[&str], borders: &[usize], found: usize, alike: Alike) -> usize {
    let mut found = found;
    while found > 0 && !alike(line, wanted[found]) {
        found = borders[found - 1];
    }
    found + usize::from(alike(line, wanted[found]))
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_strict_fit_below_wins_over_a_loose_one_above() {
        let lines = ["  a", "a ", "a"];
        assert_eq!(seek(&lines, &["a"], 0, false), Some(2));
        assert_eq!(seek(&lines[..2], &["a"], 0, false), Some(1));
        assert_eq!(seek(&lines[..1], &["a"], 0, false), Some(0));
        assert_eq!(seek(&["“a”\u{2003}— ‘b’"], &["\"a\" - 'b'"], 0, false), Some(0));
    }

    proptest! {
        #[test]
        fn the_quick_way_finds_what_the_plain_one_does(
            lines in prop::collection::vec("[ab]", 0..20),
            wanted in prop::collection::vec("[ab]", 1..5),
            from in 0_usize..22,
        ) {
            let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
            let wanted: Vec<&str> = wanted.iter().map(|line| &**line).collect();
            let plain = (from..lines.len()).find(|at| lines[*at..].starts_with(&wanted));
            prop_assert_eq!(seek(&lines, &wanted, from, false), plain);
        }
    }

    #[test]
    fn many_like_lines_do_not_take_forever() {
        let lines = vec!["a"; 400_000];
        let mut wanted = vec!["a"; 100_000];
        wanted.push("b");
        assert_eq!(seek(&lines, &wanted, 0, false), None);
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
