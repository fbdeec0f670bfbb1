//! The Codex that the tests run against, pinned here and nowhere else.

use std::path::{Path, PathBuf};

use crate::need::{Need, Source};

/// The pinned version of Codex.
pub const VERSION: &str = "0.169.0";

/// The older version that the client is tried with as well: people update late.
pub const OLDER_VERSION: &str = "0.166.0";

/// The pinned Codex as something the tests need.
pub const NEED: Need = Need {
    name: "codex",
    source: Source::Npm { package: "@openai/codex", version: VERSION },
    variable: "BINDERY_TEST_CODEX",
    tells_version: true,
    find: native_binary,
};

/// The older Codex.
pub const OLDER: Need = Need {
    name: "codex-older",
    source: Source::Npm { package: "@openai/codex", version: OLDER_VERSION },
    variable: "BINDERY_TEST_CODEX_OLDER",
    ..NEED
};

/// The bubblewrap that comes with it, so that the sandbox's tests have one on every Linux.
pub const BUBBLEWRAP: Need =
    Need { variable: "BINDERY_BWRAP", tells_version: false, find: bubblewrap, ..NEED };

/// Finds the native binary below an npm prefix.
///
/// The npm package holds only a JavaScript shim; an optional dependency named after the platform
/// (`codex-linux-x64`) holds `vendor/<target triple>/bin/codex`. npm installs just the one that
/// fits, so looking is enough and there is no table of platforms to keep.
fn native_binary(prefix: &Path) -> Option<PathBuf> {
    in_vendor(prefix, if cfg!(windows) { "bin/codex.exe" } else { "bin/codex" })
}

fn bubblewrap(prefix: &Path) -> Option<PathBuf> {
    in_vendor(prefix, "codex-resources/bwrap")
}

fn in_vendor(prefix: &Path, program: &str) -> Option<PathBuf> {
    folders(&prefix.join("node_modules/@openai"))
        .flat_map(|package| folders(&package.join("vendor")))
        .map(|platform| platform.join(program))
        .find(|path| path.is_file())
}

fn folders(parent: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_binary_is_found_beside_the_shim() {
        let prefix = tempfile::tempdir().unwrap();
        assert_eq!(native_binary(prefix.path()), None);
        let shim = prefix.path().join("node_modules/@openai/codex/bin");
        let bin = prefix.path().join("node_modules/@openai/codex-any/vendor/some-triple/bin");
        std::fs::create_dir_all(&shim).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(shim.join("codex"), "").unwrap();
        let program = bin.join(if cfg!(windows) { "codex.exe" } else { "codex" });
        std::fs::write(&program, "").unwrap();
        assert_eq!(native_binary(prefix.path()), Some(program));
    }
}
