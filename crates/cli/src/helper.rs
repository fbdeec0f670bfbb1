//! The program itself as the helper that puts commands into a sandbox.

use std::path::PathBuf;
use std::sync::OnceLock;

static HELPER: OnceLock<PathBuf> = OnceLock::new();

/// Says that this process can be started again as a sandbox's helper. Only `main` can know: what
/// uses this library otherwise, a test for example, is a program that cannot.
pub fn offer(program: PathBuf) {
    // A second offer is the same program.
    let _ = HELPER.set(program);
}

/// The program, if it was offered.
pub(crate) fn program() -> Option<PathBuf> {
    HELPER.get().cloned()
}
