//! The report of drift, over the corpus and over lines that nobody knows yet.

use bindery_sessions::validate::{Kind, Report};

use crate::corpus;

fn report(files: &[(&str, &[u8])]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::default();
    for (name, bytes) in files {
        let path = folder.path().join(name.replace('/', "-"));
        std::fs::write(&path, bytes).unwrap();
        report.check(&path).unwrap();
    }
    report
}

#[test]
fn the_corpus_has_no_drift() {
    let files: Vec<(&str, &[u8])> =
        corpus::sessions().map(|entry| (entry.name.as_str(), entry.bytes.as_slice())).collect();
    let report = report(&files);
    assert_eq!(report.findings, []);
    assert_eq!((report.known, report.lost), (report.lines, 0));
    assert!(report.is_clean() && report.versions.len() >= 12);
}

#[test]
fn drift_is_told_by_version_with_its_first_place_and_no_content() {
    let file = corpus::file("0.166.0/shell.rollout.jsonl");
    let mut text = String::from_utf8(file.bytes.clone()).unwrap();
    let line = |kind: &str, payload: &str| {
        format!(
            "{{\"timestamp\":\"2026-11-15T20:14:39.000Z\",\"ordinal\":99,\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        )
    };
    text += &line("event_msg", r#"{"type":"thread_prediction","secret":"hunter2"}"#);
    text += &line("event_msg", r#"{"type":"thread_prediction","secret":"hunter2"}"#);
    text += &line("event_msg", r#"{"type":"agent_message","message":"hunter2","mood":"good"}"#);
    text += &line("response_item", r#"{"type":"function_call","name":"hunter2"}"#);
    text += "{\"timestamp\":\"hunter2\n{\"timestamp\":\"hun";
    let report = report(&[("rollout-a.jsonl", text.as_bytes())]);
    let found: Vec<_> = (report.findings.iter())
        .map(|f| (f.kind, f.what.as_str(), f.version.as_str(), f.count, f.line))
        .collect();
    #[rustfmt::skip]
    let want = [
        (Kind::UnknownTag,   "event_msg/thread_prediction",           "0.166.0", 2, 20),
        (Kind::MissingField, "response_item/function_call.call_id",   "0.166.0", 1, 23),
        (Kind::BrokenLine,   "torn line",                             "0.166.0", 1, 24),
        (Kind::PartialLine,  "partial line",                          "0.166.0", 1, 25),
        (Kind::UnknownField, "event_msg/agent_message.mood",          "0.166.0", 1, 22),
    ];
    assert_eq!(found, want);
    assert_eq!((report.lines, report.known, report.lost), (25, 20, 0));
    assert!(!report.is_clean());
    assert!(!serde_json::to_string(&report).unwrap().contains("hunter2"));
}
