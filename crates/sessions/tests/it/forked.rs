//! What we do with sessions, seen by the real Codex: forks, archive, names, compactions, injected
//! items.

use bindery_sessions::find;
use bindery_sessions::write::marks;
use bindery_sessions::write::{
    self, Clock, ForkPoint, Format, Meta, Record, Recorder, archive, rename, unarchive,
};
use bindery_testkit::codex::RealCodex;
use serde_json::{Value, json};

use crate::corpus;
use crate::resumed::{app_server, difference, load, resumed_input};
use crate::written::{Writer, check, message, meta, stage};

/// A session of three turns, and its turns' ids.
fn three_turns(codex: &RealCodex, format: Format) -> (String, Vec<String>) {
    let meta = meta(codex, format);
    let recorder = Recorder::create(&codex.home(), &meta, Clock::system()).unwrap();
    let mut writer = Writer::new(recorder);
    let mut turns = Vec::new();
    for text in ["one", "two", "three"] {
        turns.push(writer.begin(&codex.project(), text));
        writer.end(&format!("answer to {text}"));
    }
    (meta.id, turns)
}

fn fork(codex: &RealCodex, thread: &str, point: &ForkPoint) -> Recorder {
    let roots = [codex.home()];
    let source = find::resolve(thread, &roots).unwrap();
    let files = find::files(&roots).unwrap();
    let meta = meta(codex, Format::Paginated);
    write::fork(&codex.home(), &source, &files, point, &meta, Clock::system()).unwrap()
}

fn said(history: &[Value]) -> Vec<&str> {
    let own = history.iter().filter(|item| item["role"] != "developer");
    let texts = own.map(|item| item["content"][0]["text"].as_str().unwrap_or_default());
    texts.filter(|text| !text.starts_with('<') && !text.starts_with('#')).collect()
}

#[tokio::test]
async fn codex_resumes_our_forks() {
    for format in [Format::Paginated, Format::Legacy] {
        let (model, codex) = stage();
        let (thread, turns) = three_turns(&codex, format);
        let points = [
            (ForkPoint::Before(turns[1].clone()), vec!["one", "answer to one"]),
            (
                ForkPoint::After(turns[1].clone()),
                vec!["one", "answer to one", "two", "answer to two"],
            ),
        ];
        for (point, want) in points {
            let mut writer = Writer::new(fork(&codex, &thread, &point));
            writer.begin(&codex.project(), "other");
            writer.end("way");
            let child = writer.recorder.thread().to_owned();
            drop(writer);
            let ours = load(&codex.home(), &child);
            assert_eq!(ours.meta["forked_from_id"], thread.as_str());
            assert_eq!(said(&ours.history), [&want[..], &["other", "way"]].concat());
            assert_eq!(ours.turns.len(), want.len() / 2 + 1);
            let input = resumed_input(&codex, &model, &child).await;
            assert_eq!(difference(&ours, &input), None, "{point:?}");
            // A fork of the fork, cut in what it inherits.
            let point = ForkPoint::After(turns[0].clone());
            let grandchild = fork(&codex, &child, &point).thread().to_owned();
            let ours = load(&codex.home(), &grandchild);
            assert_eq!(said(&ours.history), ["one", "answer to one"]);
            let input = resumed_input(&codex, &model, &grandchild).await;
            assert_eq!(difference(&ours, &input), None, "{point:?}");
        }
        check(&codex.home());
    }
}

#[tokio::test]
async fn codex_resumes_our_fork_of_a_session_it_cannot_read() {
    let (model, codex) = stage();
    let folder = codex.home().join("sessions/2025/08/01");
    std::fs::create_dir_all(&folder).unwrap();
    let old = "0b0e4bd2-8a5c-4b3f-9d5e-0d5f3c1f2a10";
    let path = folder.join(format!("rollout-2025-08-01T10-00-00-{old}.jsonl"));
    std::fs::write(&path, &corpus::file("0.25.0/shell.rollout.jsonl").bytes).unwrap();
    let before = load(&codex.home(), old);
    assert!(before.history.len() > 3 && before.turns.len() == 1);
    let child = fork(&codex, old, &ForkPoint::End).thread().to_owned();
    let ours = load(&codex.home(), &child);
    assert_eq!(ours.history, before.history);
    let input = resumed_input(&codex, &model, &child).await;
    assert_eq!(difference(&ours, &input), None);
}

