//! The scenarios on our own engine, and what no patch may ever do.

use std::fs;
use std::path::{Path, PathBuf};

use bindery_engine::diff::TurnDiff;
use bindery_engine::patch::heredoc::{BARE, Script};
use bindery_engine::patch::{Change, Denied, Plan, changes, report};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use crate::scenario::{Given, Scenario, anywhere, files};

/// What came of a patch.
pub(crate) struct Outcome {
    /// What the model is told, without exit code and time.
    pub(crate) text: String,
    /// Whether it was written.
    pub(crate) written: bool,
    /// What a client is shown, where it came so far.
    pub(crate) changes: Option<Vec<Change>>,
    /// What the turn has changed, as git shows it.
    pub(crate) diff: String,
}

/// Gives a scenario to our engine, as the loop would.
pub(crate) fn run(given: &Given, cwd: &Path) -> Outcome {
    match given {
        Given::Patch(text) => apply(text, cwd, cwd),
        Given::Script(script) => match Script::read(script) {
            Script::Patch { folder, text } => {
                apply(&text, &Script::cwd(folder.as_deref(), cwd), cwd)
            }
            Script::Bare => nothing(BARE),
            Script::Other => panic!("the script is not taken for a patch: {script}"),
        },
    }
}

fn nothing(text: &str) -> Outcome {
    Outcome { text: text.to_owned(), written: false, changes: None, diff: String::new() }
}

fn apply(text: &str, cwd: &Path, root: &Path) -> Outcome {
    let plan = match Plan::make(text, cwd) {
        Ok(plan) => plan,
        Err(refused) => return nothing(&refused.to_string()),
    };
    let outcome = plan.write(&|_| Ok(()));
    let mut diff = TurnDiff::new(root);
    if let Ok(done) = &outcome {
        diff.note(&plan, done);
    }
    let (text, written) = (report::told(&outcome), outcome.is_ok());
    Outcome { text, written, changes: Some(changes(&plan)), diff: diff.text() }
}

#[test]
fn every_scenario_comes_out_as_written_down() {
    let record = std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always");
    let mut wrong = Vec::new();
    for scenario in Scenario::all() {
        let (_folder, cwd) = scenario.stage();
        let outcome = run(&scenario.given(), &cwd);
        let after = files(&cwd);
        let error = (!outcome.written).then(|| anywhere(&outcome.text, &cwd));
        if record {
            scenario.record(error.as_deref(), &after);
        }
        if error != scenario.error() || after != scenario.expected() {
            wrong.push(format!("{}: {error:?}, {after:?}", scenario.name));
        }
    }
    assert!(wrong.is_empty(), "{} scenarios:\n{}", wrong.len(), wrong.join("\n"));
}

/// How many made-up patches are tried; more with `BINDERY_TEST_PATCHES`.
fn cases() -> u32 {
    let asked = std::env::var("BINDERY_TEST_PATCHES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(10_000)
}

/// Lines that patches and files are made of: few, so that they often fit.
const WORDS: &[&str] = &["a", "b", "  a", "b ", "", "“a”", "\"a\"", "ü—ü", "x\ty", "+", "-", "@@"];

fn line() -> impl Strategy<Value = String> {
    let words = prop::sample::select(WORDS).prop_map(str::to_owned);
    prop_oneof![8 => words, 1 => "\\PC{0,12}"]
}

fn piece() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(&["f", "g", "d/h", "n", "d", "f/x", "./f", "l", "bin"][..]);
    prop_oneof![
        2 => path().prop_map(|path| format!("*** Add File: {path}")),
        1 => path().prop_map(|path| format!("*** Delete File: {path}")),
        4 => path().prop_map(|path| format!("*** Update File: {path}\n@@")),
        1 => path().prop_map(|path| format!("*** Move to: {path}")),
        2 => Just("@@".to_owned()),
        2 => line().prop_map(|line| format!("@@ {line}")),
        8 => line().prop_map(|line| format!("+{line}")),
        6 => line().prop_map(|line| format!("-{line}")),
        4 => line().prop_map(|line| format!(" {line}")),
        1 => Just("*** End of File".to_owned()),
        1 => line(),
    ]
}

