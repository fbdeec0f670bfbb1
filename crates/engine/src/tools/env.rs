//! The environment of commands: the person's own, as the policy has it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::exec::shell;
use crate::sandbox::environment::EnvironmentPolicy;

/// Files and folders that programs obey before they do what they were started for.
const STARTUP_FILES: [&str; 5] =
    ["BASH_ENV", "ENV", "LD_PRELOAD", "RIPGREP_CONFIG_PATH", "ZDOTDIR"];

/// Lists of folders that programs and libraries are looked for in.
const SEARCH_PATHS: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

/// The environment of a command. What would let files in `writable` decide which programs run is
/// left out of it.
pub(super) fn of_commands(
    policy: &EnvironmentPolicy,
    writable: &[PathBuf],
) -> BTreeMap<OsString, OsString> {
    let mut env = policy.apply(std::env::vars_os());
    shell::add_to(&mut env);
    confine(&mut env, writable);
    env
}

fn confine(env: &mut BTreeMap<OsString, OsString>, writable: &[PathBuf]) {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let writable: Vec<PathBuf> = writable.iter().map(|folder| real(folder)).collect();
    for name in STARTUP_FILES {
        let file = env.get(OsStr::new(name)).map(PathBuf::from);
        let steered = |file: PathBuf| {
            file.is_relative() || writable.iter().any(|folder| real(&file).starts_with(folder))
        };
        if file.is_some_and(steered) {
            env.remove(OsStr::new(name));
        }
    }
    // A relative entry, of which an empty one is the shortest, means the folder of the command.
    for name in SEARCH_PATHS {
        let Some(path) = env.get_mut(OsStr::new(name)) else { continue };
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        if let Ok(absolute) = std::env::join_paths(folders) {
            *path = absolute;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_folder_of_the_project_is_run_by_itself() {
        let project = [PathBuf::from("/project")];
        let confined = |name: &str, value: &str| {
            let mut env = BTreeMap::from([(OsString::from(name), OsString::from(value))]);
            confine(&mut env, &project);
            env.remove(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(confined("PATH", ".:/bin::sub:/usr/bin:").as_deref(), Some("/bin:/usr/bin"));
        assert_eq!(confined("PATH", "").as_deref(), Some(""));
        assert_eq!(confined("LD_LIBRARY_PATH", ":/opt/lib").as_deref(), Some("/opt/lib"));
        for name in STARTUP_FILES {
            for value in ["x", "./x", "/project/x", ""] {
                assert_eq!(confined(name, value), None, "{name} {value}");
            }
            assert_eq!(confined(name, "/etc/x").as_deref(), Some("/etc/x"));
        }
    }
}
