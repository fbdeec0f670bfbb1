//! Where exports are written, and where they are not.

use std::fs;

use super::*;

/// A session in a folder that is no Codex home.
fn copied() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
    let home = home();
    let name = format!("sessions/2026/11/15/rollout-2026-11-15T20-14-38-{A}.jsonl");
    let bytes = fs::read(home.path().join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    fs::write(&path, &bytes).unwrap();
    (folder, path, bytes)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_export_never_replaces_the_session_it_reads() {
    let (folder, path, bytes) = copied();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::hard_link(&path, at("hard")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&path, at("link")).unwrap();
    let before = names(folder.path());
    for format in ["md", "json", "messages", "ndjson"] {
        for name in ["rollout.jsonl", "sub/../rollout.jsonl", "hard", "link"] {
            let target = at(name).to_str().unwrap().to_owned();
            let input = path.to_str().unwrap();
            let (_, err) = run(folder.path(), &["export", input, "-f", format, "-o", &target]);
            assert!(err.contains("is the session that is exported"), "{name}: {err}");
            assert!(err.contains("hint: "), "{name}: {err}");
            // Nor the other way round: read by another name, written by its own.
            let (_, err) = run(folder.path(), &["export", &target, "-f", format, "-o", input]);
            assert!(err.contains("is the session that is exported"), "{name}: {err}");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(names(folder.path()), before);
}

#[test]
fn an_export_never_writes_into_a_codex_home() {
    let home = home();
    let day = home.path().join("sessions/2026/11/15");
    let (other, path, _) = copied();
    let targets = [
        home.path().join("export.md"),
        home.path().join("sessions/export.md"),
        day.join("../../../../export.md"),
        day.join(format!("rollout-2026-11-15T20-14-38-{B}.jsonl")),
    ];
    let kept = fs::read(&targets[3]).unwrap();
    let before = names(&day);
    for target in &targets {
        let words = ["export", path.to_str().unwrap(), "-o", target.to_str().unwrap()];
        let (_, err) = run(other.path(), &words);
        assert!(err.contains("is in the Codex home"), "{target:?}: {err}");
    }
    #[cfg(unix)]
    {
        let link = other.path().join("into");
        std::os::unix::fs::symlink(&targets[3], &link).unwrap();
        let words = ["export", path.to_str().unwrap(), "-o", link.to_str().unwrap()];
        let (_, err) = run(other.path(), &words);
        assert!(err.contains("is in the Codex home"), "{err}");
    }
    assert_eq!((fs::read(&targets[3]).unwrap(), names(&day)), (kept, before));
    assert!(!targets[0].exists());
}

#[test]
fn an_export_replaces_its_target_whole_or_not_at_all() {
    let (folder, path, _) = copied();
    let target = folder.path().join("session.md");
    fs::write(&target, "before").unwrap();
    let mut mode = fs::metadata(&target).unwrap().permissions();
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
    fs::set_permissions(&target, mode).unwrap();
    let mode = fs::metadata(&target).unwrap().permissions();
    let words = ["export", path.to_str().unwrap(), "-o", target.to_str().unwrap()];
    let (out, err) = run(folder.path(), &words);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    assert!(fs::read_to_string(&target).unwrap().contains("One test fails."));
    assert_eq!(fs::metadata(&target).unwrap().permissions(), mode);
    assert_eq!(names(folder.path()), ["rollout.jsonl", "session.md"]);

    // One that cannot be finished leaves what was there.
    fs::write(&target, "before").unwrap();
    let broken = folder.path().join("broken.jsonl.zst");
    fs::write(&broken, "no zstd").unwrap();
    let words = ["export", broken.to_str().unwrap(), "-o", target.to_str().unwrap()];
    let (_, err) = run(folder.path(), &words);
    assert!(err.starts_with("error: "), "{err}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "before");
    assert_eq!(names(folder.path()).len(), 3);
    let missing = folder.path().join("no/such/folder.md");
    let (_, err) =
        run(folder.path(), &["export", path.to_str().unwrap(), "-o", missing.to_str().unwrap()]);
    assert!(err.contains("cannot write"), "{err}");
}
