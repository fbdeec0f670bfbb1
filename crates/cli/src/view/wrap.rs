//! Painted characters broken into rows at words.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::row::{Paint, Row, fitting};

/// Painted characters; `\n` breaks the row.
pub(crate) type Ink = Vec<(char, Paint)>;

/// One row of a wrapped text.
#[derive(Debug)]
pub(crate) struct Wrapped {
    /// The row, its prefix included.
    pub(crate) row: Row,
    /// Where its first word ends in the text; nowhere for a row without words.
    pub(crate) first_end: usize,
}

/// Rows of at most `cols` columns, greedily filled.
///
/// Greedy, because then a row never changes once the word after it is there, and a text that
/// still grows can be shown for good row by row.
pub(crate) fn wrap(ink: &[(char, Paint)], first: &Row, rest: &Row, cols: usize) -> Vec<Wrapped> {
    let room = cols.saturating_sub(first.width().max(rest.width())).max(8);
    let lines = lines(ink, room);
    let rows = lines.iter().enumerate().map(|(index, words)| {
        let prefix = if index == 0 { first } else { rest };
        Wrapped {
            row: prefix.clone().join(&row(ink, words)),
            first_end: words.first().map_or(usize::MAX, |word| word.end),
        }
    });
    rows.collect()
}

/// Plain text in one paint, wrapped.
pub(crate) fn wrap_text(
    text: &str,
    paint: Paint,
    first: &Row,
    rest: &Row,
    cols: usize,
) -> Vec<Row> {
    let ink: Ink = text.chars().map(|ch| (ch, paint)).collect();
    wrap(&ink, first, rest, cols).into_iter().map(|wrapped| wrapped.row).collect()
}

/// A line as it is, with its blanks, in pieces of at most `cols` columns; broken at blanks where
/// there are any, and what follows goes as far in as the line itself.
pub(crate) fn wrap_verbatim(line: &str, cols: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let indent = " ".repeat(indent.min(cols / 2));
    let (mut rows, mut rest) = (Vec::new(), line.to_owned());
    while rest.width() > cols {
        let end = fitting(&rest, cols).len().max(rest.chars().next().map_or(0, char::len_utf8));
        // A blank right after the row is a good place, too.
        let blanks = rest[..end].rfind(' ').filter(|at| !rest[..*at].trim().is_empty());
        let is_next_blank = rest[end..].starts_with(' ');
        let end = if is_next_blank { end } else { blanks.map_or(end, |at| at + 1) };
        rows.push(rest[..end].trim_end().to_owned());
        rest = format!("{indent}{}", rest[end..].trim_start_matches(' '));
    }
    if rows.is_empty() || !rest.trim().is_empty() {
        rows.push(rest.trim_end().to_owned());
    }
    rows
}

#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    width: usize,
    /// A space stands before it.
    apart: bool,
}

/// `None` is a forced break.
fn words(ink: &[(char, Paint)]) -> Vec<Option<Word>> {
    let mut words = Vec::new();
    let mut apart = false;
    let mut open: Option<Word> = None;
    for (index, (ch, _)) in ink.iter().enumerate() {
        let width = ch.width().unwrap_or(0);
        match ch {
            ' ' | '\n' => {
                words.extend(open.take().map(Some));
                apart = true;
                if *ch == '\n' {
                    words.push(None);
                }
            }
            // East Asian text has no spaces: it may break before each of its signs.
            _ if open.is_none() || width > 1 => {
                words.extend(open.take().map(Some));
                open = Some(Word { start: index, end: index + 1, width, apart });
                apart = false;
            }
            _ => {
                if let Some(word) = &mut open {
                    word.end = index + 1;
                    word.width += width;
                }
            }
        }
    }
    words.extend(open.map(Some));
    words
}

