//! Writers that are killed, run out of disk, meet each other, or find a packed file.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bindery_sessions::find;
use bindery_sessions::line::Envelope;
use bindery_sessions::record::{Limits, Records, open};
use bindery_sessions::write::{Clock, Meta, Record, Recorder};
use serde_json::{Value, json};

use crate::corpus;
use crate::resumed::{app_server, difference, load, resumed_input};
use crate::written::{Writer, check, message, meta, stage};

/// Names the folder in which a test that was started as a process works.
const FOLDER: &str = "BINDERY_TEST_WRITER";

/// Starts a test of this file as a process of its own.
fn process(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The folder of a process that was started for it; none in a usual run.
fn assigned() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Reads what a process says up to a line that begins so.
fn until(out: &mut impl BufRead, word: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the process ended before `{word}`");
        if let Some(at) = line.find(word) {
            return line[at..].trim().to_owned();
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").unwrap();
    out.flush().unwrap();
}

fn session(home: &Path) -> PathBuf {
    find::files(&[home.to_owned()]).unwrap()[0].path.clone()
}

/// The payloads of the whole lines of a file, and how many are not.
fn payloads(path: &Path) -> (Vec<Value>, usize) {
    let mut records = Records::new(open(path).unwrap(), Limits::none());
    let (mut whole, mut broken) = (Vec::new(), 0);
    while let Some(record) = records.next().unwrap() {
        let line = Envelope::read(&record).ok();
        match line.and_then(|line| line.payload::<Value>().ok()) {
            Some((payload, _)) => whole.push(payload),
            None => broken += 1,
        }
    }
    (whole, broken)
}

fn numbered(number: usize) -> Record {
    Record::ResponseItem(message("user", &format!("{number} {}", "x".repeat(20_000))))
}

/// Writes until it is killed, and says what was recorded.
#[test]
fn process_that_writes() {
    let Some(home) = assigned() else { return };
    let meta = Meta::new(Meta::new_id(), &home);
    let mut recorder = Recorder::create(&home, &meta, Clock::system()).unwrap();
    for number in 0.. {
        recorder.record(&numbered(number)).unwrap();
        say(&format!("recorded {number}"));
    }
}

fn writing(home: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = process("faults::process_that_writes", home).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    until(&mut out, "recorded 0");
    (child, out)
}

#[test]
fn what_was_recorded_outlives_its_writer() {
    let home = tempfile::tempdir().unwrap();
    let (mut child, mut out) = writing(home.path());
    let path = session(home.path());
    // Another process cannot write what this one does.
    let error = Recorder::append(home.path(), &path, Clock::system()).unwrap_err();
    assert_eq!(error.code(), "held");
    let last = (0..40).map(|_| until(&mut out, "recorded ")).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let last: usize = last.trim_start_matches("recorded ").parse().unwrap();
    let (kept, broken) = payloads(&path);
    assert!(kept.len() > last + 1 && broken <= 1);
    for (number, payload) in kept[1..].iter().enumerate() {
        assert_eq!(Some(payload), Some(numbered(number).payload()));
    }
    // Its lock died with it.
    let mut recorder = Recorder::append(home.path(), &path, Clock::system()).unwrap();
    recorder.record(&numbered(kept.len() - 1)).unwrap();
    drop(recorder);
    let (after, _) = payloads(&path);
    assert_eq!(after.len(), kept.len() + 1);
}

#[tokio::test]
async fn a_session_torn_in_the_middle_of_a_line_goes_on() {
    let (model, codex) = stage();
    let meta = meta(&codex, bindery_sessions::write::Format::Paginated);
    let recorder = Recorder::create(&codex.home(), &meta, Clock::system()).unwrap();
    let mut writer = Writer::new(recorder);
    writer.begin(&codex.project(), "one");
    writer.end("first");
    writer.begin(&codex.project(), "two");
    writer.item(message("assistant", "never whole"));
    drop(writer);
    let path = session(&codex.home());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();

    let ours = load(&codex.home(), &meta.id);
    assert_eq!(ours.broken, 1);
    assert_eq!(ours.turns[1]["status"], "interrupted");
    let recorder = Recorder::append(&codex.home(), &path, Clock::system()).unwrap();
    let mut writer = Writer::new(recorder);
    writer.begin(&codex.project(), "three");
    writer.end("third");
    drop(writer);
    assert!(std::fs::read(&path).unwrap().starts_with(&bytes[..bytes.len() - 20]));
    let ours = load(&codex.home(), &meta.id);
    assert_eq!((ours.history.len(), ours.broken), (5, 1));
    let input = resumed_input(&codex, &model, &meta.id).await;
    assert_eq!(difference(&ours, &input), None);
}

#[tokio::test]
async fn codex_and_we_never_write_one_thread_together() {
    let (_model, codex) = stage();
    let meta = meta(&codex, bindery_sessions::write::Format::Paginated);
    let recorder = Recorder::create(&codex.home(), &meta, Clock::system()).unwrap();
    let mut writer = Writer::new(recorder);
    writer.begin(&codex.project(), "one");
    writer.end("first");
    let mut lines = app_server(&codex).await;
    let params = json!({ "threadId": meta.id });
    let reply = lines.request("thread/resume", params.clone()).await;
    let words = reply["error"]["message"].as_str().unwrap();
    assert!(words.contains("already has an active writer"), "{words}");
    drop(writer);
    let reply = lines.request("thread/resume", params).await;
    assert!(reply.get("error").is_none(), "{reply}");
    let path = session(&codex.home());
    let error = Recorder::append(&codex.home(), &path, Clock::system()).unwrap_err();
    assert_eq!(error.code(), "held");
    let error = bindery_sessions::write::archive(&codex.home(), &path).unwrap_err();
    assert_eq!(error.code(), "held");
    lines.close().await;
    Recorder::append(&codex.home(), &path, Clock::system()).unwrap();
    check(&codex.home());
}

/// Fills a small disk, makes room, goes on; then finds it read-only.
#[test]
fn process_that_fills_its_disk() {
    let Some(home) = assigned() else { return };
    let filler = home.join("filler");
    std::fs::write(&filler, vec![0; 64 << 10]).unwrap();
    let meta = Meta::new(Meta::new_id(), &home);
    let mut recorder = Recorder::create(&home, &meta, Clock::system()).unwrap();
    let mut recorded = 0;
    let error = loop {
        match recorder.record(&numbered(recorded)) {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "record");
    assert!(error.hint().unwrap().contains("make room"), "{error}");
    assert!(recorder.record(&numbered(recorded)).is_err());
    std::fs::remove_file(filler).unwrap();
    recorder.record(&numbered(recorded)).unwrap();
    recorder.sync().unwrap();
    let path = recorder.path().to_owned();
    drop(recorder);
    let (kept, broken) = payloads(&path);
    assert_eq!(kept.len(), recorded + 2);
    assert!(broken <= 1);
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(&home).status();
    assert!(remount.unwrap().success());
    let error = Recorder::append(&home, &path, Clock::system()).unwrap_err();
    assert!(error.hint().unwrap().contains("allow writing"), "{error}");
    let error = Recorder::create(&home, &meta, Clock::system()).unwrap_err();
    assert!(error.hint().unwrap().contains("allow writing"), "{error}");
    say("survived");
}

/// Needs the right to mount; where there is none, failing disks are tested byte by byte beside
/// the recorder alone.
#[test]
fn a_full_disk_and_a_read_only_one_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=256k none \"$0\" && exec \"$@\"";
    let within = |program: &std::ffi::OsStr| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", mount]).arg(folder.path()).arg(program);
        command
    };
    if !within("true".as_ref()).output().is_ok_and(|output| output.status.success()) {
        return;
    }
    let inner = process("faults::process_that_fills_its_disk", folder.path());
    let mut command = within(inner.get_program());
    command.args(inner.get_args()).env(FOLDER, folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("survived"), "{text}{errors}");
}

#[test]
fn a_home_that_is_no_folder_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("file");
    std::fs::write(&home, "").unwrap();
    let meta = Meta::new(Meta::new_id(), folder.path());
    let error = Recorder::create(&home, &meta, Clock::system()).unwrap_err();
    assert_eq!(error.code(), "record");
    assert!(error.to_string().starts_with("cannot write `"), "{error}");
}

#[test]
fn a_packed_session_is_unpacked_and_continued() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let name = "rollout-2026-11-15T20-20-10-01a1e0de-091e-7b70-a0eb-4db66fd8a949.jsonl";
    let packed = folder.join(format!("{name}.zst"));
    std::fs::copy(corpus::folder().join(format!("{name}.zst")), &packed).unwrap();
    let (before, _) = payloads(&packed);
    let thread = "01a1e0de-091e-7b70-a0eb-4db66fd8a949";
    let told = load(home.path(), thread).history;
    assert!(!told.is_empty());
    let mut recorder = Recorder::append(home.path(), &packed, Clock::system()).unwrap();
    recorder.record(&numbered(1)).unwrap();
    assert_eq!(recorder.path(), folder.join(name));
    assert!(!packed.exists());
    let (after, broken) = payloads(recorder.path());
    assert_eq!((&after[..before.len()], after.len(), broken), (&before[..], before.len() + 1, 0));
    assert_eq!(load(home.path(), thread).history.len(), told.len() + 1);
}
