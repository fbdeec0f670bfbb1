//! LiteLLM's proxy, which stands between many people and their models; pinned here and nowhere
//! else.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

/// The pinned version.
pub const VERSION: &str = "1.100.5";

/// LiteLLM as something the tests need. Asked for its version it asks the network first.
pub const NEED: Need = Need {
    name: "litellm",
    source: Source::Pip { package: "litellm", extra: Some("proxy"), version: VERSION },
    variable: "BINDERY_TEST_LITELLM",
    tells_version: false,
    find: program,
};

fn program(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("litellm");
    path.is_file().then_some(path)
}
