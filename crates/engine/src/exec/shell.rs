//! What is run for a model's words: the shell, its arguments, and the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Set in every command: plain output, no pager, one language.
const ADDITIONS: [(&str, &str); 13] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("LANG", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("COLORTERM", ""),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    // Scripts look for it; a command of ours should behave as one of Codex's.
    ("CODEX_CI", "1"),
    ("BINDERY_CI", "1"),
    // A question nobody can answer would hang until the time is up.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Shells that scripts are run in.
const NAMES: [&str; 3] = ["bash", "zsh", "sh"];

/// Where systems keep them. No search path is asked: a project can have a part in that.
const FOLDERS: [&str; 4] = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Where a system lists the shells of its users.
const LISTED: &str = "/etc/shells";
const USERS: &str = "/etc/passwd";

/// The person's own shell if it is a known one, or the one every system has.
pub fn of_user(shell: Option<&OsStr>) -> OsString {
    let named = shell.filter(|path| is_known(Path::new(path)));
    let default = || if Path::new("/bin/bash").is_file() { "/bin/bash" } else { "/bin/sh" };
    named.map_or_else(|| default().into(), OsStr::to_owned)
}

/// The shell that somebody asks for by its name or by its path; none if it is not a known one.
pub fn named(wish: &str) -> Option<PathBuf> {
    known().into_iter().find(|known| match wish.contains('/') {
        true => known.as_os_str() == wish,
        false => known.file_name() == Some(OsStr::new(wish)),
    })
}

/// Whether a path is that of a shell, where the system keeps its shells. A file elsewhere may have
/// the name of a shell and be anything.
pub fn is_known(path: &Path) -> bool {
    known().iter().any(|known| known.as_os_str() == path.as_os_str())
}

/// The shells that are there.
fn known() -> Vec<PathBuf> {
    let fixed = FOLDERS.iter().flat_map(|folder| NAMES.map(|name| Path::new(folder).join(name)));
    let listed = std::fs::read_to_string(LISTED).unwrap_or_default();
    let listed = listed.lines().map(PathBuf::from).collect::<Vec<_>>();
    let is_shell = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        path.is_absolute() && name.is_some_and(|name| NAMES.contains(&name)) && path.is_file()
    };
    fixed.chain(listed).chain(login_shell()).filter(is_shell).collect()
}

/// The shell that the system starts when this user logs in.
fn login_shell() -> Option<PathBuf> {
    let users = std::fs::read_to_string(USERS).ok()?;
    let id = rustix::process::getuid().as_raw().to_string();
    let mine = users.lines().find(|line| line.split(':').nth(2) == Some(&id))?;
    mine.split(':').nth(6).map(PathBuf::from)
}

/// The arguments that run a script in a shell.
pub fn argv(shell: &OsStr, login: bool, script: &str) -> Vec<OsString> {
    vec![shell.to_owned(), if login { "-lc" } else { "-c" }.into(), script.into()]
}

/// Adds what every command is told.
pub fn add_to(env: &mut BTreeMap<OsString, OsString>) {
    for (name, value) in ADDITIONS {
        if value.is_empty() {
            env.remove(OsStr::new(name));
        } else {
            env.insert(name.into(), value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shells_that_are_there_are_used() {
        assert_eq!(of_user(Some(OsStr::new("/bin/sh"))), "/bin/sh");
        let default = of_user(None);
        assert_eq!(of_user(Some(OsStr::new("/usr/bin/fish"))), default);
        assert_eq!(of_user(Some(OsStr::new("/no/such/bash"))), default);
    }

    #[test]
    fn a_file_that_only_has_the_name_of_a_shell_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("bash");
        std::fs::copy("/bin/sh", &copy).unwrap();
        assert!(copy.is_file() && !is_known(&copy));
        assert_eq!(of_user(Some(copy.as_os_str())), of_user(None));
        assert_eq!(named(&copy.to_string_lossy()), None);
        assert_eq!(named("sh"), Some("/bin/sh".into()));
        assert_eq!(named("/bin/sh"), Some("/bin/sh".into()));
        for wish in ["/bin/../bin/sh", "/bin/./sh", "./sh", "bin/sh", "python3", "", "/bin/env"] {
            assert_eq!(named(wish), None, "{wish}");
        }
    }

    #[test]
    fn a_script_is_one_argument() {
        assert_eq!(argv(OsStr::new("sh"), true, "a b"), ["sh", "-lc", "a b"]);
        assert_eq!(argv(OsStr::new("sh"), false, "a b"), ["sh", "-c", "a b"]);
    }

    #[test]
    fn additions_replace_what_was_there() {
        let mut env = BTreeMap::from([("TERM".into(), "xterm".into())]);
        env.insert("COLORTERM".into(), "truecolor".into());
        add_to(&mut env);
        assert_eq!(env.get(OsStr::new("TERM")), Some(&"dumb".into()));
        assert_eq!(env.get(OsStr::new("COLORTERM")), None);
    }

    #[test]
    fn a_command_is_told_to_be_plain() {
        let mut env = BTreeMap::new();
        add_to(&mut env);
        let said = |names: &[&str]| -> Vec<String> {
            let value = |name: &&str| env[OsStr::new(name)].to_string_lossy().into_owned();
            names.iter().map(value).collect()
        };
        assert_eq!(said(&["NO_COLOR", "TERM", "CODEX_CI"]), ["1", "dumb", "1"]);
        assert_eq!(said(&["LANG", "LC_CTYPE", "LC_ALL"]), ["C.UTF-8"; 3]);
        assert_eq!(said(&["PAGER", "GIT_PAGER", "GH_PAGER"]), ["cat"; 3]);
    }
}
