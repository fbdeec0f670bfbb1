//! `shell_environment_policy`: which variables commands get.

use toml::Value;

use super::ConfigError;
use super::reader::Reader;
use crate::sandbox::environment::EnvironmentPolicy;

const KEY: &str = "shell_environment_policy";

/// What the table may say.
const KNOWN: [&str; 6] = [
    "inherit",
    "ignore_default_excludes",
    "exclude",
    "set",
    "include_only",
    "experimental_use_profile",
];

/// Takes the policy. What it says without effect is told.
pub(super) fn take(
    reader: &mut Reader<'_>,
    unused: &mut Vec<String>,
    notices: &mut Vec<String>,
) -> Result<EnvironmentPolicy, ConfigError> {
    let table = reader.table.get(KEY).and_then(Value::as_table);
    let strange = table.into_iter().flatten().filter(|(key, _)| !KNOWN.contains(&key.as_str()));
    unused.extend(strange.map(|(key, _)| format!("{KEY}.{key}")));
    let policy: EnvironmentPolicy = reader.take(KEY)?.unwrap_or_default();
    if policy.experimental_use_profile {
        let words = "no profile is read for commands: each runs in a login shell";
        notices.push(format!("`{KEY}.experimental_use_profile` has no effect: {words}"));
    }
    Ok(policy)
}
