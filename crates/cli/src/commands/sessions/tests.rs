//! Command lines in, text out.

use std::path::Path;

use clap::Parser;

use super::*;

mod exported;

mod screen;

mod shown;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    sessions: Sessions,
}

const A: &str = "01a1e0d8-fa58-7c30-8b28-2a498ba7d4be";
const B: &str = "01a1e0d9-66ec-7f42-8535-d9c43664c8cd";

fn home() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("sessions/2026/11/15");
    std::fs::create_dir_all(&day).unwrap();
    let line = |kind: &str, payload: String| {
        format!(
            "{{\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        )
    };
    let write = |id: &str, parent: &str, words: &str, more: &str| {
        let mut text = line(
            "session_meta",
            format!(
                "{{\"id\":\"{id}\",\"timestamp\":\"2026-11-15T20:14:38.000Z\",\"cwd\":\"/src/almanac\",\"cli_version\":\"0.98.0\",\"git\":{{\"branch\":\"weeks\"}}{parent}}}"
            ),
        );
        text += &line(
            "response_item",
            format!(
                "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{words}\"}}]}}"
            ),
        );
        text +=
            &line("event_msg", format!("{{\"type\":\"user_message\",\"message\":\"{words}\"}}"));
        text += &line("response_item", "{\"type\":\"function_call\",\"name\":\"shell_command\",\"arguments\":\"{\\\"command\\\":\\\"make\\\"}\",\"call_id\":\"c\"}".to_owned());
        let output = r#"{"type":"function_call_output","call_id":"c","output":"Exit code: 101\nWall time: 3.8 seconds\nOutput:\nfailed\n"}"#;
        text += &line("response_item", output.to_owned());
        text += &line("response_item", "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"One test fails.\"}]}".to_owned());
        text += more;
        std::fs::write(day.join(format!("rollout-2026-11-15T20-14-38-{id}.jsonl")), text).unwrap();
    };
    write(A, "", "make the date parser accept ISO weeks", "");
    let parent = format!(
        ",\"source\":{{\"subagent\":{{\"thread_spawn\":{{\"parent_thread_id\":\"{A}\"}}}}}},\"agent_nickname\":\"Newton\""
    );
    let odd = line("event_msg", "{\"type\":\"thread_prediction\"}".to_owned());
    write(B, &parent, "search the lockfile", &odd);
    folder
}

fn context<'a>(out: &'a mut Vec<u8>, err: &'a mut Vec<u8>, style: Style) -> Context<'a> {
    let write_time = |millis| bindery::sessions::clock::rfc3339(millis).replace('T', " ");
    Context { out, err, style, now: 1_794_773_798_000, cache: None, write_time }
}

/// Stdout and stderr.
fn run(home: &Path, words: &[&str]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let line = Line::try_parse_from(["sessions"].iter().chain(words)).unwrap();
    let style = Style {
        out: crate::terminal::Sink::PIPE,
        err: crate::terminal::Sink::PIPE,
        ..Style::screen(100, true, false)
    };
    let cx = context(&mut out, &mut err, style);
    if let Err(error) = line.sessions.run_in(cx) {
        return (String::new(), crate::failure::text(&error));
    }
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).unwrap().replace(&home.to_string_lossy().into_owned(), "HOME")
    };
    (text(out), text(err))
}

#[test]
fn a_list_shows_sub_agents_below_their_parents() {
    let home = home();
    let (out, err) = run(home.path(), &["list", "--home", home.path().to_str().unwrap()]);
    insta::assert_snapshot!(out + &err);
    let (json, _) = run(home.path(), &["list", "--json", home.path().to_str().unwrap()]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["children"][0]), (&A.into(), &B.into()));
}

#[test]
fn a_session_is_shown_by_the_end_of_its_id() {
    let home = home();
    let (out, _) =
        run(home.path(), &["show", "43664c8cd", "--home", home.path().to_str().unwrap()]);
    insta::assert_snapshot!(out);
}

#[test]
fn a_session_is_exported_in_every_form() {
    let home = home();
    for format in ["md", "json", "messages", "ndjson"] {
        let words = ["export", A, "--format", format, "--home", home.path().to_str().unwrap()];
        let (out, err) = run(home.path(), &words);
        assert!(out.contains("One test fails."), "{format}: {out} {err}");
    }
}

#[test]
fn validate_names_what_is_unknown() {
    let home = home();
    let (out, _) = run(home.path(), &["validate", home.path().to_str().unwrap()]);
    insta::assert_snapshot!(out);
}

#[test]
fn a_missing_session_gets_a_hint() {
    let home = home();
    let (_, err) =
        run(home.path(), &["show", "01a1e0d8-ff", "--home", home.path().to_str().unwrap()]);
    insta::assert_snapshot!(err, @"
    error: no session `01a1e0d8-ff`
      hint: did you mean `01a1e0d8-fa58-7c30-8b28-2a498ba7d4be`?
    ");
}
