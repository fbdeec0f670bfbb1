//! The same test on two backends: the real Codex, and the engine that speaks its protocol.

use bindery_testkit::backend::Server;

/// A command that prints `ran` and is asked about where nothing is trusted: Codex asks about every
/// one, the engine lets those pass that are known to be harmless.
pub(crate) fn asked_about() -> &'static str {
    match Server::current() {
        Server::Codex => "echo ran",
        Server::Engine => "env echo ran",
    }
}

pub(crate) use bindery_testkit::on_both;
