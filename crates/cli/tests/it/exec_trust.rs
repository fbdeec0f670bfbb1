//! `bindery exec --trust`: recorded once, never against what the settings say.
#![cfg(unix)]

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script};

use crate::stage::Stage;

/// A project outside any repository that nobody has decided about.
fn undecided(answers: usize) -> Stage {
    let script = Script::from(vec![Reply::text("done"); answers]);
    let stage = Stage::with(script, &Options { trusted: false, ..Options::default() });
    std::fs::remove_dir_all(stage.codex.project().join(".git")).unwrap();
    let config = stage.codex.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("trust_level = \"untrusted\"", "")).unwrap();
    stage
}

fn settings(stage: &Stage) -> std::path::PathBuf {
    stage.codex.user_home().join(".config/bindery/bindery.toml")
}

#[tokio::test]
async fn trust_is_recorded_once_and_holds_afterwards() {
    let stage = undecided(3);
    let refused = stage.run(&["exec", "go"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    std::fs::create_dir_all(settings(&stage).parent().unwrap()).unwrap();
    std::fs::write(settings(&stage), "# mine\n[tools]\n").unwrap();
    let trusted = stage.run(&["exec", "--trust", "go"]).await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    assert!(trusted.err.contains("sandbox: workspace-write"), "{}", trusted.err);
    let text = std::fs::read_to_string(settings(&stage)).unwrap();
    let project = stage.codex.project();
    let entry = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", project.display());
    assert!(text.starts_with("# mine\n[tools]\n") && text.contains(&entry), "{text}");
    let again = stage.run(&["exec", "resume", "--last", "--trust", "go on"]).await;
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(std::fs::read_to_string(settings(&stage)).unwrap(), text);
}

#[tokio::test]
async fn a_project_called_untrusted_stays_so() {
    let stage = undecided(1);
    let project = stage.codex.project();
    std::fs::create_dir_all(settings(&stage).parent().unwrap()).unwrap();
    let said = format!("[projects.\"{}\"]\ntrust_level = \"untrusted\"\n", project.display());
    std::fs::write(settings(&stage), &said).unwrap();
    let ran = stage.run(&["exec", "--trust", "go"]).await;
    assert!(ran.err.contains("`--trust` changes nothing"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(settings(&stage)).unwrap(), said);
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_left_alone() {
    let stage = undecided(1);
    std::fs::create_dir_all(settings(&stage).parent().unwrap()).unwrap();
    std::fs::write(settings(&stage), "projects = 5\n").unwrap();
    let ran = stage.run(&["exec", "--trust", "go"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(settings(&stage)).unwrap(), "projects = 5\n");
}
