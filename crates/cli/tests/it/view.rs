//! Whole turns, on screens and in pipes.

use bindery::core::part::Part;
use bindery_cli::terminal::{Sink, Style};
use bindery_cli::view::View;
use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use crate::screen::seen;
use crate::turn::{from_json, paper, parts, play};

#[test]
fn a_turn_at_80_columns() {
    assert_snapshot!(play(paper(80, true), &parts()).both);
}

#[test]
fn a_turn_at_60_columns_in_ascii() {
    assert_snapshot!(play(paper(60, false), &parts()).both);
}

#[test]
fn a_turn_in_colour() {
    let shown = play(Style { out: COLOUR, err: COLOUR, ..paper(80, true) }, &parts()).both;
    assert_snapshot!(shown.replace('\x1b', "^"));
}

const COLOUR: Sink = Sink { terminal: true, colour: true, moving: false };

#[test]
fn what_moves_disappears_without_a_trace() {
    for (width, unicode) in [(80, true), (60, false)] {
        let moving = play(Style::screen(width, unicode, false), &parts()).both;
        assert!(moving.contains("ctrl-c to interrupt"));
        assert_eq!(seen(&moving), seen(&play(paper(width, unicode), &parts()).both));
    }
}

#[test]
fn a_pipe_gets_the_answer_and_nothing_else() {
    let shown = play(Style { out: Sink::PIPE, err: Sink::PIPE, ..paper(80, true) }, &parts());
    assert_snapshot!("piped_stdout", shown.out);
    assert_snapshot!("piped_stderr", shown.err);
}

#[test]
fn a_redirected_answer_leaves_the_rest_on_the_screen() {
    let screen = Sink { terminal: true, colour: false, moving: true };
    let half = Style { out: Sink::PIPE, err: screen, ..paper(80, true) };
    let shown = play(half, &parts());
    let plain = play(Style { out: Sink::PIPE, err: Sink::PIPE, ..half }, &parts());
    assert_eq!(shown.out, plain.out);
    // A screen has an edge, at which long remarks go on below.
    let words = |text: &str| seen(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown.err), words(&plain.err));
}

