//! Schemathesis, which tries the daemon's API document on the daemon; pinned here and nowhere else.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

/// The pinned version.
pub const VERSION: &str = "4.32.5";

/// Schemathesis as something the tests need.
pub const NEED: Need = Need {
    name: "schemathesis",
    source: Source::Pip { package: "schemathesis", extra: None, version: VERSION },
    variable: "BINDERY_TEST_SCHEMATHESIS",
    tells_version: true,
    find: program,
};

fn program(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("schemathesis");
    path.is_file().then_some(path)
}
