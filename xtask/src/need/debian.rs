//! Programs that are packages of Debian's: one on PATH is used, a missing one installed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::bail;

use super::{INSTALL_LIMIT, Need};
use crate::step;

/// The program's path.
pub(super) fn path(need: &Need, package: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = on_path(need) {
        return Ok(path);
    }
    step::timed(&format!("install {package}"), || {
        // The list of packages may be old or empty; that is known only by trying.
        let _ = apt_get(&["install", "--yes", "--no-install-recommends", package])
            || apt_get(&["update"])
                && apt_get(&["install", "--yes", "--no-install-recommends", package]);
        match on_path(need) {
            Some(path) => Ok(path),
            None => bail!(
                "there is no `{package}` on PATH, and apt-get could not install it\n\
                 hint: install {package}, or set {} to its path",
                need.variable
            ),
        }
    })
}

fn on_path(need: &Need) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).find_map(|folder| (need.find)(&folder))
}

/// As root, or as whoever may become root without being asked.
fn apt_get(arguments: &[&str]) -> bool {
    let runs = |program: &str, before: &[&str]| {
        let mut command = Command::new(program);
        command.args(before).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        step::say(&format!("    $ {}", step::shown(&command)));
        match step::supervise(command, Some(INSTALL_LIMIT), &mut |_| ()) {
            Ok(status) => status.success(),
            Err(error) => {
                step::say(&format!("    {error:#}"));
                false
            }
        }
    };
    runs("apt-get", &[]) || runs("sudo", &["-n", "apt-get"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::need::Source;

    #[test]
    fn a_program_on_path_is_used_as_it_is() {
        let need = Need {
            name: "git",
            source: Source::Debian { package: "git" },
            variable: "NO_SUCH_VARIABLE",
            tells_version: false,
            find: |folder| Some(folder.join("git")).filter(|path| path.is_file()),
        };
        assert!(path(&need, "git").unwrap().is_file());
    }
}