#[test]
fn the_moving_line_says_what_runs_and_for_how_long() {
    let mut view = View::new(Style::screen(60, true, false), "/p");
    let _ = view.tick(1_000);
    let _ = view.push(&command("/bin/bash -lc 'cargo test parse'"));
    let progress = json!([{"type": "tool-result", "toolCallId": "c", "preliminary": true,
        "toolName": "codex_command_execution",
        "result": {"status": "inProgress", "delta": "b\n", "output": "a\nb\n"}}]);
    let mut text = String::new();
    for output in [view.push(&from_json(progress)[0]), view.tick(4_250)] {
        text.extend(output.pieces.into_iter().map(|(_, text)| text));
    }
    insta::assert_snapshot!(seen(&text), @"
      │ a
      │ b
    ⠹ cargo test parse · 3 s · ctrl-c to interrupt
    ");
    let paused: String = view.pause().pieces.into_iter().map(|(_, text)| text).collect();
    assert_eq!(seen(&(text + &paused)), "");
}

#[test]
fn every_end_has_its_words() {
    let finish = |reason: &str| {
        from_json(json!([{"type": "finish", "finishReason": {"unified": reason},
            "usage": {"inputTokens": {"total": 900}, "outputTokens": {}},
            "providerMetadata": {"codex": {"durationMs": 65_000}}}]))
    };
    let reasons =
        ["stop", "length", "content-filter", "tool-calls", "error", "interrupted", "other"];
    let ends = reasons.map(|reason| play(paper(80, true), &finish(reason)).err);
    let last = ends.iter().map(|end| end.lines().last().unwrap()).collect::<Vec<_>>();
    insta::assert_snapshot!(last.join("\n"), @"
    done in 1 min 5 s · 900 in
    stopped at the length limit after 1 min 5 s · 900 in
    stopped by a content filter after 1 min 5 s · 900 in
    waiting for answers after 1 min 5 s · 900 in
    failed after 1 min 5 s · 900 in
    interrupted after 1 min 5 s · 900 in
    ended after 1 min 5 s · 900 in
    ");
}

#[test]
fn errors_are_told_in_full_and_open_calls_are_closed() {
    let mut turn = vec![command("sleep 20")];
    turn.extend(from_json(json!([
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": "half a sen"},
        {"type": "error", "error": {"message": "you have reached your usage limit; it is \
            renewed at 12:40 tomorrow", "kind": "usageLimitExceeded"}},
    ])));
    insta::assert_snapshot!(play(paper(60, true), &turn).both, @"
    codex 0.166.0 · gpt-5.4 · workspace-write · ~/almanac (main,
    2 changed)

    error: you have reached your usage limit; it is renewed at
           12:40 tomorrow
      kind: usageLimitExceeded

    half a sen

    ✗ $ sleep 20                              cut off
    ");
}

#[test]
fn parts_that_are_not_understood_are_shown() {
    let turn = from_json(json!([
        {"type": "custom", "kind": "codex.future", "providerMetadata": {"codex": {"a": 1}}},
        {"type": "custom", "kind": "codex.subagent",
            "providerMetadata": {"codex": {"agentThreadId": "t9", "part": {"type": "new"}}}},
        {"type": "tool-result", "toolCallId": "x", "toolName": "lookup", "result": {"rows": 3}},
        {"type": "tool-result", "toolCallId": "y", "toolName": "codex_file_change",
            "result": {"changes": "?", "status": "failed"}},
    ]));
    let shown = play(paper(60, true), &turn).both;
    insta::assert_snapshot!(shown.split_once("\n\n").unwrap().1, @r#"
    ? codex.future {"a":1}
    ↳ t9
      · a part that is not understood
    ✓ lookup
      │ {"rows":3}
    ✗ codex_file_change                       failed
    "#);
}

/// Text that tries to clear the screen, set the title, forge a line and reverse the reading.
const HOSTILE: &str = "a\x1b[2J\x1b]0;t\x07\r\u{9b}31m\u{202e}b\x08";

#[test]
fn nothing_that_others_wrote_reaches_the_terminal_as_a_sequence() {
    let codex = |data| json!({"codex": data});
    let change = json!({"changes": [{"path": HOSTILE, "kind": {"type": "add"}, "diff": HOSTILE}]});
    let turn = from_json(json!([
        {"type": "stream-start", "warnings": [{"type": "other", "message": HOSTILE}]},
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": format!("{HOSTILE} `{HOSTILE}`\n\n| {HOSTILE}")},
        {"type": "text-delta", "id": "t", "delta": format!("\n```\n{HOSTILE}\n```\n[{HOSTILE}](")},
        {"type": "text-end", "id": "t"},
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": HOSTILE},
        {"type": "tool-input-start", "id": "c", "toolName": HOSTILE},
        {"type": "tool-call", "toolCallId": "c", "toolName": HOSTILE, "input": HOSTILE},
        {"type": "tool-result", "toolCallId": "c", "toolName": HOSTILE, "result": HOSTILE},
        {"type": "tool-result", "toolCallId": "d", "toolName": "codex_command_execution",
            "result": {"status": "failed", "aggregatedOutput": HOSTILE, "exitCode": 1}},
        {"type": "tool-result", "toolCallId": "e", "toolName": "codex_file_change",
            "result": change},
        {"type": "tool-call", "toolCallId": "p", "toolName": "codex_plan_update", "input":
            json!({"explanation": HOSTILE, "plan": [{"step": HOSTILE, "status": HOSTILE}]})
                .to_string()},
        {"type": "source", "sourceType": "url", "id": "s", "url": HOSTILE},
        {"type": "custom", "kind": HOSTILE, "providerMetadata": codex(json!({"a": HOSTILE}))},
        {"type": "custom", "kind": "codex.notice",
            "providerMetadata": codex(json!({"level": "warning", "text": HOSTILE}))},
        {"type": "custom", "kind": "codex.subagent", "providerMetadata": codex(json!({
            "agentThreadId": "x", "name": HOSTILE, "part": {"type": "error", "error": HOSTILE}}))},
        {"type": "error", "error": {"message": HOSTILE, "kind": HOSTILE}},
        {"type": "finish", "usage": {"inputTokens": {}, "outputTokens": {}},
            "finishReason": {"unified": "stop"},
            "providerMetadata": codex(json!({"threadId": HOSTILE}))},
    ]));
    // The screen panics at every control character and every sequence that is not our own.
    let shown = play(Style::screen(80, true, true), &turn).both;
    let screen = seen(&shown);
    assert!(!shown.contains("\x1b[2J") && !screen.contains(['\u{202e}', '\u{9b}']));
    assert!(screen.contains("\\x1b[2J") && screen.contains("\\u{202e}"));
}

fn command(command: &str) -> Part {
    let input = json!({"command": command, "cwd": "/p", "actions": []}).to_string();
    let call = json!([{"type": "tool-call", "toolCallId": "c", "input": input,
        "toolName": "codex_command_execution"}]);
    from_json(call).remove(0)
}

fn deltas(pieces: &[String]) -> Vec<Part> {
    let mut parts = from_json(json!([{"type": "text-start", "id": "t"}]));
    for piece in pieces {
        let delta = json!([{"type": "text-delta", "id": "t", "delta": piece}]);
        parts.extend(from_json(delta));
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_loses_no_character(pieces in proptest::collection::vec(any::<String>(), 0..6)) {
        let shown = play(Style { out: Sink::PIPE, err: Sink::PIPE, ..paper(80, true) }, &deltas(&pieces));
        let text = pieces.concat();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        prop_assert_eq!(shown.out, text + end);
    }

    #[test]
    fn a_screen_shows_what_paper_shows(pieces in proptest::collection::vec("[ -~\n日]{0,40}", 0..6)) {
        let moving = play(Style::screen(60, true, false), &deltas(&pieces)).both;
        let still = play(paper(60, true), &deltas(&[pieces.concat()])).both;
        prop_assert_eq!(seen(&moving), seen(&still));
    }
}
