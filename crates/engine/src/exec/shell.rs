//! What is run for a model's words: the shell, its arguments, and the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

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

/// The person's own shell, or the one every system has.
pub fn of_user(shell: Option<&OsStr>) -> OsString {
    let known = ["bash", "zsh", "sh"];
    let named = shell.filter(|path| {
        let path = Path::new(path);
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| known.contains(&name)) && path.is_file()
    });
    let default = || if Path::new("/bin/bash").is_file() { "/bin/bash" } else { "/bin/sh" };
    named.map_or_else(|| default().into(), OsStr::to_owned)
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
