//! Outside programs that the tests need, installed once under `target/bindery-test`.
//!
//! An install is made in a folder of its own and renamed into place when it is whole, with a
//! stamp that says what it is. So one that was interrupted, or is of another version, is done
//! again, and one that is there costs nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::step;

mod debian;

/// All outside programs the tests need. A new one is a new line here.
pub const NEEDS: &[Need] = &[
    crate::codex::NEED,
    crate::codex::OLDER,
    #[cfg(target_os = "linux")]
    crate::codex::BUBBLEWRAP,
    #[cfg(target_os = "linux")]
    crate::schemathesis::NEED,
    #[cfg(target_os = "linux")]
    crate::litellm::NEED,
    crate::npm::NODE,
    crate::clients::NEED,
    #[cfg(target_os = "linux")]
    crate::api_tools::PYTHON,
    #[cfg(target_os = "linux")]
    crate::api_tools::NPM,
];

const STAMP: &str = ".installed";

/// How long one install may take, over a slow line.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);

/// One outside program.
#[derive(Clone, Copy)]
pub struct Need {
    /// Its folder under `target/bindery-test`.
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// The environment variable that tells the tests its path; set beforehand, it is used as is.
    pub variable: &'static str,
    /// Whether its `--version` tells the version of what it comes from.
    pub tells_version: bool,
    /// Finds the program in the installed folder.
    pub find: fn(&Path) -> Option<PathBuf>,
}

/// Where a program comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// A package of the npm registry.
    Npm {
        /// Its name.
        package: &'static str,
        /// Its exact version, which the program's `--version` must show.
        version: &'static str,
    },
    /// Libraries of the npm registry, each as `name@version`, without what is optional to them.
    NpmLibraries(&'static [&'static str]),
    /// A package of the Python index that is a program, too.
    Pip {
        /// Its name, and that of its program.
        package: &'static str,
        /// The part of it that is not installed unless it is named.
        extra: Option<&'static str>,
        /// Its exact version, which the program's `--version` must show.
        version: &'static str,
    },
    /// Libraries of the Python index, each as `name==version`.
    PipLibraries(&'static [&'static str]),
    /// A package of Debian's, for the whole machine; any version will do.
    Debian {
        /// Its name.
        package: &'static str,
    },
}

/// What a variable says of a program that this machine cannot have; its test then says so, too.
pub const NONE: &str = "none";

impl Source {
    /// What a machine need not have, and what there is then no way to install this with.
    pub fn lacks(&self) -> Option<&'static str> {
        let python =
            matches!(self, Self::Pip { .. } | Self::PipLibraries(_)).then_some("python3")?;
        (!starts(python)).then_some(python)
    }
}

/// Says everything that must be there beforehand and is not, at once.
pub fn check_tools() -> anyhow::Result<()> {
    missing(&[
        ("git", "git", "install git (https://git-scm.com)"),
        ("node", "node", "install Node.js 20 or later (https://nodejs.org)"),
        ("npm", npm(), "install npm (it comes with Node.js from https://nodejs.org)"),
    ])
}

/// The path of the program, installing it if it is not there.
pub fn path(root: &Path, need: &Need) -> anyhow::Result<PathBuf> {
    let given = std::env::var_os(need.variable).map(PathBuf::from);
    let (label, version) = match need.source {
        Source::Npm { package, version } => (format!("{package}@{version}"), version),
        Source::NpmLibraries(packages) | Source::PipLibraries(packages) => (packages.join(" "), ""),
        Source::Pip { package, extra, version } => (pip_label(package, extra, version), version),
        Source::Debian { package } => {
            return given.map_or_else(|| debian::path(need, package), Ok);
        }
    };
    match given {
        Some(path) => chosen(need, path, version),
        None => installed(root, need, &label, version),
    }
}

