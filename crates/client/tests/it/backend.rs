//! The same test on two backends: the real Codex, and the engine that speaks its protocol.

use bindery_testkit::backend::Server;

/// A command that prints `ran` and is asked about where nothing is trusted: Codex asks about every
/// one, the engine lets those pass that are known to be harmless.
pub(crate) fn asked_about() -> &'static str {
    match Server::current() {
        Server::Codex | Server::OlderCodex => "echo ran",
        Server::Engine => "env echo ran",
    }
}

/// The version that the server in the test must say it is.
pub(crate) fn version() -> String {
    match Server::current() {
        server @ (Server::Codex | Server::OlderCodex) => {
            let said = std::process::Command::new(server.program()).arg("--version").output();
            let said = String::from_utf8(said.unwrap().stdout).unwrap();
            said.trim().rsplit(' ').next().unwrap().to_owned()
        }
        // Whose protocol and session files it speaks.
        Server::Engine => "0.166.0".to_owned(),
    }
}

pub(crate) use bindery_testkit::{on_both, on_older_codex};
