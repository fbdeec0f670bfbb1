//! Threads in several files: forks and reverts that point to what they begin with.

use std::path::{Path, PathBuf};

use bindery_core::item::Body;
use bindery_core::transcript::Transcript;
use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::find;
use bindery_sessions::normalise::Options;
use bindery_sessions::session::{chain, load_chain, of_bytes, tail};
use bindery_sessions::summary::{Relation, SessionStatus};

use crate::corpus;

/// Writes files of the corpus into a home, named as Codex names them.
pub(crate) fn home(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("sessions/2026/11/15");
    std::fs::create_dir_all(&day).unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names {
        let bytes = &corpus::file(name).bytes;
        let id = of_bytes(bytes, Options::default()).head.id.unwrap().to_string();
        let taken = paths.iter().any(|path: &PathBuf| path.to_string_lossy().contains(&id));
        let id = if taken {
            format!("{id}_01a1e0ff-0000-7000-8000-00000000000{}", paths.len())
        } else {
            id
        };
        let path = day.join(format!("rollout-2026-11-15T20-14-38-{id}.jsonl"));
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    (folder, paths)
}

fn said(transcript: &Transcript) -> Vec<String> {
    let items = transcript.turns.iter().flat_map(|turn| &turn.items);
    let words = items.filter_map(|item| match &item.body {
        Body::User { text, .. } | Body::Message { text, .. } => {
            let mark = item.origin.mark.as_ref().map(|m| format!(" ({m})")).unwrap_or_default();
            Some(format!("{text}{mark}"))
        }
        _ => None,
    });
    words.collect()
}

fn whole(root: &Path, path: &Path) -> Transcript {
    let files = find::files(&[root.to_owned()]).unwrap();
    let segments = chain(path, &files);
    load_chain(&segments, Options::default()).unwrap().transcript
}

#[test]
fn a_fork_begins_with_what_its_parent_said() {
    for version in ["0.153.0", "0.166.0", "0.169.0"] {
        let names = [
            format!("{version}/app_fork.rollout.jsonl"),
            format!("{version}/app_fork.1.rollout.jsonl"),
        ];
        let (folder, paths) = home(&[&names[0], &names[1]]);
        let tales: Vec<_> = paths.iter().map(|path| said(&whole(folder.path(), path))).collect();
        let fork = tales.iter().find(|tale| tale.iter().any(|text| text.ends_with("(inherited)")));
        let fork = fork.unwrap_or_else(|| panic!("{version}: {tales:?}"));
        assert!(fork.iter().any(|text| !text.ends_with("(inherited)")), "{fork:?}");
    }
}

#[test]
fn a_copied_fork_of_older_versions_names_its_parent() {
    let (folder, _) = home(&["0.98.0/app_fork.rollout.jsonl", "0.98.0/app_fork.1.rollout.jsonl"]);
    let list = Catalogue::default().list(&[folder.path().to_owned()], false).unwrap();
    let forks: Vec<_> = list.iter().filter(|s| s.relation == Some(Relation::Fork)).collect();
    assert_eq!(forks.len(), 1);
    let parent = list.iter().find(|s| s.id == forks[0].parent).unwrap();
    assert_eq!(parent.children, [forks[0].id.clone().unwrap()]);
}

#[test]
fn a_revert_is_the_newest_part_of_its_thread() {
    let (folder, _) =
        home(&["0.166.0/app_revert.rollout.jsonl", "0.166.0/app_revert.1.rollout.jsonl"]);
    let files = find::files(&[folder.path().to_owned()]).unwrap();
    assert_eq!((files.len(), find::current(files.clone()).len()), (2, 1));
    let current = &find::current(files)[0];
    let said = said(&whole(folder.path(), &current.path));
    assert!(!said.is_empty());
}

#[test]
fn a_rollback_marks_the_turns_it_takes_back() {
    for version in ["0.98.0", "0.110.0", "0.125.0", "0.144.4"] {
        let file = corpus::file(&format!("{version}/app_rollback.rollout.jsonl"));
        let session = of_bytes(&file.bytes, Options::default());
        let back = session.transcript.turns.iter().filter(|turn| turn.rolled_back).count();
        assert!(back > 0, "{version}");
    }
}

#[test]
fn summaries_tell_what_a_list_needs() {
    let names = [
        "0.20.0/shell.rollout.jsonl",
        "0.50.0/patch.rollout.jsonl",
        "0.98.0/failed.rollout.jsonl",
        "0.166.0/shell.rollout.jsonl",
        "0.166.0/failed.rollout.jsonl",
        "0.166.0/sigint.rollout.jsonl",
    ];
    let (folder, paths) = home(&names);
    let list = Catalogue::default().list(&[folder.path().to_owned()], false).unwrap();
    let of = |index: usize| list.iter().find(|s| s.path == paths[index]).unwrap();
    let shell = of(3);
    assert_eq!(shell.title.as_deref(), Some("Please do SCN:shell now"));
    assert_eq!(shell.cwd.as_deref(), Some("/home/dev/project"));
    assert_eq!(
        (shell.model.as_deref(), shell.version.as_deref()),
        (Some("gpt-5.4"), Some("0.166.0"))
    );
    assert_eq!((shell.turns, shell.messages, shell.tokens), (Some(1), Some(2), Some(240)));
    assert_eq!(shell.status, SessionStatus::Done);
    assert_eq!(of(0).title.as_deref(), Some("Please do SCN:shell now"));
    assert_eq!((of(0).turns, of(0).status), (Some(1), SessionStatus::Unknown));
    assert_eq!((of(1).tokens, of(1).version.as_deref()), (Some(720), Some("0.50.0")));
    assert_eq!((of(4).status, of(5).status), (SessionStatus::Failed, SessionStatus::Aborted));
}

#[test]
fn the_tail_is_the_end_of_the_whole() {
    for name in [
        "0.166.0/app_compact.rollout.jsonl",
        "0.98.0/resume.rollout.jsonl",
        "0.20.0/multi.rollout.jsonl",
    ] {
        let (_folder, paths) = home(&[name]);
        let whole = of_bytes(&corpus::file(name).bytes, Options::default()).transcript;
        let last = tail(&paths[0], 1, Options::default()).unwrap().transcript;
        assert_eq!(last.turns, whole.turns[whole.turns.len() - 1..], "{name}");
    }
}

#[test]
fn the_tail_of_a_long_turn_begins_with_its_prompt() {
    let pool = corpus::unpack("pool.zst");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let entry = pool.iter().max_by_key(|entry| entry.bytes.len()).unwrap();
    std::fs::write(&path, &entry.bytes).unwrap();
    let whole = of_bytes(&entry.bytes, Options::default()).transcript;
    let last = tail(&path, 1, Options::default()).unwrap().transcript;
    let count = |transcript: &Transcript| transcript.turns.last().unwrap().items.len();
    assert_eq!((last.turns.len(), count(&last)), (1, count(&whole)));
}

#[test]
fn a_packed_session_reads_like_any_other() {
    let name = "rollout-2026-11-15T20-20-10-01a1e0de-091e-7b70-a0eb-4db66fd8a949.jsonl.zst";
    let path = corpus::folder().join(name);
    let session = bindery_sessions::session::load(&path, Options::default()).unwrap();
    assert!(session.ledger.missing().is_empty() && !session.transcript.turns.is_empty());
    let list = Catalogue::default().list(&[path], false).unwrap();
    assert_eq!(list[0].id, session.head.id);
    assert!(list[0].title.is_some());
}
