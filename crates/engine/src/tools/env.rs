//! The environment of commands: the person's own, without what looks like a secret.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::exec::shell;
use crate::sandbox::environment::EnvironmentPolicy;

/// The environment of a command.
pub(super) fn of_commands() -> BTreeMap<OsString, OsString> {
    let mut env = EnvironmentPolicy::default().apply(std::env::vars_os());
    shell::add_to(&mut env);
    env
}
