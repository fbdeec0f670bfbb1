//! The content of lines: whatever their length and whoever damaged them, their texts are kept.

use bindery_core::item::{Body, Status};
use bindery_sessions::normalise::Options;
use bindery_sessions::render::{Style, markdown, terminal};
use bindery_sessions::session::{Session, of_bytes};
use bindery_sessions::validate::{Kind, Report};
use serde_json::{Value, json};

use crate::law;

const HEAD: &str = r#"{"timestamp":"2026-11-15T20:14:38.000Z","ordinal":0,"type":"session_meta","payload":{"id":"01a1e0d8-fa58-7c30-8b28-2a498ba7d4be","cli_version":"0.166.0"}}"#;

fn line(ordinal: u64, kind: &str, payload: &Value, more: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-11-15T20:14:39.000Z\",\"ordinal\":{ordinal},\"type\":\"{kind}\",\"payload\":{payload}{more}}}"
    )
}

fn message(role: &str, content: Value) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

fn said(role: &str, text: &str) -> Value {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    message(role, json!([{ "type": kind, "text": text }]))
}

fn report(text: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, text).unwrap();
    let mut report = Report::default();
    report.check(&path).unwrap();
    report
}

fn pages(session: &Session) -> String {
    let mut out = Vec::new();
    for turn in &session.transcript.turns {
        terminal(&mut out, None, turn, Style::default()).unwrap();
        markdown(&mut out, 1, turn).unwrap();
    }
    String::from_utf8(out).unwrap()
}

/// Base64 of bytes that look random.
fn picture(length: usize) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut seed = 0x9e37_79b9_u64;
    let letters = (0..length).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(alphabet[(seed >> 58) as usize])
    });
    letters.collect()
}