#[tokio::test]
async fn codex_finds_what_we_shelve_and_name() {
    let (model, codex) = stage();
    let (thread, _) = three_turns(&codex, Format::Paginated);
    rename(&codex.home(), &thread, "Three turns", &Clock::system()).unwrap();
    // Codex knows it, in its database, too.
    resumed_input(&codex, &model, &thread).await;
    let path = find::resolve(&thread, &[codex.home()]).unwrap().path;
    let shelved = archive(&codex.home(), &path).unwrap();
    assert!(shelved.parent().unwrap().ends_with("archived_sessions") && !path.exists());
    // 0.166 takes names from its database alone; this one is for us and for older ones.
    let names = find::names(&[codex.home()]);
    assert_eq!(names.get(thread.as_str()).map(String::as_str), Some("Three turns"));
    let mut lines = app_server(&codex).await;
    let reply = lines.request("thread/list", json!({ "archived": true })).await;
    assert_eq!(reply["result"]["data"][0]["id"], thread.as_str(), "{reply}");
    lines.close().await;
    assert_eq!(unarchive(&codex.home(), &shelved).unwrap(), path);
    let mut lines = app_server(&codex).await;
    let reply = lines.request("thread/list", json!({})).await;
    assert_eq!(reply["result"]["data"][0]["id"], thread.as_str(), "{reply}");
    lines.close().await;
    assert_eq!(load(&codex.home(), &thread).turns.len(), 4);
    let input = resumed_input(&codex, &model, &thread).await;
    assert!(said(&input).contains(&"answer to three"));
}

#[tokio::test]
async fn codex_goes_on_from_our_compaction() {
    for format in [Format::Paginated, Format::Legacy] {
        let (model, codex) = stage();
        let (thread, _) = three_turns(&codex, format);
        let path = find::resolve(&thread, &[codex.home()]).unwrap().path;
        let recorder = Recorder::append(&codex.home(), &path, Clock::system()).unwrap();
        let mut writer = Writer::new(recorder);
        let left = [message("user", "one"), message("user", "Summary: three questions")];
        writer.begin(&codex.project(), "shorten");
        writer.record(Record::Compacted(json!({
            "message": "Summary: three questions",
            "replacement_history": left,
        })));
        writer.shown(&json!({ "type": "contextCompaction", "id": Meta::new_id() }));
        writer.end("shortened");
        writer.item(message("user", "injected between turns"));
        drop(writer);
        check(&codex.home());
        let ours = load(&codex.home(), &thread);
        let want = ["one", "Summary: three questions", "shortened", "injected between turns"];
        assert_eq!(said(&ours.history), want);
        assert_eq!((ours.compactions, ours.turns.len()), (1, 4));
        let input = resumed_input(&codex, &model, &thread).await;
        assert_eq!(difference(&ours, &input), None);
    }
}

#[tokio::test]
async fn what_we_take_back_codex_does_not_tell() {
    for format in [Format::Paginated, Format::Legacy] {
        let (model, codex) = stage();
        let (thread, _) = three_turns(&codex, format);
        let path = find::resolve(&thread, &[codex.home()]).unwrap().path;
        let mut recorder = Recorder::append(&codex.home(), &path, Clock::system()).unwrap();
        recorder.record(&marks::rolled_back(2)).unwrap();
        drop(recorder);
        let ours = load(&codex.home(), &thread);
        assert_eq!(said(&ours.history), ["one", "answer to one"]);
        assert_eq!(ours.turns.len(), 1);
        let input = resumed_input(&codex, &model, &thread).await;
        assert_eq!(difference(&ours, &input), None, "{format:?}");
        let mut lines = app_server(&codex).await;
        let params = json!({ "threadId": thread, "includeTurns": true });
        let reply = lines.request("thread/read", params).await;
        lines.close().await;
        // In numbered files 0.166 goes on showing what it does not tell any more.
        let shown = reply["result"]["thread"]["turns"].as_array().unwrap().len();
        assert_eq!(shown, if format == Format::Legacy { 2 } else { 4 });
    }
}
