//! What `list` and `show` print, at any width and for any wish.

use std::fs;

use unicode_width::UnicodeWidthStr;

use super::*;

fn run_at(home: &Path, width: usize, words: &[&str]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let line = Line::try_parse_from(["sessions"].iter().chain(words)).unwrap();
    let sink = crate::terminal::Sink::PIPE;
    let style = Style { out: sink, err: sink, ..Style::screen(width, true, false) };
    let cx = context(&mut out, &mut err, style);
    line.sessions.run_in(cx).unwrap();
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).unwrap().replace(&home.to_string_lossy().into_owned(), "HOME")
    };
    (text(out), text(err))
}

#[test]
fn no_row_of_a_list_is_wider_than_the_screen() {
    let home = home();
    let path = home.path().to_str().unwrap();
    for width in [60, 72, 80, 100, 132, 200] {
        let (out, _) = run_at(home.path(), width, &["list", path]);
        for row in out.lines() {
            assert!(row.width() <= width, "{width}: {} {row:?}", row.width());
        }
        assert!(out.contains("make the"), "{out}");
    }
}

#[test]
fn a_list_by_turns_counts_them_before_it_sorts() {
    let home = home();
    let day = home.path().join("sessions/2026/11/15");
    let long = fs::read_dir(&day).unwrap().map(|e| e.unwrap().path()).max().unwrap();
    let mut text = fs::read_to_string(&long).unwrap();
    let turn = "{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\",\"turn_id\":\"a\"}}\n";
    let filler = format!(
        "{{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"agent_message\",\"message\":\"{}\"}}}}\n",
        "word ".repeat(200)
    );
    // Longer than what is counted without being asked.
    text += &format!("{turn}{filler}").repeat(300);
    fs::write(&long, text).unwrap();
    let path = home.path().to_str().unwrap();
    let words = ["list", "--flat", "--json", "--sort", "turns", "--limit", "1", path];
    let (out, _) = run_at(home.path(), 100, &words);
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["turns"]), (&B.into(), &300.into()));
}

#[test]
fn a_turn_that_is_not_there_is_an_error() {
    let home = home();
    let path = home.path().to_str().unwrap();
    let (out, err) = run(home.path(), &["show", A, "--turn", "99", "--home", path]);
    assert_eq!(out, "");
    assert!(err.contains("no turn 99: the session has 1") && err.contains("hint: "), "{err}");
}

#[test]
fn raw_lines_do_not_steer_the_terminal_and_mean_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let said = "a\u{9b}31m \u{202e}b é 日本";
    let line = serde_json::json!({ "type": "tomorrow", "payload": { "text": said } }).to_string();
    let torn = "{\"torn\u{1b}]0;title\u{7}\u{1b}[2J";
    fs::write(&path, format!("{line}\n{torn}\n")).unwrap();
    let (out, _) = run(folder.path(), &["show", "--raw", path.to_str().unwrap()]);
    let bad = out.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(bad, None, "{out:?}");
    let shown: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(shown["payload"]["text"], said);
    assert!(out.contains("é 日本") && out.contains("\\u001b[2J"), "{out}");
}

#[test]
fn setup_topics_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let payload = serde_json::json!({
        "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": "hello" }],
        "internal_chat_message_metadata_passthrough": { "content_item_kinds": ["odd\u{1b}[2J"] },
    });
    let head =
        "{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"response_item\",\"payload\":";
    fs::write(&path, format!("{head}{payload}}}\n")).unwrap();
    for words in [vec!["show", "-d", "everything"], vec!["export"]] {
        let words = [words, vec![path.to_str().unwrap()]].concat();
        let (out, err) = run(folder.path(), &words);
        assert!(!out.contains('\u{1b}') && out.contains("odd"), "{out:?} {err:?}");
    }
}

#[test]
fn exports_in_pieces_are_whole_values() {
    let home = home();
    let path = home.path().to_str().unwrap();
    let (json, _) = run(home.path(), &["export", A, "-f", "json", "--home", path]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["threadId"], value["turns"].as_array().unwrap().len()), (&A.into(), 1));
    let (json, _) = run(home.path(), &["export", A, "-f", "messages", "--home", path]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(value.as_array().unwrap().len() >= 4);
}
