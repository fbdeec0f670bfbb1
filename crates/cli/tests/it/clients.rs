//! Clients that are not ours, with `bindery` in the place of Codex: they must not notice.
#![cfg(unix)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A picture of one pixel.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 0x0D, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xDE, 0, 0, 0, 0x0C, 0x49, 0x44, 0x41, 0x54,
    0x08, 0xD7, 0x63, 0xF8, 0xCF, 0xC0, 0, 0, 3, 1, 1, 0, 0x18, 0xDD, 0x8D, 0xB0, 0, 0, 0, 0, 0x49,
    0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82,
];

/// What `cargo xtask test` installed: from its variable, else from a package of its folder.
fn installed(variable: &str, need: &str, file: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{variable} names no file: {}", path.display());
        return Some(path);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = workspace.join("target/bindery-test").join(need).join("node_modules");
    let named = packages.read_dir().into_iter().flatten().flatten();
    let found = named.map(|package| package.path().join(file)).find(|path| path.is_file());
    if found.is_none() {
        let said = format!("SKIPPED: no `{need}` for tests: run `cargo xtask test`\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    found
}

fn script() -> Script {
    let command = |user: &str, id: &str, script: &str| {
        let asks = Reply::new([Step::exec(script, id)]);
        let call = asks.when_user(user).when_after_tool(false).always();
        [call, Reply::text("Ran it.").when_user(user).when_after_tool(true).always()]
    };
    let refused = Reply::new([Step::status(400, "invalid_request_error", "bad thing")]);
    let mut replies = vec![
        Reply::text("One.").when_user("say one").always(),
        Reply::text("Two.").when_user("say two").always(),
        Reply::text("{\"answer\":42}").when_user("give a shape").always(),
        refused.when_user("be refused").always(),
        Reply::new([Step::Silence]).when_user("hang").always(),
    ];
    replies.extend(command("run a command", "c1", "touch made.txt && echo hi"));
    // Asked about, and nothing that a read-only sandbox would refuse once it is accepted.
    replies.extend(command("run a careful command", "c2", "env true && echo hi"));
    Script::new(replies)
}

/// What a script gave with this program; none where something is not installed.
fn gave(name: &str, program: Option<&Path>, options: &Options) -> Option<Value> {
    let node = installed("BINDERY_TEST_NODE", "node", "bin/node")?;
    let clients = installed("BINDERY_TEST_CLIENTS", "clients", "package.json")?;
    let stage = Stage::with(script(), options);
    let (folder, project) = (tempfile::tempdir().unwrap(), stage.codex.project());
    // Node looks for packages beside the script.
    let packages = clients.parent().and_then(Path::parent).unwrap();
    std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name);
    std::fs::copy(source, folder.path().join(name)).unwrap();
    let image = project.join("pixel.png");
    std::fs::write(&image, PIXEL).unwrap();
    let mut command = Command::new(node);
    command.arg(folder.path().join(name)).current_dir(&project);
    command.env_clear().envs(stage.codex.env()).stdin(Stdio::null());
    command.env("PROGRAM", program.unwrap_or(stage.codex.program()));
    command.env("PROJECT", &project).env("IMAGE", image);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} with {program:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(&project.display().to_string(), "$PROJECT");
    Some(serde_json::from_str(&text).unwrap())
}

/// The same script with Codex and with us.
fn both(name: &str, options: &Options) -> Option<(Value, Value)> {
    let ours = Path::new(env!("CARGO_BIN_EXE_bindery"));
    // Codex first: what it does not do, the script must not ask of us.
    let codex = gave(name, None, options)?;
    Some((gave(name, Some(ours), options)?, codex))
}

/// Ids are each one's own, and so is what it warns of before a turn.
fn settled(mut result: Value) -> Value {
    let events = result["streamed"].as_array_mut().unwrap();
    events.retain(|event| event["item"]["type"] != "error");
    for event in events.iter_mut() {
        for pointer in ["/thread_id", "/item/id"] {
            event.pointer_mut(pointer).map(Value::take);
        }
    }
    result
}

#[test]
fn the_codex_sdk() {
    let Some((ours, codex)) = both("sdk.mjs", &Options::unrestricted()) else { return };
    let (ours, codex) = (settled(ours), settled(codex));
    assert_eq!(ours["shaped"]["answer"]["answer"], 42);
    assert_eq!(ours, codex);
}

#[test]
fn the_provider_for_the_ai_sdk() {
    let Some((ours, mut codex)) = both("provider.mjs", &Options::default()) else { return };
    let ran = json!(["call exec", "result exec 0", "text Ran it.", "finish stop"]);
    for run in ["tools", "accepted"] {
        assert_eq!(ours[run], ran, "{run}");
        // Codex 0.166 now and then tells no exit code of a command that ends at once.
        codex[run] = ran.clone();
    }
    assert_eq!(ours["declined"][1], "result exec null");
    assert_eq!(ours["shaped"]["answer"], 42);
    assert_eq!(ours, codex);
}
