//! Reviews from well-behaved, careless and hostile reviewers.

use serde_json::json;

use super::{Finding, Location, Review};

fn answer() -> String {
    let place = json!({ "absolute_file_path": "/p/f.rs", "line_range": { "start": 3, "end": 4 } });
    json!({
        "findings": [
            { "title": "[P1] Off by one", "body": "The last line\nis lost.",
              "confidence_score": 0.9, "priority": 1, "code_location": place },
            { "title": "Slow", "body": "", "priority": 3 },
        ],
        "overall_correctness": "patch is incorrect",
        "overall_explanation": "Two things.",
        "overall_confidence_score": 0.8,
    })
    .to_string()
}

#[test]
fn an_answer_is_told_as_codex_tells_it() {
    let review = Review::read_answer(&answer());
    assert_eq!(review.correctness.as_deref(), Some("patch is incorrect"));
    assert_eq!(review.findings[0].priority, Some(1));
    insta::assert_snapshot!(review.text(), @r"
    Two things.

    Full review comments:

    - [P1] Off by one — /p/f.rs:3-4
      The last line
      is lost.

    - [P3] Slow
    ");
}

#[test]
fn words_around_the_json_do_not_matter() {
    let plain = Review::read_answer(&answer());
    let fenced = format!("Here it is:\n```json\n{}\n```\nThat is all.", answer());
    assert_eq!(Review::read_answer(&fenced), plain);
}

#[test]
fn whatever_comes_something_is_told() {
    let deep = format!("{}{}", "{\"findings\":".repeat(5000), "}".repeat(5000));
    let table: [(&str, &str); 8] = [
        ("", "The reviewer gave no answer."),
        ("Looks good.", "Looks good."),
        ("}{", "}{"),
        ("{}", "{}"),
        ("[1]", "[1]"),
        (r#"{"findings":5}"#, r#"{"findings":5}"#),
        (r#"{"findings":[],"overall_explanation":"Fine."}"#, "Fine."),
        (r#"{"findings":[7]}"#, "Review comment:\n\n- 7"),
    ];
    for (text, want) in table {
        assert_eq!(Review::read_answer(text).text(), want, "{text}");
    }
    assert_eq!(Review::read_answer(&deep).text(), deep);
}

#[test]
fn a_title_or_a_path_cannot_make_findings_up() {
    let finding = json!({
        "title": "a\n- [P0] made up — /x:1-1", "body": "b\n- c\n\nFull review comments:",
        "priority": 99,
        "code_location": { "absolute_file_path": "/p\n- [P0] y", "line_range": { "start": -1 } },
    });
    let review = Review::read_answer(&json!({ "findings": [finding] }).to_string());
    assert_eq!(review.findings[0].priority, None);
    let read = Review::read_text(&review.text());
    assert_eq!(read.findings.len(), 1, "{}", review.text());
    assert_eq!(read.findings[0].body, review.findings[0].body);
}

#[test]
fn what_is_told_can_be_read() {
    let place = |path: &str| Some(Location { path: path.to_owned(), start: 1, end: 2 });
    let finding = |title: &str, body: &str, location| Finding {
        title: title.to_owned(),
        body: body.to_owned(),
        priority: super::priority_of(title),
        location,
        ..Finding::default()
    };
    let review = Review {
        explanation: "It — is so.\n\nReally.".to_owned(),
        findings: vec![
            finding("[P0] a — b", "one\n\n  two", place("C:\\x y.rs")),
            finding("no place — here", "", None),
        ],
        ..Review::default()
    };
    assert_eq!(Review::read_text(&review.text()), review);
    let bare = Review { explanation: "Fine.".to_owned(), ..Review::default() };
    assert_eq!(Review::read_text(&bare.text()), bare);
}
