//! The API document against the server, by Schemathesis: nothing it thinks of breaks the server.

use std::process::Stdio;

use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Script};
use bindery_testkit::skipped::report_skipped;
use tokio::process::Command;
use tokio::time::timeout;

use crate::stage::{HANG, Stage, on};

/// The environment variable that names the program.
const VARIABLE: &str = "BINDERY_TEST_SCHEMATHESIS";

/// What is looked at in each response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_fits_or_breaks_the_document_breaks_the_server() {
    let Some(program) = std::env::var_os(VARIABLE) else {
        panic!("{VARIABLE} is not set; run `cargo xtask test`, which installs it");
    };
    if program == "none" {
        report_skipped("there is no Python here to run Schemathesis with");
        return;
    }
    let model = Model::start(Script::always("ok"));
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let stage = Stage::with(on(codex.program(), codex.home()), codex.project()).await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command
        .args(["run", &format!("{}/v1/openapi.json", stage.url), "--checks", CHECKS])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "5"])
        .args(["--seed", "1", "--workers", "1", "--no-color", "--warnings", "off"])
        .args(["--generation-database", "none", "--request-timeout", "60"])
        .args(["-H", &format!("Authorization: Bearer {}", stage.token)])
        // It would keep what it finds beside us.
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(HANG, command.output()).await.expect("it takes too long").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("passed"), "{said}");
    stage.end().await;
}
