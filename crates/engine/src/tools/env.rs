//! The environment of commands: the person's own, without what looks like a secret.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::exec::shell;

/// Names that hold these words are left out.
const SECRET: [&str; 5] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL"];

/// The environment of a command.
pub(super) fn of_commands() -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<_, _> =
        std::env::vars_os().filter(|(name, _)| !is_secret(&name.to_string_lossy())).collect();
    shell::add_to(&mut env);
    env
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_secrets_are_left_out() {
        assert!(is_secret("OPENAI_API_KEY") && is_secret("gh_token") && is_secret("PGPASSWORD"));
        assert!(!is_secret("PATH") && !is_secret("HOME"));
    }
}
