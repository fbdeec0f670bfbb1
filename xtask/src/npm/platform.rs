//! The package of this platform: the program, as npm brings it beside the provider.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::step;

/// The program's file.
pub(super) const PROGRAM: &str = if cfg!(windows) { "bindery.exe" } else { "bindery" };

/// Packs a program into `out`; gives the tarball. One that is there and newer is taken as it is.
pub(super) fn pack(root: &Path, program: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let script = root.join("packages/bin/pack.mjs");
    let made_of = [program, &script, &root.join("packages/ai-sdk/package.json")];
    if let Some(tarball) = tarball_in(out)
        && is_newer(&tarball, &made_of)
    {
        return Ok(tarball);
    }
    if out.is_dir() {
        fs::remove_dir_all(out)?;
    }
    let mut command = Command::new("node");
    command.arg(&script).args([program, out]);
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        command.arg("--libc=glibc");
    }
    step::command(
        "platform package",
        &mut command,
        "does `packages/bin/pack.mjs` know this platform?",
    )?;
    tarball_in(out).with_context(|| format!("no tarball in `{}`", out.display()))
}

/// The folders of PATH in which the program is not.
pub(super) fn path_without_program() -> anyhow::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| !folder.join(PROGRAM).exists()).collect();
    ensure!(!folders.is_empty(), "`{PROGRAM}` is in every folder of PATH");
    Ok(std::env::join_paths(folders)?)
}

fn tarball_in(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|ending| ending == "tgz"))
}

fn is_newer(file: &Path, than: &[&Path]) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(made) = changed(file) else { return false };
    than.iter().all(|source| changed(source).is_some_and(|changed| changed < made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_older_than_what_it_is_made_of_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let (program, tarball) = (place.path().join("bindery"), place.path().join("x.tgz"));
        fs::write(&program, "").unwrap();
        assert_eq!(tarball_in(place.path()), None);
        fs::write(&tarball, "").unwrap();
        assert_eq!(tarball_in(place.path()), Some(tarball.clone()));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        let set =
            |path: &Path| fs::File::options().write(true).open(path).unwrap().set_modified(later);
        set(&tarball).unwrap();
        assert!(is_newer(&tarball, &[&program]));
        set(&program).unwrap();
        assert!(!is_newer(&tarball, &[&program]));
        assert!(!is_newer(&tarball, &[&place.path().join("gone")]));
    }
}
