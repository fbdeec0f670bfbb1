//! Programs that read the API document, as `cargo xtask test` installs them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use bindery_testkit::skipped::report_skipped;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::stage::HANG;

/// Modules of Python: where they are, and how to start them.
pub(crate) struct Python {
    modules: PathBuf,
}

/// Packages of npm, and the Node.js that runs them.
pub(crate) struct Npm {
    pub(crate) packages: PathBuf,
    node: PathBuf,
}

/// What a variable names; none if this machine cannot have it.
fn named(variable: &str) -> Option<PathBuf> {
    let Some(path) = std::env::var_os(variable) else {
        panic!("{variable} is not set; run `cargo xtask test`, which installs it");
    };
    if path == "none" {
        report_skipped("there is no Python here to read the API document with");
        return None;
    }
    Some(path.into())
}

fn folder(path: &Path) -> PathBuf {
    path.parent().and_then(Path::parent).unwrap().to_owned()
}

impl Python {
    pub(crate) fn find() -> Option<Self> {
        named("BINDERY_TEST_API_PYTHON").map(|path| Self { modules: folder(&path) })
    }

    /// Python with the modules, and these besides.
    pub(crate) fn command(&self, more: &Path) -> Command {
        let mut command = Command::new("python3");
        let path = std::env::join_paths([self.modules.as_path(), more]).unwrap();
        command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

impl Npm {
    pub(crate) fn find() -> Option<Self> {
        let packages = folder(&named("BINDERY_TEST_API_NPM")?);
        Some(Self { packages, node: named("BINDERY_TEST_NODE")? })
    }

    /// Node.js with the program of a package, or a script of ours.
    pub(crate) fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.packages.join(script));
        command
    }
}

/// Runs it to its end, which must be a good one; what it said, on both ways out.
pub(crate) async fn run(command: &mut Command) -> String {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(HANG, command.output()).await.expect("it takes too long").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", command.as_std());
    said
}

/// Writes JSON to a file.
pub(crate) fn write(path: &Path, value: &Value) {
    std::fs::write(path, serde_json::to_vec_pretty(value).unwrap()).unwrap();
}