/// From a registry, into a folder of its own.
fn installed(root: &Path, need: &Need, label: &str, version: &str) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/bindery-test").join(need.name);
    let install = Install { folder: &folder, label, find: need.find };
    if let Some(path) = install.installed() {
        return Ok(path);
    }
    check_tools()?;
    step::timed(&format!("install {label}"), || {
        let path = install.run(|partial| {
            match need.source {
                Source::Pip { package, .. } => {
                    pip_install(&[label], partial)?;
                    write_starter(package, partial)?;
                }
                Source::PipLibraries(packages) => pip_install(packages, partial)?,
                Source::NpmLibraries(packages) => {
                    npm_install(packages, "--omit=optional", partial)?;
                }
                Source::Npm { .. } | Source::Debian { .. } => {
                    npm_install(&[label], "--include=optional", partial)?;
                }
            }
            let program = (need.find)(partial).with_context(|| no_program(need, label))?;
            check(need, &program, version)
        })?;
        step::say(&format!("    {}", path.display()));
        Ok(path)
    })
}

fn no_program(need: &Need, label: &str) -> String {
    format!("`{label}` has no program for this platform\nhint: set {} to its path", need.variable)
}

/// A program chosen by the developer; a wrong version would fail tests in ways that mislead.
fn chosen(need: &Need, path: PathBuf, version: &str) -> anyhow::Result<PathBuf> {
    let checked = check(need, &path, version);
    checked.with_context(|| format!("cannot use {}={}", need.variable, path.display()))?;
    Ok(path)
}

fn check(need: &Need, program: &Path, version: &str) -> anyhow::Result<()> {
    if need.tells_version {
        return check_version(program, version);
    }
    ensure!(program.is_file(), "`{}` is no file", program.display());
    Ok(())
}

fn check_version(program: &Path, version: &str) -> anyhow::Result<()> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot start `{}`", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    let right = line.split_whitespace().any(|word| word.trim_start_matches('v') == version);
    ensure!(right, "`--version` says `{line}`, not {version}");
    Ok(())
}

fn missing(tools: &[(&str, &str, &str)]) -> anyhow::Result<()> {
    let absent = tools.iter().filter(|(_, program, _)| !starts(program));
    let lines: Vec<_> = absent.map(|(name, _, hint)| format!("\n  `{name}`: {hint}")).collect();
    if lines.is_empty() {
        return Ok(());
    }
    bail!("the tests need programs that are not on PATH:{}", lines.concat())
}

fn starts(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// npm's program.
pub fn npm() -> &'static str {
    if cfg!(windows) { "npm.cmd" } else { "npm" }
}

fn npm_install(labels: &[&str], optional: &str, folder: &Path) -> anyhow::Result<()> {
    let label = labels.join(" ");
    // Without a package.json of its own, npm may take a folder further up for the project.
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let mut command = Command::new(npm());
    command
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", optional])
        .args(["--no-save", "--loglevel=error", "--prefix"])
        .arg(folder)
        .args(labels);
    let status = step::supervise(command, Some(INSTALL_LIMIT), &mut |_| ());
    let status = status.with_context(|| format!("npm could not install `{label}`"))?;
    ensure!(
        status.success(),
        "npm could not install `{label}` ({status})\n\
         hint: is the registry of `npm config get registry` reachable?"
    );
    Ok(())
}

/// `package[extra]==version`.
fn pip_label(package: &str, extra: Option<&str>, version: &str) -> String {
    let extra = extra.map(|extra| format!("[{extra}]")).unwrap_or_default();
    format!("{package}{extra}=={version}")
}

/// The interpreter itself: what stands for it on `PATH` may do more than start it.
fn python() -> anyhow::Result<PathBuf> {
    let ask = ["-c", "import sys; print(sys.executable)"];
    let output = Command::new("python3").args(ask).output().context("cannot start `python3`")?;
    let path = String::from_utf8(output.stdout)?;
    ensure!(!path.trim().is_empty(), "`python3` does not say where it is");
    Ok(PathBuf::from(path.trim()))
}

/// Into a folder of modules and not a virtual environment, which could not be renamed into place.
fn pip_install(labels: &[&str], folder: &Path) -> anyhow::Result<()> {
    let label = labels.join(" ");
    let mut command = Command::new(python()?);
    command
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
        .args(["--no-compile", "--target"])
        .arg(folder.join("modules"))
        .args(labels);
    let status = step::supervise(command, Some(INSTALL_LIMIT), &mut |_| ());
    let status = status.with_context(|| format!("pip could not install `{label}`"))?;
    ensure!(
        status.success(),
        "pip could not install `{label}` ({status})\nhint: is the Python index reachable?"
    );
    Ok(())
}

