//! What a line of Markdown begins with, told from as few of its characters as possible.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// It cannot be told before more of it is there.
    Undecided,
    /// Nothing.
    Blank,
    /// Text, perhaps with a mark before it.
    Text(Start),
    /// The beginning of a block of code: its marks, its indentation, what it says of itself.
    Fence { mark: char, length: usize, indent: usize, info: &'a str },
    /// A row of a table.
    Cells,
    /// A line across.
    Rule,
    /// Indented code.
    Code,
}

/// Text and what stands before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// Levels of quotation.
    pub(crate) quote: usize,
    /// Spaces before it.
    pub(crate) indent: usize,
    /// `-` or `12.`, for an entry of a list.
    pub(crate) marker: Option<String>,
    /// 1 to 6, for a heading.
    pub(crate) heading: Option<usize>,
    /// Bytes of the line that are not text.
    pub(crate) used: usize,
}

/// What a line is read after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    /// A paragraph is open; it is not inside a list.
    pub(crate) in_paragraph: bool,
    /// A list is open.
    pub(crate) in_list: bool,
    /// The line is all there.
    pub(crate) complete: bool,
}

/// Tells what a line, or the beginning of one, is.
///
/// What it says of a beginning, it says of every line that begins so.
pub(crate) fn read(line: &str, context: Context) -> Line<'_> {
    let mut start = Start::default();
    let mut rest = line;
    loop {
        let text = rest.trim_start_matches(' ');
        start.indent = rest.len() - text.len();
        start.used = line.len() - text.len();
        let Some(quoted) = text.strip_prefix('>') else { break };
        start.quote += 1;
        // The space after the sign belongs to it; whether it is there must be known.
        if quoted.is_empty() && !context.complete {
            return Line::Undecided;
        }
        rest = quoted.strip_prefix(' ').unwrap_or(quoted);
    }
    let text = &line[start.used..];
    match text.chars().next() {
        None if context.complete => Line::Blank,
        None => Line::Undecided,
        Some('\t') if text.trim().is_empty() => {
            if context.complete {
                Line::Blank
            } else {
                Line::Undecided
            }
        }
        Some(first) => told(text, first, start, context),
    }
}

fn told(text: &str, first: char, start: Start, context: Context) -> Line<'_> {
    if start.indent >= 4 && !context.in_list && !context.in_paragraph {
        return whole(context, Line::Code);
    }
    match first {
        '`' | '~' => fence(text, first, start, context),
        '#' => heading(text, start, context),
        '-' | '*' | '+' | '_' => bullet(text, first, start, context),
        '0'..='9' => number(text, start, context),
        '|' => whole(context, Line::Cells),
        _ => Line::Text(start),
    }
}

fn whole(context: Context, line: Line<'_>) -> Line<'_> {
    if context.complete { line } else { Line::Undecided }
}

fn fence<'a>(text: &'a str, mark: char, start: Start, context: Context) -> Line<'a> {
    let info = text.trim_start_matches(mark);
    let length = text.len() - info.len();
    match length {
        _ if info.is_empty() && !context.complete => Line::Undecided,
        ..3 => Line::Text(start),
        _ if mark == '`' && info.contains('`') => Line::Text(start),
        _ if !context.complete => Line::Undecided,
        _ => Line::Fence { mark, length, indent: start.indent, info: info.trim() },
    }
}

fn heading(text: &str, mut start: Start, context: Context) -> Line<'static> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    match rest.chars().next() {
        None if !context.complete => Line::Undecided,
        None | Some(' ') if level <= 6 => {
            start.heading = Some(level);
            start.used += level + usize::from(!rest.is_empty());
            Line::Text(start)
        }
        _ => Line::Text(start),
    }
}

fn bullet(text: &str, mark: char, mut start: Start, context: Context) -> Line<'static> {
    let only_marks = text.chars().all(|ch| ch == mark || ch == ' ');
    let marks = text.chars().filter(|ch| *ch == mark).count();
    if only_marks && !context.complete {
        return Line::Undecided;
    }
    if only_marks && marks >= 3 && mark != '+' {
        return Line::Rule;
    }
    let rest = &text[1..];
    if mark != '_' && (rest.is_empty() || rest.starts_with(' ')) {
        start.marker = Some(mark.to_string());
        start.used += 1 + usize::from(!rest.is_empty());
    }
    Line::Text(start)
}

fn number(text: &str, mut start: Start, context: Context) -> Line<'static> {
    let rest = text.trim_start_matches(|ch: char| ch.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    let mut after = rest.chars();
    match (after.next(), after.next()) {
        (None, _) | (Some('.' | ')'), None) if !context.complete => Line::Undecided,
        // Inside a paragraph a line may begin with a year and a full stop by chance.
        (Some(stop @ ('.' | ')')), Some(' '))
            if digits.len() <= 9 && (!context.in_paragraph || digits == "1") =>
        {
            start.marker = Some(format!("{digits}{stop}"));
            start.used += digits.len() + 2;
            Line::Text(start)
        }
        _ => Line::Text(start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is said of a beginning must be what is said of the whole line.
    #[test]
    fn a_beginning_is_never_read_differently_from_its_line() {
        let lines = [
            "plain",
            "- item",
            "-- no",
            "---",
            "* * *",
            "**bold** x",
            "1. one",
            "2024. year",
            "12345678901. no",
            "# head",
            "#hash",
            "####### seven",
            "> quote",
            ">> - deep",
            "```rust",
            "``` a`b",
            "``x``",
            "~~~",
            "~~gone~~",
            "| a | b |",
            "    code",
            "\t",
            "   - nested",
            "+ plus",
            "_em_",
            "___",
            "> ",
            ">",
            "-",
            "1.",
            "#",
            "`",
            "2.5 is",
        ];
        for line in lines {
            for bits in 0..4 {
                let context =
                    Context { in_paragraph: bits & 1 > 0, in_list: bits & 2 > 0, complete: false };
                let whole = read(line, Context { complete: true, ..context });
                for end in (0..=line.len()).filter(|end| line.is_char_boundary(*end)) {
                    let part = read(&line[..end], context);
                    let agrees = part == Line::Undecided || part == whole;
                    assert!(agrees, "{line:?}[..{end}] {context:?}: {part:?} but {whole:?}");
                }
            }
        }
    }
}
