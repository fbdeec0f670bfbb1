//! `bindery doctor` on Codexes that are well, ill, old and not there.

use bindery_testkit::app_server::{Script, Step, program};
use bindery_testkit::codex::Options;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Whether bubblewrap is installed differs from machine to machine; so does the size of a home.
fn settled(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains(" sandbox "));
    let lines = lines.filter(|line| !line.contains("`bubblewrap`"));
    let lines = lines.filter(|line| !line.contains(" sessions ") && !line.contains(" warning"));
    let lines = lines.filter(|line| *line != "all well");
    lines.map(|line| format!("{line}\n")).collect()
}

#[tokio::test]
async fn a_codex_that_is_well() {
    let stage = Stage::careful(vec![]);
    let ran = stage.run(&["doctor"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(settled(&ran.out), @"
    ✓ codex     0.169.0   [codex] (native)
    ✓ login     the configured provider needs none
    ✓ protocol  86 notifications, 11 questions, 19 items: all known
    ✓ engine    0.1.0   gpt-5.5 of Scripted
    ✓ settings  the engine has no use for `analytics`, `check_for_update_on_startup` of the configuration
    ");
}

#[tokio::test]
async fn as_json() {
    let ran = Stage::careful(vec![]).run(&["doctor", "--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["ok"], json!(true));
    let checks = report["checks"].as_array().unwrap();
    let told = checks.iter().map(|check| format!("{} {}", check["name"], check["status"]));
    let told: Vec<String> = told.filter(|told| !told.contains("sandbox")).collect();
    insta::assert_debug_snapshot!(told, @r#"
    [
        "\"codex\" \"ok\"",
        "\"login\" \"ok\"",
        "\"protocol\" \"ok\"",
        "\"sessions\" \"ok\"",
        "\"engine\" \"ok\"",
        "\"settings\" \"ok\"",
    ]
    "#);
}

#[tokio::test]
async fn none_at_all() {
    let stage = Stage::careful(vec![]);
    let ran = stage.run(&["doctor", "--codex", "/nowhere/codex"]).await;
    insta::assert_snapshot!(settled(&ran.to_string()), @"
    exit: 1
    stdout:
    ✗ codex     Codex not found: looked at `/nowhere/codex`
                hint: install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`
    ✓ engine    0.1.0   gpt-5.5 of Scripted
    ✓ settings  the engine has no use for `analytics`, `check_for_update_on_startup` of the configuration
    1 error

    stderr:
    ");
    let ran = stage.run(&["doctor", "--json", "--codex", "/nowhere/codex"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let mut report: Value = serde_json::from_str(&ran.out).unwrap();
    report["checks"].as_array_mut().unwrap().retain(|check| check["name"] != "sandbox");
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap(), @r#"
    {
      "checks": [
        {
          "hint": "install it with `npm install -g @openai/codex`, or name it in `BINDERY_CODEX`",
          "name": "codex",
          "status": "error",
          "text": "Codex not found: looked at `/nowhere/codex`"
        },
        {
          "name": "engine",
          "status": "ok",
          "text": "0.1.0   gpt-5.5 of Scripted"
        },
        {
          "name": "settings",
          "status": "ok",
          "text": "the engine has no use for `analytics`, `check_for_update_on_startup` of the configuration"
        }
      ],
      "ok": false
    }
    "#);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_sandbox_of_the_engine_is_named_with_or_without_codex() {
    let stage = Stage::careful(vec![]);
    for arguments in [&["doctor", "--json"][..], &["doctor", "--json", "--codex", "/nowhere"]] {
        let ran = stage.run(arguments).await;
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        let texts = report["checks"].as_array().unwrap().iter().map(|check| check["text"].as_str());
        let told: Vec<_> =
            texts.flatten().filter(|text| text.starts_with("of the engine: ")).collect();
        let [told] = told[..] else { panic!("{report}") };
        let known = ["bubblewrap at /", "namespaces", "landlock\n- ", "none works here\n- "];
        assert!(
            known.iter().any(|name| told["of the engine: ".len()..].starts_with(name)),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_configuration_with_a_word_that_is_not_known() {
    let options = Options { settings: "no_such_word = 1\n".to_owned(), ..Options::default() };
    let ran = Stage::with(vec![], &options).run(&["doctor"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(settled(&ran.out));
}

#[tokio::test]
async fn a_configuration_with_a_value_that_does_not_fit() {
    let settings = "model_reasoning_effort = 7\n".to_owned();
    let ran = Stage::with(vec![], &Options { settings, ..Options::default() });
    insta::assert_snapshot!(settled(&ran.run(&["doctor"]).await.to_string()), @"
    exit: 1
    stdout:
    ✓ codex     0.169.0   [codex] (native)
    ! login     not logged in
                hint: run `codex login`, or set `OPENAI_API_KEY` and a provider in the config
    ✗ config    Invalid configuration; using defaults.
                [codex home]/config.toml:5:26: invalid type: integer `7`, expected a string
                hint: correct the file: until then Codex runs no turn
    ✓ protocol  86 notifications, 11 questions, 19 items: all known
    ! engine    `model_reasoning_effort` in `[codex home]/config.toml`, line 5: invalid type: integer `7`, expected a string

    stderr:
    ");
}

#[tokio::test]
async fn a_configuration_that_is_not_toml() {
    let options = Options { settings: "broken = = 1\n".to_owned(), ..Options::default() };
    let stage = Stage::with(vec![], &options);
    insta::assert_snapshot!(settled(&stage.run(&["doctor"]).await.to_string()), @"
    exit: 1
    stdout:
    ✓ codex     0.169.0   [codex] (native)
    ! login     not logged in
                hint: run `codex login`, or set `OPENAI_API_KEY` and a provider in the config
    ✗ config    Invalid configuration; using defaults.
                [codex home]/config.toml:5:10: extra `=`, expected nothing
                hint: correct the file: until then Codex runs no turn
    ✓ protocol  86 notifications, 11 questions, 19 items: all known
    ! engine    `[codex home]/config.toml` is not TOML, line 5: extra `=`, expected nothing

    stderr:
    ");
    insta::assert_snapshot!(stage.run(&["run", "hi"]).await);
}

/// A program that speaks as an older Codex would.
#[cfg(unix)]
fn old_codex(stage: &Stage) -> String {
    use std::os::unix::fs::PermissionsExt;
    let script = stage.codex.project().join("script.json");
    let hello = json!({ "userAgent": "old/0.10.0 (Debian 12.0.0; x86_64) unknown (old; 0.1.0)" });
    Script::new([vec![Step::expect("initialize"), Step::reply(hello)]]).write(&script);
    let text = format!("#!/bin/sh\nexec {} {}\n", program().display(), script.display());
    let path = stage.file("old-codex", &text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[cfg(unix)]
#[tokio::test]
async fn one_that_is_too_old() {
    let stage = Stage::careful(vec![]);
    let old = old_codex(&stage);
    insta::assert_snapshot!(settled(&stage.run(&["doctor", "--codex", &old]).await.to_string()), @"
    exit: 1
    stdout:
    ✗ codex     [project]/old-codex: Codex 0.10.0 is too old; 0.100.0 or newer is needed
                hint: update it with `npm install -g @openai/codex@latest`
    ✓ engine    0.1.0   gpt-5.5 of Scripted
    ✓ settings  the engine has no use for `analytics`, `check_for_update_on_startup` of the configuration
    1 error

    stderr:
    ");
    insta::assert_snapshot!(stage.run(&["run", "--codex", &old, "hi"]).await, @"
    exit: 1
    stdout:

    stderr:
    error: Codex 0.10.0 is too old; 0.100.0 or newer is needed
      hint: update it with `npm install -g @openai/codex@latest`
    ");
}
