//! Which program serves in a test: Codex, or the engine that speaks its protocol.
//!
//! A test is written once; [`Server::run`] says whose turn it is.

use std::path::{Path, PathBuf};

/// The environment variable that names the `bindery` binary to test against.
pub const ENGINE_VARIABLE: &str = "BINDERY_TEST_ENGINE";

/// Who serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// The installed Codex.
    #[default]
    Codex,
    /// The older Codex that is still supported.
    OlderCodex,
    /// `bindery app-server`.
    Engine,
}

tokio::task_local! {
    static SERVER: Server;
}

impl Server {
    /// Runs a test in which every [`RealCodex`](crate::codex::RealCodex) is this one.
    pub async fn run<F: Future>(self, test: F) -> F::Output {
        SERVER.scope(self, test).await
    }

    /// Who serves in the test that runs.
    pub fn current() -> Self {
        SERVER.try_with(|server| *server).unwrap_or_default()
    }

    /// Its program.
    ///
    /// # Panics
    /// If there is none.
    pub fn program(self) -> PathBuf {
        match self {
            Self::Codex => crate::codex::locate(),
            Self::OlderCodex => crate::codex::locate_older(),
            Self::Engine => engine(),
        }
    }
}

/// Finds the binary: the one the environment names, else the one that was built beside this test.
fn engine() -> PathBuf {
    if let Some(path) = std::env::var_os(ENGINE_VARIABLE) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{ENGINE_VARIABLE} names no file: {}", path.display());
        return path;
    }
    let test = std::env::current_exe().expect("a test has a program");
    // Tests are built into `deps`, programs one folder above.
    let folder = test.parent().and_then(Path::parent).expect("a target folder");
    let path = folder.join(format!("bindery{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "no engine at {}: run `cargo build -p bindery-cli`, or `cargo xtask test`, which does",
        path.display()
    );
    path
}

/// Makes each function a test of both servers.
#[macro_export]
macro_rules! on_both {
    ($($test:ident,)+) => {
        mod codex {
            $(
                #[tokio::test]
                async fn $test() {
                    $crate::backend::Server::Codex.run(super::$test()).await;
                }
            )+
        }

        mod engine {
            $(
                #[tokio::test]
                async fn $test() {
                    $crate::backend::Server::Engine.run(super::$test()).await;
                }
            )+
        }
    };
}

/// Makes each function a test of the older Codex.
#[macro_export]
macro_rules! on_older_codex {
    ($($test:ident,)+) => {
        mod older_codex {
            $(
                #[tokio::test]
                async fn $test() {
                    $crate::backend::Server::OlderCodex.run(super::$test()).await;
                }
            )+
        }
    };
}