fn lines(ink: &[(char, Paint)], room: usize) -> Vec<Vec<Word>> {
    let mut lines = Vec::new();
    let mut line: Vec<Word> = Vec::new();
    let mut used = 0;
    for word in words(ink) {
        let Some(word) = word else {
            lines.push(std::mem::take(&mut line));
            used = 0;
            continue;
        };
        let gap = usize::from(word.apart && !line.is_empty());
        if !line.is_empty() && used + gap + word.width > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        let gap = if line.is_empty() { 0 } else { gap };
        let mut pieces = split(ink, word, room);
        let last = pieces.pop();
        lines.extend(pieces.into_iter().map(|piece| vec![piece]));
        used += gap + last.map_or(0, |word| word.width);
        line.extend(last);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A word in pieces that fit; a word that fits is one piece.
fn split(ink: &[(char, Paint)], word: Word, room: usize) -> Vec<Word> {
    if word.width <= room {
        return vec![word];
    }
    let mut pieces = Vec::new();
    let mut piece = Word { end: word.start, width: 0, ..word };
    for (index, (ch, _)) in ink.iter().enumerate().take(word.end).skip(word.start) {
        let width = ch.width().unwrap_or(0);
        if piece.width + width > room {
            pieces.push(piece);
            piece = Word { start: index, end: index, width: 0, apart: false };
        }
        piece.end = index + 1;
        piece.width += width;
    }
    pieces.push(piece);
    pieces
}

fn row(ink: &[(char, Paint)], words: &[Word]) -> Row {
    let mut row = Row::new();
    for (index, word) in words.iter().enumerate() {
        if word.apart && index > 0 {
            let space = ink.get(word.start - 1).map_or(Paint::PLAIN, |(_, paint)| *paint);
            row = row.text(space, " ");
        }
        let mut from = word.start;
        while from < word.end {
            let paint = ink[from].1;
            let run = ink[from..word.end].iter().take_while(|(_, other)| *other == paint);
            let text: String = run.map(|(ch, _)| *ch).collect();
            from += text.chars().count();
            row = row.text(paint, &text);
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, cols: usize) -> Vec<String> {
        let (first, rest) = (Row::of(Paint::PLAIN, "- "), Row::of(Paint::PLAIN, "  "));
        let rows = wrap_text(text, Paint::PLAIN, &first, &rest, cols);
        rows.iter().map(Row::plain).collect()
    }

    #[test]
    fn rows_break_at_words_and_hang() {
        assert_eq!(wrapped("one two  three four", 12), ["- one two", "  three four"]);
        assert_eq!(wrapped("a\nb", 12), ["- a", "  b"]);
    }

    #[test]
    fn verbatim_lines_keep_their_blanks_and_break_between_words() {
        let table: &[(&str, &[&str])] = &[
            ("short  line", &["short  line"]),
            ("", &[""]),
            ("    in  two  words more", &["    in  two", "    words", "    more"]),
            ("one two three four", &["one two", "three four"]),
            ("abcdefghijkl mnop", &["abcdefghijkl", "mnop"]),
            ("abcdefghijklmnopq", &["abcdefghijkl", "mnopq"]),
            ("日本語日本語日本", &["日本語日本語", "日本"]),
            ("a日本語日本語日本", &["a日本語日本", "語日本"]),
            ("           x yyyyyyyyyyy", &["           x", "      yyyyyy", "      yyyyy"]),
        ];
        for (line, want) in table {
            assert_eq!(wrap_verbatim(line, 12), *want, "{line:?}");
        }
        let long = "wörter und 日本語 ".repeat(30);
        for cols in 8..50 {
            let rows = wrap_verbatim(&long, cols);
            assert!(rows.iter().all(|row| row.width() <= cols), "{cols} {rows:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&rows.concat()), letters(&long), "{cols}");
        }
    }

    #[test]
    fn words_wider_than_a_row_are_split() {
        assert_eq!(wrapped("x abcdefghijklmno", 12), ["- x", "  abcdefghij", "  klmno"]);
        assert_eq!(wrapped("日本語日本語日本", 12), ["- 日本語日本", "  語日本"]);
    }
}
