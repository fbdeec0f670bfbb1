//! The diff of a whole turn: several patches, one after the other.

use std::fs;
use std::process::Command;

use bindery_engine::diff::TurnDiff;
use bindery_engine::patch::Plan;
use tempfile::TempDir;

struct Turn {
    folder: TempDir,
    diff: TurnDiff,
}

impl Turn {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::with_prefix("bindery-diff-").unwrap();
        for (path, text) in files {
            fs::write(folder.path().join(path), text).unwrap();
        }
        let diff = TurnDiff::new(folder.path());
        Self { folder, diff }
    }

    fn patch(&mut self, body: &str) -> &mut Self {
        let text = format!("*** Begin Patch\n{body}\n*** End Patch");
        let plan = Plan::make(&text, self.folder.path()).unwrap();
        let done = plan.write(&|_| Ok(())).unwrap();
        self.diff.note(&plan, &done);
        self
    }

    fn heads(&self) -> Vec<String> {
        let text = self.diff.text();
        let heads = text.lines().filter(|line| line.starts_with("diff --git "));
        heads.map(|line| line["diff --git ".len()..].to_owned()).collect()
    }
}

#[test]
fn changes_add_up() {
    let mut turn = Turn::new(&[("f", "a\nb\nc\n")]);
    turn.patch("*** Update File: f\n-a\n+A").patch("*** Update File: f\n-c\n+C");
    let want = [
        "diff --git a/f b/f",
        "index de980441c3ab03a8c07dda1ad27b8a11f39deb1e..24938456d42b76634c499d30bb6db8c59df815ec",
        "--- a/f",
        "+++ b/f",
        "@@ -1,3 +1,3 @@",
        "-a",
        "+A",
        " b",
        "-c",
        "+C",
    ];
    assert_eq!(turn.diff.text().lines().collect::<Vec<_>>(), want);
}

#[test]
fn what_is_undone_is_not_shown() {
    let mut turn = Turn::new(&[("f", "a\n"), ("g", "a\n")]);
    turn.patch("*** Update File: f\n-a\n+A\n*** Add File: n\n+x\n*** Delete File: g");
    assert_eq!(turn.heads(), ["a/f b/f", "a/g b/g", "a/n b/n"]);
    turn.patch("*** Update File: f\n-A\n+a\n*** Delete File: n\n*** Add File: g\n+a");
    assert_eq!(turn.diff.text(), "");
}

#[test]
fn a_file_that_moves_is_one_file() {
    let mut turn = Turn::new(&[("f", "a\nb\n")]);
    turn.patch("*** Update File: f\n*** Move to: g\n-a\n+A");
    turn.patch("*** Update File: g\n*** Move to: h\n-b\n+B");
    assert_eq!(turn.heads(), ["a/f b/h"]);
    turn.patch("*** Add File: g\n+x");
    assert_eq!(turn.heads(), ["a/f b/h", "a/g b/g"]);
    turn.patch("*** Add File: f\n+new");
    assert_eq!(turn.heads(), ["a/f b/f", "a/g b/g", "a/h b/h"]);
    turn.patch("*** Update File: f\n*** Move to: i\n-new\n+newer");
    assert_eq!(turn.heads(), ["a/f b/h", "a/g b/g", "a/i b/i"]);
}

#[test]
fn a_move_alone_is_a_rename() {
    let mut turn = Turn::new(&[("f", "a\n")]);
    turn.patch("*** Update File: f\n*** Move to: g\n a");
    let want = ["diff --git a/f b/g", "similarity index 100%", "rename from f", "rename to g"];
    assert_eq!(turn.diff.text().lines().collect::<Vec<_>>(), want);
}

#[test]
fn what_is_no_text_is_told_by_name() {
    let mut turn = Turn::new(&[]);
    fs::write(turn.folder.path().join("f"), b"\xff\xfe").unwrap();
    turn.patch("*** Add File: f\n+text");
    let want = ["diff --git a/f b/f", "Binary files a/f and b/f differ"];
    assert_eq!(turn.diff.text().lines().collect::<Vec<_>>(), want);
}

/// git itself takes the diff back, and finds the names of the contents right.
#[test]
fn git_understands_it() {
    let mut turn = Turn::new(&[("f", "a\r\nb\r\nc"), ("g", "x\n"), ("h", "1\n2\n3\n")]);
    let root = turn.folder.path().to_owned();
    let git = |args: &[&str]| {
        let quiet = ["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"];
        let output =
            Command::new("git").args(quiet).args(args).current_dir(&root).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    turn.patch("*** Update File: f\n-b\n+B\n*** Delete File: g\n*** Add File: empty");
    turn.patch("*** Add File: sub/n\n+one\n+two\n*** Update File: h\n*** Move to: i\n-2\n+two");
    let patch = TempDir::new().unwrap();
    let file = patch.path().join("turn.diff");
    fs::write(&file, turn.diff.text()).unwrap();
    git(&["apply", "--check", "--reverse", file.to_str().unwrap()]);
    git(&["apply", "--check", "--cached", file.to_str().unwrap()]);
}
