//! The scenarios of the corpus, run anew with the pinned Codex: what it writes must be known, and
//! with `BINDERY_RECORD` set it is kept as `fixtures/sessions/<version>`.

mod app_server;

mod exec;

mod shorten;

use std::path::Path;

use bindery_core::item::Body;
use bindery_sessions::find;
use bindery_sessions::normalise::Options;
use bindery_sessions::session::of_bytes;
use bindery_sessions::validate::Report;
use bindery_testkit::codex::RealCodex;

use crate::{corpus, law};

/// What one scenario left behind.
struct Recording {
    scenario: &'static str,
    /// The session files of the run, in the order in which they were begun.
    rollouts: Vec<Vec<u8>>,
    /// `stdout` of `codex exec --json` or `appserver`, and what was printed there.
    printed: (&'static str, Vec<u8>),
}

/// Takes the session files out of a home and checks that nothing in them is unknown.
fn collect(
    scenario: &'static str,
    codex: &RealCodex,
    printed: (&'static str, Vec<u8>),
) -> Recording {
    let mut files = find::files(&[codex.home()]).unwrap();
    files.sort_by(|a, b| a.path.file_name().cmp(&b.path.file_name()));
    assert!(!files.is_empty(), "{scenario} wrote no session: {}", text(&printed.1));
    let rollouts: Vec<_> = files.iter().map(|file| std::fs::read(&file.path).unwrap()).collect();
    let recording = Recording { scenario, rollouts, printed };
    if std::env::var_os("BINDERY_RECORD").is_some() {
        keep(&recording, codex);
    }
    let mut report = Report::default();
    for file in &files {
        report.check(&file.path).unwrap();
    }
    assert_eq!(report.findings, [], "{scenario}");
    assert_eq!((report.known, report.lost), (report.lines, 0), "{scenario}");
    recording.rollouts.iter().for_each(|bytes| check_transcript(scenario, bytes));
    recording
}

fn check_transcript(scenario: &str, bytes: &[u8]) {
    let session = of_bytes(bytes, Options::default());
    assert_eq!(law::check(&session, law::lines(bytes)), Ok(()), "{scenario}");
    for item in session.transcript.turns.iter().flat_map(|turn| &turn.items) {
        let Body::Unknown { tag, why, .. } = &item.body else { continue };
        panic!("{scenario}: {tag}: {why}");
    }
}

/// Writes a recording as fixtures, with the folders of the run replaced and long texts shortened.
fn keep(recording: &Recording, codex: &RealCodex) {
    let version = text(&codex.command(&["--version"]).output().unwrap().stdout);
    let version = version.trim().rsplit(' ').next().unwrap().to_owned();
    let folder = corpus::folder().join(version);
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = recording.scenario;
    for (index, bytes) in recording.rollouts.iter().enumerate() {
        let number = if index == 0 { String::new() } else { format!(".{index}") };
        let path = folder.join(format!("{scenario}{number}.rollout.jsonl"));
        std::fs::write(path, shorten::lines(&neutral(bytes, codex))).unwrap();
    }
    let (kind, printed) = &recording.printed;
    let path = folder.join(format!("{scenario}.{kind}.jsonl"));
    std::fs::write(path, shorten::lines(&neutral(printed, codex))).unwrap();
}

/// The text without the folders of this run and the name of this machine.
fn neutral(bytes: &[u8], codex: &RealCodex) -> String {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = format!("\"serverName\":\"{}\"", hostname.trim());
    text(bytes)
        .replace(&path(&codex.project()), "/home/dev/project")
        .replace(&path(&codex.user_home()), "/home/dev")
        .replace(&host, "\"serverName\":\"vm\"")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