/// A program that starts a package's own with its modules.
fn write_starter(package: &str, folder: &Path) -> anyhow::Result<()> {
    let program = folder.join(package);
    let script = format!(
        "#!/bin/sh\n\
         here=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n\
         PYTHONPATH=\"$here/modules\" exec python3 \"$here/modules/bin/{package}\" \"$@\"\n"
    );
    fs::write(&program, script)?;
    #[cfg(unix)]
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// An install that is there whole or not at all.
struct Install<'a> {
    folder: &'a Path,
    label: &'a str,
    find: fn(&Path) -> Option<PathBuf>,
}

impl Install<'_> {
    fn installed(&self) -> Option<PathBuf> {
        let stamp = fs::read_to_string(self.folder.join(STAMP)).ok()?;
        if stamp == self.label { (self.find)(self.folder) } else { None }
    }

    fn run(&self, fetch: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(self.folder.parent().context("an install folder has a parent")?)?;
        let lock = File::create(self.folder.with_extension("lock"))?;
        lock.lock().context("cannot lock the install folder")?;
        // Another run may have made it while we waited for the lock.
        if let Some(path) = self.installed() {
            return Ok(path);
        }
        let partial = self.folder.with_extension("partial");
        remove(&partial)?;
        fs::create_dir(&partial)?;
        fetch(&partial)?;
        fs::write(partial.join(STAMP), self.label)?;
        remove(self.folder)?;
        fs::rename(&partial, self.folder)?;
        self.installed().context("the install lost its program")
    }
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(folder: &Path) -> Option<PathBuf> {
        let path = folder.join("program");
        path.is_file().then_some(path)
    }

    fn fetch(text: &'static str) -> impl FnOnce(&Path) -> anyhow::Result<()> {
        move |folder| Ok(fs::write(folder.join("program"), text)?)
    }

    #[test]
    fn installs_once_per_label() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("below/thing");
        let one = Install { folder: &folder, label: "thing@1", find };
        assert_eq!(one.installed(), None);
        let path = one.run(fetch("one")).unwrap();
        assert_eq!(one.installed(), Some(path.clone()));
        one.run(|_| bail!("must not be fetched again")).unwrap();

        let two = Install { label: "thing@2", ..one };
        assert_eq!(two.installed(), None);
        two.run(fetch("two")).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "two");
    }

    #[test]
    fn an_interrupted_install_is_redone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("thing");
        let install = Install { folder: &folder, label: "thing@1", find };
        let broken = install.run(|partial| {
            fs::write(partial.join("half"), "")?;
            bail!("the network went away")
        });
        assert_eq!(broken.unwrap_err().to_string(), "the network went away");
        assert_eq!(install.installed(), None);
        install.run(fetch("whole")).unwrap();
        assert!(!folder.join("half").exists());
    }

    #[test]
    fn a_lost_program_is_installed_again() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("thing");
        let install = Install { folder: &folder, label: "thing@1", find };
        let path = install.run(fetch("one")).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(install.installed(), None);
        install.run(fetch("one")).unwrap();
        assert_eq!(install.installed(), Some(path));
    }

    #[test]
    fn a_package_is_asked_for_with_its_extra() {
        assert_eq!(pip_label("thing", None, "1.2"), "thing==1.2");
        assert_eq!(pip_label("thing", Some("proxy"), "1.2"), "thing[proxy]==1.2");
    }

    #[test]
    fn all_missing_tools_are_named_at_once() {
        let tools = [("one", "no-such-one", "get one"), ("two", "no-such-two", "get two")];
        assert_eq!(
            missing(&tools).unwrap_err().to_string(),
            "the tests need programs that are not on PATH:\n  `one`: get one\n  `two`: get two"
        );
    }

    #[test]
    fn a_given_program_must_be_the_pinned_version() {
        let error = check_version(Path::new("git"), "0.0.1").unwrap_err().to_string();
        assert!(error.ends_with("not 0.0.1"), "{error}");
    }
}
