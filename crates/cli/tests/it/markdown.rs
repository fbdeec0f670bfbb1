//! Markdown on a screen, whole and in pieces.

use bindery_cli::terminal::Style;
use bindery_cli::view::markdown::Markdown;
use bindery_cli::view::row::Row;
use bindery_cli::view::theme::Theme;
use proptest::prelude::*;

fn drawn(pieces: &[&str], width: usize, colour: bool) -> String {
    let theme = Theme::of(&Style::screen(width, true, colour));
    let mut markdown = Markdown::new(theme, colour);
    let mut rows: Vec<Row> = Vec::new();
    for piece in pieces {
        rows.extend(markdown.push(piece));
        assert!(markdown.live().len() < 1000);
    }
    rows.extend(markdown.end());
    rows.iter().map(|row| row.painted(colour) + "\n").collect()
}

#[test]
fn blocks_are_drawn_with_hanging_indents() {
    let text = "# Title\nA paragraph that is long enough to be wrapped, with a hard  \nbreak.\n\n\
        - first entry, which is long enough to go on below\n  and is continued\n  - nested\n\n    \
        a second paragraph of the nested entry\n10. ten\n11) eleven\n\n> quoted text that is \
        long enough to be wrapped as well\n> > deeper\n\n---\n\n    indented code\n\n```sh demo.sh\n\
        $ echo  two   spaces\n```\n";
    insta::assert_snapshot!(drawn(&[text], 40, false), @"
    # Title
    A paragraph that is long enough to be
    wrapped, with a hard
    break.

    • first entry, which is long enough to
      go on below and is continued
      • nested

        a second paragraph of the nested
        entry
    10. ten
    11) eleven

    │ quoted text that is long enough to be
    │ wrapped as well
    │ │ deeper

    ────────────────────────────────────────

        indented code

        sh demo.sh
        $ echo  two   spaces
    ");
}

#[test]
fn marks_become_paint_where_there_is_colour() {
    let text = "**bold *both*** _it_ snake_case_name `a*b` ~~gone~~ \\*no\\* 2 * 3 * 4 \
        [here](http://x.y) <https://z.w> ![alt](p.png) **open";
    insta::assert_snapshot!(drawn(&[text], 72, true).replace('\x1b', "^"), @"
    ^[1mbold ^[0m^[1;3mboth^[0m ^[3mit^[0m snake_case_name ^[36ma*b^[0m ^[9mgone^[0m *no* 2 * 3 * 4 ^[4mhere^[0m ^[2m(http://x.y)^[0m
    ^[4mhttps://z.w^[0m ^[4malt^[0m ^[2m(p.png)^[0m **open
    ");
    insta::assert_snapshot!(drawn(&[text], 72, false), @"
    **bold *both*** _it_ snake_case_name `a*b` ~~gone~~ *no* 2 * 3 * 4 here
    (http://x.y) https://z.w alt (p.png) **open
    ");
}

#[test]
fn tables_fit_or_are_shown_as_they_came() {
    let text = "Sizes:\n| name | what it is | n |\n|:--|:-:|--:|\n| a | a cell that is far too \
        wide for the screen | 1 |\n| `b\\|c` | short | 1000 |\n\n| no | table |\nplain\n";
    insta::assert_snapshot!(drawn(&[text], 40, false), @"
    Sizes:
    name  │        what it is         │    n
    ──────┼───────────────────────────┼─────
    a     │  a cell that is far too   │    1
          │    wide for the screen    │
    `b|c` │           short           │ 1000

    | no | table |
    plain
    ");
    let wide = format!("{}|\n{}|\n", "| abcdefgh ".repeat(8), "|---".repeat(8));
    insta::assert_snapshot!(drawn(&[&wide], 40, false), @"
    | abcdefgh | abcdefgh | abcdefgh |
    abcdefgh | abcdefgh | abcdefgh |
    abcdefgh | abcdefgh |
    |---|---|---|---|---|---|---|---|
    ");
}

#[test]
fn long_paragraphs_are_given_out_row_by_row() {
    let theme = Theme::of(&Style::screen(40, true, true));
    let mut markdown = Markdown::new(theme, true);
    let rows =
        markdown.push("Plain words that fill more than one row of the screen and **then bold");
    assert_eq!(rows.len(), 1);
    assert_eq!(markdown.live().len(), 1);
    let more =
        markdown.push(" words that go on for long, until** they end and other words follow them");
    assert_eq!((more.len(), markdown.live().len()), (2, 1));
}

#[test]
fn another_width_loses_no_word_and_doubles_none() {
    let words: Vec<String> = (0..60).map(|number| format!("word{number} ")).collect();
    let mut markdown = Markdown::new(Theme::of(&Style::screen(60, true, false)), false);
    let mut rows: Vec<Row> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        rows.extend(markdown.push(if index == 30 { "\n\n" } else { word }));
        let width = [60, 40, 90][index / 11 % 3];
        markdown.resize(Theme::of(&Style::screen(width, true, false)));
    }
    rows.extend(markdown.end());
    let text: Vec<String> = rows.iter().map(Row::plain).collect();
    let shown: Vec<String> = text.join(" ").split_whitespace().map(str::to_owned).collect();
    let want = words.iter().enumerate().filter(|(index, _)| *index != 30);
    assert_eq!(shown, want.map(|(_, word)| word.trim().to_owned()).collect::<Vec<_>>());
}

fn mark() -> impl Strategy<Value = &'static str> {
    #[rustfmt::skip]
    let marks = vec![
        "word", "日本", "a", "1", " ", "  ", "\n", "\n\n", "*", "**", "_", "`", " ~~", "[x", "](u)",
        "\\", "- ", "\n- ", "\n1. ", "\n> ", "\n# ", "\n```\n", "| a | b |", "\n|---|--:|\n",
        "\n---\n", "<https://u>", "    ", "\r\n", "\t", "longerwordthatfillsarow", "!",
    ];
    prop::sample::select(marks)
}

/// The same text in pieces of one character and of any length.
fn cut(text: &str, lengths: &[usize]) -> Vec<String> {
    let mut chars = text.chars();
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        let piece: String = chars.by_ref().take(*length).collect();
        if piece.is_empty() {
            return pieces;
        }
        pieces.push(piece);
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_text_is_cut_changes_nothing(
        marks in prop::collection::vec(mark(), 0..60),
        lengths in prop::collection::vec(1usize..9, 1..6),
        colour in any::<bool>(),
    ) {
        let text = marks.concat();
        let whole = drawn(&[&text], 40, colour);
        let pieces = cut(&text, &lengths);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(drawn(&pieces, 40, colour), whole);
    }

    #[test]
    fn no_letter_is_lost(marks in prop::collection::vec(mark(), 0..60), colour in any::<bool>()) {
        let text = marks.concat();
        // Cells that are wrapped stand beside each other, so the order may differ.
        let letters = |text: &str| {
            let mut letters: Vec<char> = text.chars().filter(|ch| ch.is_alphabetic()).collect();
            letters.sort_unstable();
            letters
        };
        let theme = Theme::of(&Style::screen(40, true, colour));
        let mut markdown = Markdown::new(theme, colour);
        let mut rows = markdown.push(&text);
        rows.extend(markdown.end());
        let shown: String = rows.iter().map(Row::plain).collect();
        prop_assert_eq!(letters(&shown), letters(&text));
    }
}
