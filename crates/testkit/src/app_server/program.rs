//! Where the scripted app-server's binary is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const NAME: &str = "scripted-app-server";

/// The path of the binary `scripted-app-server`.
///
/// Cargo does not build the binaries of a dependency, so a test of another crate has it built
/// here, once in a process, in the same target folder and profile as the test itself.
///
/// # Panics
/// If it cannot be built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = profile_folder();
        if let Some(cargo) = std::env::var_os("CARGO") {
            build(Path::new(&cargo), &folder);
        }
        let program = folder.join(format!("{NAME}{}", std::env::consts::EXE_SUFFIX));
        let how = "run `cargo build -p bindery-testkit`";
        assert!(program.is_file(), "no {}: {how}", program.display());
        program
    })
}

/// Tests and benches run from `<target>/<profile>/deps`, examples from beside it.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let folder = test.parent().expect("a file is in a folder");
    let nested = folder.ends_with("deps") || folder.ends_with("examples");
    let folder = if nested { folder.parent().unwrap_or(folder) } else { folder };
    folder.to_owned()
}

fn build(cargo: &Path, folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "bindery-testkit", "--bin", NAME])
        .args(["--profile", profile, "--target-dir"])
        .arg(folder.parent().expect("a profile is in a target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build {NAME}: {why}");
}
