//! Finds Codex, and behind npm's shim the native program.
//!
//! The shim is a Node script: starting it costs a Node process, on Windows it cannot be started by
//! name at all, and signals reach the wrong process.

mod shim;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Names a Codex to use instead of the one on `PATH`.
pub const VARIABLE: &str = "BINDERY_CODEX";

/// A Codex that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// What to start.
    pub path: PathBuf,
    /// How it was found.
    pub via: Via,
    /// The shim that led to `path`, if one did.
    pub shim: Option<PathBuf>,
    /// A folder with tools such as `rg` that the shim of older releases puts first on `PATH`.
    pub tools: Option<PathBuf>,
}

/// How a Codex was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The caller named it.
    Given,
    /// [`VARIABLE`] named it.
    Variable,
    /// It is on `PATH`.
    SearchPath,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Search {
    /// What the caller named.
    pub given: Option<PathBuf>,
    /// Value of [`VARIABLE`].
    pub variable: Option<OsString>,
    /// Value of `PATH`.
    pub path: Option<OsString>,
    /// What native programs are called here.
    pub platform: Platform,
}

/// An operating system and a processor, as npm names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The operating system.
    pub os: Os,
    /// The processor.
    pub arch: Arch,
}

/// Operating systems Codex is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux and Android.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

/// Processors Codex is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit Intel and AMD.
    X64,
    /// 64-bit ARM.
    Arm64,
}

/// Finds Codex: the one given, else the one [`VARIABLE`] names, else the one on `PATH`.
pub fn locate(given: Option<&Path>) -> Result<Located, Error> {
    let search = Search {
        given: given.map(Path::to_owned),
        variable: std::env::var_os(VARIABLE).filter(|value| !value.is_empty()),
        path: std::env::var_os("PATH"),
        platform: Platform::current(),
    };
    search.run()
}

impl Search {
    /// Looks, in this order and no further than the first that is named.
    pub fn run(&self) -> Result<Located, Error> {
        let (program, via) = match (&self.given, &self.variable) {
            (Some(given), _) => (given.clone(), Via::Given),
            (None, Some(variable)) => (variable.into(), Via::Variable),
            (None, None) => (PathBuf::from("codex"), Via::SearchPath),
        };
        match self.executable(&program) {
            Some(found) => Ok(self.platform.resolve(&found, via)),
            None => Err(Error::NotFound { looked: looked(&program, via) }),
        }
    }

    /// A bare name is looked for on `PATH`, as a shell would.
    fn executable(&self, program: &Path) -> Option<PathBuf> {
        if program.components().count() > 1 || program.is_absolute() {
            return self.with_extension(program);
        }
        let path = self.path.as_deref().unwrap_or_default();
        std::env::split_paths(path)
            .filter(|folder| !folder.as_os_str().is_empty())
            .find_map(|folder| self.with_extension(&folder.join(program)))
    }

    fn with_extension(&self, program: &Path) -> Option<PathBuf> {
        if self.platform.os != Os::Windows || program.extension().is_some() {
            return is_program(program).then(|| program.to_owned());
        }
        // `codex` without an ending is a script for other shells, but it leads to the program.
        ["exe", "cmd", "bat", "ps1", ""]
            .iter()
            .map(|ending| program.with_extension(ending))
            .find(|path| is_program(path))
    }
}

impl Platform {
    /// The platform this was compiled for; anything unknown is taken for Linux on x64.
    pub fn current() -> Self {
        let os = match std::env::consts::OS {
            "macos" => Os::Mac,
            "windows" => Os::Windows,
            _ => Os::Linux,
        };
        let arch = match std::env::consts::ARCH {
            "aarch64" => Arch::Arm64,
            _ => Arch::X64,
        };
        Self { os, arch }
    }

    /// Replaces a shim by the native program it would start; anything else stays as it is.
    pub fn resolve(self, program: &Path, via: Via) -> Located {
        match shim::native(self, program) {
            Some(native) => Located {
                path: native.path,
                via,
                shim: Some(program.to_owned()),
                tools: native.tools,
            },
            None => Located { path: program.to_owned(), via, shim: None, tools: None },
        }
    }

    /// The name of the npm package with the native program.
    pub fn package(self) -> String {
        let os = match self.os {
            Os::Linux => "linux",
            Os::Mac => "darwin",
            Os::Windows => "win32",
        };
        let arch = match self.arch {
            Arch::X64 => "x64",
            Arch::Arm64 => "arm64",
        };
        format!("codex-{os}-{arch}")
    }

    /// The target triple the native program was built for.
    pub fn triple(self) -> String {
        let arch = match self.arch {
            Arch::X64 => "x86_64",
            Arch::Arm64 => "aarch64",
        };
        let os = match self.os {
            Os::Linux => "unknown-linux-musl",
            Os::Mac => "apple-darwin",
            Os::Windows => "pc-windows-msvc",
        };
        format!("{arch}-{os}")
    }

    /// The file name of the native program.
    pub fn program(self) -> &'static OsStr {
        OsStr::new(if self.os == Os::Windows { "codex.exe" } else { "codex" })
    }
}

fn looked(program: &Path, via: Via) -> String {
    match via {
        Via::Given => format!("`{}`", program.display()),
        Via::Variable => format!("`{}`, which `{VARIABLE}` names", program.display()),
        Via::SearchPath => format!("`{VARIABLE}`, which is not set, and `PATH`"),
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests;
