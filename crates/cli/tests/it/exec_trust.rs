//! `bindery exec --trust`: recorded once, never against what the settings say.
#![cfg(unix)]

use std::path::PathBuf;

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script};
use tempfile::TempDir;

use crate::stage::{Ran, Stage};

/// A project that nobody has decided about, outside of any repository: what lies above the folder
/// of temporary files is none of the test's business.
struct Undecided {
    stage: Stage,
    project: TempDir,
}

impl Undecided {
    fn new(answers: usize) -> Self {
        let script = Script::from(vec![Reply::text("done"); answers]);
        let stage = Stage::with(script, &Options::default());
        let is_free = |folder: &PathBuf| {
            let folder = folder.canonicalize();
            folder.is_ok_and(|folder| folder.ancestors().all(|one| !one.join(".git").exists()))
        };
        let candidates = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
        let above = candidates.into_iter().find(is_free).expect("a folder outside of repositories");
        Self { stage, project: tempfile::tempdir_in(above).unwrap() }
    }

    fn project(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    async fn run(&self, args: &[&str]) -> Ran {
        self.stage.run_in(&self.project(), args).await
    }

    fn settings(&self) -> PathBuf {
        self.stage.codex.user_home().join(".config/bindery/bindery.toml")
    }
}

#[tokio::test]
async fn trust_is_recorded_once_and_holds_afterwards() {
    let stage = Undecided::new(3);
    let refused = stage.run(&["exec", "go"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    std::fs::create_dir_all(stage.settings().parent().unwrap()).unwrap();
    std::fs::write(stage.settings(), "# mine\n[tools]\n").unwrap();
    let trusted = stage.run(&["exec", "--trust", "go"]).await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    assert!(trusted.err.contains("sandbox: workspace-write"), "{}", trusted.err);
    let text = std::fs::read_to_string(stage.settings()).unwrap();
    let project = stage.project();
    let entry = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", project.display());
    assert!(text.starts_with("# mine\n[tools]\n") && text.contains(&entry), "{text}");
    let again = stage.run(&["exec", "resume", "--last", "--trust", "go on"]).await;
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(std::fs::read_to_string(stage.settings()).unwrap(), text);
}

#[tokio::test]
async fn a_project_called_untrusted_stays_so() {
    let stage = Undecided::new(1);
    let project = stage.project();
    std::fs::create_dir_all(stage.settings().parent().unwrap()).unwrap();
    let said = format!("[projects.\"{}\"]\ntrust_level = \"untrusted\"\n", project.display());
    std::fs::write(stage.settings(), &said).unwrap();
    let ran = stage.run(&["exec", "--trust", "go"]).await;
    assert!(ran.err.contains("`--trust` changes nothing"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(stage.settings()).unwrap(), said);
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_left_alone() {
    let stage = Undecided::new(1);
    std::fs::create_dir_all(stage.settings().parent().unwrap()).unwrap();
    std::fs::write(stage.settings(), "projects = 5\n").unwrap();
    let ran = stage.run(&["exec", "--trust", "go"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(stage.settings()).unwrap(), "projects = 5\n");
}
