//! Clients of Codex that are not ours, which the tests run with our program in its place.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

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

fn packages(folder: &Path) -> Option<PathBuf> {
    let named = ["@openai/codex-sdk", "ai-sdk-provider-codex-cli", "ai"];
    let package = |name: &str| folder.join("node_modules").join(name).join("package.json");
    named.iter().map(|name| package(name)).all(|path| path.is_file()).then(|| package("ai"))
}