fn made_up() -> impl Strategy<Value = String> {
    let body = prop::collection::vec(piece(), 0..12).prop_map(|lines| lines.join("\n"));
    let whole = body.prop_map(|body| format!("*** Begin Patch\n{body}\n*** End Patch"));
    prop_oneof![6 => whole, 1 => "\\PC{0,80}"]
}

/// A patch of a scenario with one thing wrong in it.
fn mutated() -> impl Strategy<Value = String> {
    let patches: Vec<String> = Scenario::all()
        .iter()
        .filter_map(|scenario| match scenario.given() {
            Given::Patch(text) => Some(text),
            Given::Script(_) => None,
        })
        .collect();
    let line = prop::sample::Index::arbitrary;
    (prop::sample::select(patches), line(), line(), 0..5, piece()).prop_map(
        |(text, one, other, how, piece)| {
            let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            match how {
                0 => drop(lines.remove(one)),
                1 => lines.insert(one, piece),
                2 => lines.swap(one, other),
                3 => lines.truncate(one),
                _ => lines[one] = lines[one].chars().skip(1).collect(),
            }
            lines.join("\n")
        },
    )
}

fn playground(root: &Path) {
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(root.join("f"), "a\nb\n  a\n\nb \n").unwrap();
    fs::write(root.join("g"), "“a”\r\nx\ty\r\nb").unwrap();
    fs::write(root.join("d/h"), "").unwrap();
    fs::write(root.join("bin"), b"a\n\xff\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("f", root.join("l")).unwrap();
}

/// No patch panics, none that fails leaves a trace, and one that is written does what it said.
#[test]
fn no_made_up_patch_panics_or_is_written_by_half() {
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let spot = TempDir::with_prefix("bindery-patch-").unwrap();
    let root = spot.path().canonicalize().unwrap().join("p");
    playground(&root);
    let pristine = files(&root);
    let written = std::cell::Cell::new(0_u32);
    let strategy = prop_oneof![made_up(), mutated()];
    let tried = TestRunner::new(config).run(&strategy, |text| {
        let Ok(plan) = Plan::make(&text, &root) else {
            prop_assert_eq!(&files(&root), &pristine);
            return Ok(());
        };
        let shown = changes(&plan);
        prop_assert_eq!(shown.len(), plan.steps.len());
        let done = plan.write(&|place| inside(place, &root));
        match done {
            Ok(done) => prop_assert_eq!(done.steps, plan.steps.len()),
            Err(halted) => {
                prop_assert_eq!(
                    halted.done.steps,
                    0,
                    "{}: {}",
                    halted.path.display(),
                    halted.cause
                );
                prop_assert_eq!(&files(&root), &pristine);
                return Ok(());
            }
        }
        written.set(written.get() + 1);
        fs::remove_dir_all(&root).unwrap();
        playground(&root);
        Ok(())
    });
    tried.unwrap();
    assert!(written.get() * 20 > cases(), "too few patches fit: {}", written.get());
}

fn inside(place: &Path, root: &Path) -> Result<(), Denied> {
    let why = format!("`{}` is outside", place.display());
    if place.starts_with(root) { Ok(()) } else { Err(Denied { why }) }
}

fn stage(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = TempDir::with_prefix("bindery-patch-").unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (folder, root)
}

const BOTH: &str = "*** Begin Patch\n*** Add File: in/new\n+x\n*** Update File: in/f\n@@\n-a\n+b\n\
                    *** End Patch";

#[test]
fn a_file_that_changed_meanwhile_halts_the_patch_before_it_begins() {
    let (_folder, root) = stage(&[("in/f", "a\n")]);
    let plan = Plan::make(BOTH, &root).unwrap();
    fs::write(root.join("in/f"), "other\n").unwrap();
    let before = files(&root);
    let halted = plan.write(&|_| Ok(())).unwrap_err();
    assert_eq!((halted.path, halted.done.steps), (root.join("in/f"), 0));
    assert_eq!(files(&root), before);
}

#[test]
fn a_write_that_fails_tells_what_was_written_and_leaves_no_draft() {
    let (_folder, root) = stage(&[("a", "1\n"), ("c", "1\n")]);
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+2\n*** Add File: b\n+x\n\
                 *** Update File: c\n-1\n+2\n*** End Patch";
    let plan = Plan::make(patch, &root).unwrap();
    // The last question before the first write: here a folder comes to stand in the way.
    let confine = |place: &Path| {
        if place == root.join("c") {
            fs::create_dir(root.join("b")).unwrap();
        }
        Ok(())
    };
    let outcome = plan.write(&confine);
    let text = anywhere(&report::told(&outcome), &root);
    assert!(text.starts_with("Failed to write file {cwd}/b: "), "{text}");
    assert!(text.ends_with("\nThese files had been written before it:\nM a\n"), "{text}");
    let names: Vec<_> = files(&root).into_keys().collect();
    assert_eq!(names, [Path::new("a"), Path::new("c")]);
    assert_eq!(fs::read(root.join("c")).unwrap(), b"1\n");
}

#[cfg(unix)]
#[test]
fn a_folder_that_became_a_link_meanwhile_is_not_followed() {
    let (_folder, root) = stage(&[("in/f", "a\n"), ("out/f", "a\n")]);
    let plan = Plan::make(BOTH, &root).unwrap();
    fs::rename(root.join("in"), root.join("was")).unwrap();
    std::os::unix::fs::symlink("out", root.join("in")).unwrap();
    let before = files(&root);
    let halted = plan.write(&|_| Ok(())).unwrap_err();
    assert_eq!(halted.done.steps, 0);
    assert_eq!(files(&root), before);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_judged_by_where_it_leads() {
    let (_folder, root) = stage(&[("in/k", ""), ("out/f", "a\n")]);
    std::os::unix::fs::symlink("../out/f", root.join("in/f")).unwrap();
    std::os::unix::fs::symlink("../out/nothing", root.join("in/new")).unwrap();
    let project = root.join("in");
    let confine = |place: &Path| inside(place, &project);
    let before = files(&root);
    for patch in ["*** Add File: f\n+x", "*** Update File: f\n-a\n+b", "*** Add File: new\n+x"] {
        let patch = format!("*** Begin Patch\n{patch}\n*** End Patch");
        let plan = Plan::make(&patch, &project).unwrap();
        assert!(plan.permitted(&confine).is_err(), "{patch}");
        assert_eq!(plan.write(&confine).unwrap_err().done.steps, 0);
        assert_eq!(files(&root), before, "{patch}");
    }
    let plan = Plan::make("*** Begin Patch\n*** Delete File: f\n*** End Patch", &project).unwrap();
    plan.write(&confine).unwrap();
    assert!(root.join("out/f").exists() && root.join("in/f").symlink_metadata().is_err());
}

#[cfg(unix)]
#[test]
fn modes_are_kept_also_when_a_file_moves() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, root) = stage(&[("f", "a\n"), ("g", "a\n")]);
    for name in ["f", "g"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o750)).unwrap();
    }
    let patch = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** Update File: g\n\
                 *** Move to: h\n-a\n+b\n*** End Patch";
    Plan::make(patch, &root).unwrap().write(&|_| Ok(())).unwrap();
    for name in ["f", "h"] {
        let mode = root.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750, "{name}");
    }
    assert_eq!(files(&root).len(), 2);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let (_folder, root) = stage(&[]);
    let made = std::process::Command::new("mkfifo").arg(root.join("f")).status().unwrap();
    assert!(made.success());
    for patch in ["*** Add File: f\n+x", "*** Update File: f\n-a\n+b", "*** Delete File: f"] {
        let patch = format!("*** Begin Patch\n{patch}\n*** End Patch");
        let refused = Plan::make(&patch, &root).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("path `{}` is not a file", root.join("f").display())));
    }
}

#[test]
fn a_huge_file_is_refused_to_be_changed_yet_may_be_replaced() {
    let (_folder, root) = stage(&[]);
    let huge = fs::File::create(root.join("f")).unwrap();
    huge.set_len(bindery_engine::patch::MAX_BYTES + 1).unwrap();
    let update = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch";
    let refused = Plan::make(update, &root).unwrap_err().to_string();
    assert!(refused.contains("it is longer than"), "{refused}");
    let add = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch";
    Plan::make(add, &root).unwrap().write(&|_| Ok(())).unwrap();
    assert_eq!(fs::read(root.join("f")).unwrap(), b"x\n");
}
