//! The environment of commands: the person's own, as the policy has it.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::exec::shell;
use crate::sandbox::environment::EnvironmentPolicy;

/// The environment of a command.
pub(super) fn of_commands(policy: &EnvironmentPolicy) -> BTreeMap<OsString, OsString> {
    let mut env = policy.apply(std::env::vars_os());
    shell::add_to(&mut env);
    env
}
