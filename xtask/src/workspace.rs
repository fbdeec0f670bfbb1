//! Where the workspace is, and how its cargo is called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The root folder of the workspace this task was built in.
pub fn root() -> anyhow::Result<PathBuf> {
    // Cargo sets it at run time too; it wins, as the binary may have been built before a move.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = manifest.parent().context("xtask lies in no folder")?;
    ensure!(root.join("Cargo.lock").is_file(), "no workspace at `{}`", root.display());
    Ok(root.to_path_buf())
}

/// The cargo that started us, in the workspace's root.
pub fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        // What `cargo run` says about xtask itself makes some build scripts of others run again.
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// `cargo metadata` of our own crates, as JSON.
pub fn metadata(root: &Path) -> anyhow::Result<serde_json::Value> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start `cargo metadata`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` failed: {errors}");
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")
}
