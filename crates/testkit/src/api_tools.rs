//! Programs that read the daemon's API document, as `cargo xtask test` installs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skipped::report_skipped;

/// Modules of Python: where they are, and how to start them.
pub struct Python {
    modules: PathBuf,
}

/// Packages of npm, and the Node.js that runs them.
pub struct Npm {
    /// Where the packages are.
    pub packages: PathBuf,
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

/// The folder that holds the package which a file belongs to.
fn folder(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(Path::parent);
    folder.expect("a file of a package is in its folder").to_owned()
}

impl Python {
    /// The modules that were installed.
    pub fn find() -> Option<Self> {
        named("BINDERY_TEST_API_PYTHON").map(|path| Self { modules: folder(&path) })
    }

    /// Python with the modules, and these besides.
    pub fn command(&self, more: &Path) -> Command {
        let mut command = Command::new("python3");
        let path = std::env::join_paths([self.modules.as_path(), more]);
        command.env("PYTHONPATH", path.expect("no path has a colon"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "*");
        command
    }
}

impl Npm {
    /// The packages that were installed.
    pub fn find() -> Option<Self> {
        let packages = folder(&named("BINDERY_TEST_API_NPM")?);
        Some(Self { packages, node: named("BINDERY_TEST_NODE")? })
    }

    /// Node.js with the program of a package, or a script of ours.
    pub fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.packages.join(script));
        command
    }
}

/// Runs it to its end, which must be a good one; what it said, and what it said beside that.
pub fn run(command: &mut Command) -> (String, String) {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, beside) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{said}\n{beside}");
    (said, beside)
}