#[test]
fn long_texts_are_kept_whole_and_only_payloads_are_cut_and_told() {
    let image = format!("data:image/png;base64,{}", picture(3 << 20));
    let question = "What is wrong in this picture?";
    let blocks = json!([
        { "type": "input_image", "image_url": image }, { "type": "input_text", "text": question },
    ]);
    let answers = [
        "é word ".repeat(300_000),
        "x".repeat(2_000_000),
        "line of a log\n".repeat(200_000),
        format!("{} and then {question}", picture(64)).repeat(20_000),
    ];
    let mut text = format!("{HEAD}\n{}\n", line(1, "response_item", &message("user", blocks), ""));
    for (answer, ordinal) in answers.iter().zip(2..) {
        text += &line(ordinal, "response_item", &said("assistant", answer), "");
        text.push('\n');
    }
    let call =
        json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c" });
    let output = json!({ "type": "function_call_output", "call_id": "c", "output": answers[2] });
    text += &format!(
        "{}\n{}\n",
        line(8, "response_item", &call, ""),
        line(9, "response_item", &output, "")
    );
    text += &line(10, "tomorrow", &json!({ "said": answers[0] }), "");
    text.push('\n');

    let session = of_bytes(text.as_bytes(), Options::default());
    assert_eq!(law::check(&session, 9), Ok(()));
    let items: Vec<_> = session.transcript.turns.iter().flat_map(|turn| &turn.items).collect();
    let Body::User { text: asked, attachments } = &items[0].body else { panic!("{:?}", items[0]) };
    assert_eq!((asked.as_str(), attachments.len()), (question, 1));
    let url = attachments[0]["url"].as_str().unwrap();
    assert!(url.len() < 20_000 && url.contains("bytes of base64 left out"), "{}", url.len());
    assert!(items[0].origin.left_out[0].contains("bytes of base64 in 1 value"));
    assert!(session.ledger.left_out(2)[0].contains("bytes of base64 in 1 value"));
    let texts: Vec<_> = (items.iter())
        .filter_map(|item| match &item.body {
            Body::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(texts.iter().eq(answers.iter()), "an answer is not whole");
    let whole = serde_json::to_string(&session.transcript).unwrap();
    assert_eq!(whole.matches("line of a log").count(), 400_000);
    assert_eq!(whole.matches("é word ").count(), 600_000);
    assert!(pages(&session).contains("not shown: 3129344 bytes of base64"));

    let report = report(&text);
    let found: Vec<_> = report.findings.iter().map(|f| (f.kind, f.line)).collect();
    assert_eq!(found, [(Kind::UnknownTag, 9), (Kind::CutPayload, 2)]);
    assert_eq!((report.payload_bytes, report.text_bytes), (3_129_344, 0));
}

#[test]
fn two_records_on_a_line_are_both_read_and_told() {
    for more in ["", r#","metadata":{"client_authored":true}"#] {
        for glue in ["", " ", "\t"] {
            let first = line(1, "response_item", &said("user", "the first question"), more);
            let second = line(2, "response_item", &said("assistant", "the second answer"), more);
            let third = line(
                3,
                "event_msg",
                &json!({ "type": "agent_message", "message": "the third word" }),
                "",
            );
            let text = format!("{HEAD}\n{first}{glue}{second}{glue}{third}\n");
            let session = of_bytes(text.as_bytes(), Options::default());
            let page = pages(&session);
            for words in ["the first question", "the second answer", "the third word"] {
                assert!(page.contains(words), "{words} {more} {glue:?}\n{page}");
            }
            assert_eq!(session.ledger.records(2), 3);
            assert_eq!(law::check(&session, 2), Ok(()));
            let report = report(&text);
            assert!(report.findings.iter().any(|f| f.kind == Kind::GluedLine && f.line == 2));
            assert!(!report.is_clean());
        }
    }
}

#[test]
fn damage_anywhere_in_a_line_is_seen() {
    let whole = line(
        1,
        "response_item",
        &said("user", "hello"),
        r#","metadata":{"client_authored":true,"retained_source":{"complete":true}}"#,
    );
    for at in 0..whole.len() - 1 {
        // A bracket, a quote or a colon less is no JSON any more.
        if !b"{}[]\":,".contains(&whole.as_bytes()[at]) {
            continue;
        }
        let mut bytes = whole.clone().into_bytes();
        bytes.remove(at);
        let text = format!("{HEAD}\n{}\n", String::from_utf8(bytes).unwrap());
        if serde_json::from_str::<Value>(text.lines().nth(1).unwrap()).is_ok() {
            continue;
        }
        let session = of_bytes(text.as_bytes(), Options::default());
        let items: Vec<_> = session.transcript.turns.iter().flat_map(|turn| &turn.items).collect();
        assert!(matches!(items[..], [item] if item.status == Status::Unknown), "{at}: {text}");
        assert!(!report(&text).is_clean(), "{at}: {text}");
    }
}

#[test]
fn blocks_and_roles_that_nobody_knows_are_shown() {
    let odd = |role: &str| {
        message(
            role,
            json!([
                { "type": "output_text", "text": "plain words" },
                { "type": "hologram", "text": "odd words", "beam": { "colour": "blue" } },
                { "type": "sketch", "strokes": ["odd strokes"] },
            ]),
        )
    };
    for role in ["user", "assistant", "oracle"] {
        let text = format!("{HEAD}\n{}\n", line(1, "response_item", &odd(role), ""));
        let session = of_bytes(text.as_bytes(), Options::default());
        let page = pages(&session);
        for words in ["plain words", "odd words", "blue", "odd strokes"] {
            assert!(page.contains(words), "{role} {words}\n{page}");
        }
        assert_eq!(law::check(&session, 2), Ok(()));
        let kinds: Vec<_> = report(&text).findings.iter().map(|f| f.kind).collect();
        assert!(kinds.contains(&Kind::UnknownWord), "{kinds:?}");
    }
    let alone = message("assistant", json!([{ "type": "sketch", "strokes": ["odd strokes"] }]));
    let text = format!("{HEAD}\n{}\n", line(1, "response_item", &alone, ""));
    let session = of_bytes(text.as_bytes(), Options::default());
    assert_eq!(law::check(&session, 2), Ok(()));
    assert!(pages(&session).contains("odd strokes"));
}
