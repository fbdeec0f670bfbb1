//! A session on screens of several widths.

use std::fs;

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::*;

const ANSWER: &str = "\
# Week dates

The parser accepts **ISO weeks** such as `2026-W46-7` now, *and* says what is wrong with a date that \
it does not know; see [the standard](https://example.org/iso-8601) for the rules of the first week.

- an entry of a list that is long enough to go on below itself on a narrow screen
- 日本語の長い文章は空白がないので、どこでも折り返すことができます。幅は二桁です。

| week | days | note |
|------|-----:|------|
| W01 | 7 | the first with a Thursday |
| W53 | 7 | only in long years |

```rust
fn date(input: &str) -> Result<Date, ParseError> { week_date(input).or_else(|_| calendar(input)) }
```

https://example.org/a/path/without/any/blank/that/is/longer/than/the/widest/of/the/screens/and/must/be/broken/somewhere";

/// A session with everything that is broken into rows in its own way.
fn session() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let event = |payload: serde_json::Value| ("event_msg", payload);
    let item = |payload: serde_json::Value| ("response_item", payload);
    let prompt = "make the date parser accept ISO weeks, please, and tell me which tests are missing\n    \
                  keep(this,  as,  it,  is)";
    let text = |kind: &str, text: &str| json!([{ "type": kind, "text": text }]);
    let patch = json!({ "/src/almanac/src/parse.rs": { "type": "update", "move_path": null,
        "unified_diff": "@@ -1 +1 @@\n-    calendar(input)\n+    week_date(input).or_else(|_| calendar(input)).map_err(|error| error.at(input))\n" } });
    let output = "Exit code: 101\nWall time: 3.8 seconds\nOutput:\nthread 'week_53' panicked at tests/parse.rs:88: assertion `left == right` failed: week 53 of a year of 52\n";
    let lines = [
        (
            "session_meta",
            json!({ "id": A, "timestamp": "2026-11-15T20:14:38.000Z", "cwd": "/src/almanac",
            "cli_version": "0.98.0", "git": { "branch": "weeks" } }),
        ),
        event(json!({ "type": "task_started", "turn_id": "t1" })),
        ("turn_context", json!({ "turn_id": "t1", "cwd": "/src/almanac", "model": "gpt-5.4" })),
        item(json!({ "type": "message", "role": "user", "content": text("input_text", prompt) })),
        event(json!({ "type": "user_message", "message": prompt })),
        item(json!({ "type": "function_call", "name": "shell_command", "call_id": "c1",
            "arguments": json!({ "command": "cargo test --workspace --no-fail-fast -- parse::weeks" }).to_string() })),
        item(json!({ "type": "function_call_output", "call_id": "c1", "output": output })),
        event(
            json!({ "type": "patch_apply_end", "call_id": "p1", "turn_id": "t1", "stdout": "", "stderr": "",
            "success": true, "changes": patch }),
        ),
        item(
            json!({ "type": "message", "role": "assistant", "content": text("output_text", ANSWER) }),
        ),
        event(
            json!({ "type": "thread_prediction", "words": "what this Bindery does not know yet, in a long line of words" }),
        ),
        event(
            json!({ "type": "token_count", "info": { "total_token_usage": { "input_tokens": 12_000,
            "cached_input_tokens": 9_000, "output_tokens": 400, "reasoning_output_tokens": 0, "total_tokens": 12_400 },
            "last_token_usage": { "input_tokens": 12_000, "cached_input_tokens": 9_000, "output_tokens": 400,
            "reasoning_output_tokens": 0, "total_tokens": 12_400 }, "model_context_window": 200_000 } }),
        ),
        event(json!({ "type": "task_complete", "turn_id": "t1" })),
    ];
    let line = |(kind, payload): (&str, serde_json::Value)| {
        let line =
            json!({ "timestamp": "2026-11-15T20:14:38.000Z", "type": kind, "payload": payload });
        format!("{line}\n")
    };
    let path = folder.path().join(format!("rollout-2026-11-15T20-14-38-{A}.jsonl"));
    fs::write(path, lines.map(line).concat()).unwrap();
    folder
}

fn show(folder: &Path, style: Style, words: &[&str]) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let home = folder.to_str().unwrap();
    let line = [&["sessions", "show", A, "--no-pager", "--home", home], words].concat();
    let line = Line::try_parse_from(line).unwrap();
    line.sessions.run_in(context(&mut out, &mut err, style)).unwrap();
    String::from_utf8(out).unwrap()
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let plain = parts.next().unwrap().to_owned();
    parts.fold(plain, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn a_session_is_laid_out_for_narrow_usual_and_wide_screens() {
    let folder = session();
    for width in [40, 80, 120] {
        let page = show(folder.path(), Style::screen(width, true, false), &[]);
        insta::assert_snapshot!(format!("shown_at_{width}"), page);
    }
}

#[test]
fn no_row_is_wider_than_the_screen_but_code() {
    let folder = session();
    for width in [40, 60, 80, 100, 120] {
        for density in ["conversation", "activity", "everything"] {
            for colour in [false, true] {
                let style = Style::screen(width, true, colour);
                let page = without_colours(&show(folder.path(), style, &["-d", density]));
                let wide = page.lines().filter(|row| row.width() > width);
                let wide: Vec<_> = wide.filter(|row| !row.starts_with("    fn date(")).collect();
                assert_eq!(wide, [""; 0], "{width} {density}");
                // Whole words, also where a row ends inside of a painted text.
                let words: Vec<&str> = page.split_whitespace().collect();
                for word in ["accept", "missing", "standard", "Thursday", "panicked"] {
                    let is_whole = |found: &&str| found.contains(word);
                    let is_shown = density != "conversation" || word != "panicked";
                    assert!(words.iter().any(is_whole) || !is_shown, "{width} {word}\n{page}");
                }
            }
        }
    }
}

#[test]
fn with_colour_the_marks_of_markdown_are_drawn() {
    let folder = session();
    let page = show(folder.path(), Style::screen(80, true, true), &[]);
    assert!(page.contains("\u{1b}[1mISO weeks\u{1b}[0m"), "{page}");
    assert!(page.contains("\u{1b}[36m2026-W46-7\u{1b}[0m") && !page.contains("**ISO"), "{page}");
}

#[test]
fn a_pipe_gets_lines_as_they_are_at_any_width() {
    let folder = session();
    let sink = crate::terminal::Sink::PIPE;
    let pages = [40, 80, 200].map(|width| {
        let style = Style { out: sink, err: sink, ..Style::screen(width, true, false) };
        show(folder.path(), style, &[])
    });
    assert!(pages.iter().all(|page| *page == pages[0]));
    for line in ANSWER.lines().filter(|line| !line.is_empty()) {
        assert!(pages[0].lines().any(|shown| shown == line), "{line}\n{}", pages[0]);
    }
    assert!(!pages[0].contains('\u{1b}') && pages[0].starts_with("── turn 1"), "{}", pages[0]);
}
