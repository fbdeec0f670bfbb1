//! Clients that are made from the API document by others' generators: each compiles, and runs a
//! whole turn with an approval and a tool of its own.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use bindery_testkit::api_tools::{Npm, Python, run};
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::Daemon;

const PATCH: &str = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";

/// A daemon whose turns change a file and ask for the weather.
fn daemon() -> Daemon {
    let weather = Step::call("weather", json!({ "city": "Rome" }), "w1");
    Daemon::new(vec![
        Reply::text("sunny then").when_output_of("w1"),
        Reply::new([weather]).when_output_of("p1"),
        Reply::new([Step::patch(PATCH, "p1")]),
    ])
}

/// A folder with the API document and the files of a client.
async fn folder(daemon: &Daemon, files: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    for file in files {
        std::fs::copy(source.join(file), folder.path().join(file)).unwrap();
    }
    let (status, document) = daemon.web.get("/v1/openapi.json").await;
    assert_eq!(status, 200);
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    (folder, file)
}

/// What every client must have seen.
fn check(daemon: &Daemon, said: &str) {
    let made = daemon.stage.codex.project().join("made.txt");
    let mut saw: Value = serde_json::from_str(said).unwrap();
    for path in saw["read"]["paths"].as_array_mut().unwrap() {
        let name = Path::new(path.as_str().unwrap()).file_name().unwrap().to_owned();
        *path = json!(name.to_str().unwrap());
    }
    assert_eq!(
        saw,
        json!({
            "asked": ["fileChange", "toolCall"],
            "text": "sunny then",
            "state": "completed",
            "read": { "state": "completed", "text": "sunny then", "paths": ["made.txt"] },
            "problem": "invalid",
        })
    );
    assert_eq!(std::fs::read_to_string(made).unwrap(), "made\n");
}

#[tokio::test]
async fn a_client_of_typescript_compiles_strictly_and_runs_a_turn() {
    let Some(npm) = Npm::find() else { return };
    let daemon = daemon();
    let (folder, document) = folder(&daemon, &["api.ts"]).await;
    let folder = folder.path();
    std::os::unix::fs::symlink(&npm.packages, folder.join("node_modules")).unwrap();
    let mut generator = npm.command(Path::new("openapi-typescript/bin/cli.js"));
    run(generator.arg(&document).arg("-o").arg(folder.join("schema.d.ts")));
    let options = json!({ "compilerOptions": {
        "strict": true, "noEmitOnError": true, "target": "es2022", "module": "esnext",
        "moduleResolution": "bundler", "types": [],
        "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
    }, "files": ["api.ts"] });
    std::fs::write(folder.join("tsconfig.json"), options.to_string()).unwrap();
    run(npm.command(Path::new("typescript/bin/tsc")).arg("-p").arg(folder));
    std::fs::write(folder.join("package.json"), "{\"type\": \"module\"}").unwrap();
    let mut client = npm.command(&folder.join("api.js"));
    client.env("BASE", format!("http://{}", daemon.web.address)).env("TOKEN", &daemon.web.token);
    check(&daemon, &run(&mut client).0);
}

#[tokio::test]
async fn a_client_of_python_is_whole_and_runs_a_turn() {
    let Some(python) = Python::find() else { return };
    let daemon = daemon();
    let (folder, document) = folder(&daemon, &["api.py", "api.yml"]).await;
    let folder = folder.path();
    let made = folder.join("client");
    let mut generator = python.command(folder);
    generator.args(["-m", "openapi_python_client", "generate", "--fail-on-warning", "--path"]);
    generator.arg(&document).arg("--config").arg(folder.join("api.yml"));
    run(generator.arg("--output-path").arg(&made));
    let mut client = python.command(&made);
    client.env("BASE", format!("http://{}", daemon.web.address)).env("TOKEN", &daemon.web.token);
    check(&daemon, &run(client.arg(folder.join("api.py"))).0);
}
