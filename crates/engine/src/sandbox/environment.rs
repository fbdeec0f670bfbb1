//! Which variables a command gets. What looks like a secret is kept from it unless asked for.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

/// Names of secrets, as patterns. Codex 0.166 knows the first three, and leaves them in.
const SECRETS: [&str; 5] = ["*KEY*", "*SECRET*", "*TOKEN*", "*PASSWORD*", "*CREDENTIAL*"];

/// Without these hardly anything runs.
const CORE: [&str; 11] =
    ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP", "LANG", "TZ"];

/// Codex's `shell_environment_policy`. The steps are taken in the order of the fields. Patterns
/// know `*` and `?` and no case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EnvironmentPolicy {
    /// What is taken from our own environment.
    pub inherit: Inherit,
    /// Leaves in what looks like a secret. Unlike Codex, we take it out unless told so.
    pub ignore_default_excludes: bool,
    /// Patterns of what is taken out.
    pub exclude: Vec<String>,
    /// What is set.
    pub set: BTreeMap<String, String>,
    /// If there are any, nothing else is left.
    pub include_only: Vec<String>,
    /// Taken by Codex; we start no shell to learn a profile.
    pub experimental_use_profile: bool,
}

/// What is taken from our own environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inherit {
    /// Everything.
    #[default]
    All,
    /// What hardly anything runs without.
    Core,
    /// Nothing.
    None,
}

impl EnvironmentPolicy {
    /// The environment of a command, out of ours.
    pub fn apply(
        &self,
        ours: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<_, _> = match self.inherit {
            Inherit::All => ours.into_iter().collect(),
            Inherit::Core => ours.into_iter().filter(|(name, _)| any(&CORE, name)).collect(),
            Inherit::None => BTreeMap::new(),
        };
        if !self.ignore_default_excludes {
            env.retain(|name, _| !any(&SECRETS, name));
        }
        env.retain(|name, _| !any(&self.exclude, name));
        env.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        if !self.include_only.is_empty() {
            env.retain(|name, _| any(&self.include_only, name));
        }
        env
    }
}

fn any(patterns: &[impl AsRef<str>], name: &OsString) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    let name: Vec<char> = name.chars().collect();
    patterns.iter().any(|pattern| {
        let pattern: Vec<char> = pattern.as_ref().to_uppercase().chars().collect();
        fits(&pattern, &name)
    })
}

/// The usual way with one step back: on a mismatch the last `*` takes one character more.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((behind, taken)) = star else { return false };
                star = Some((behind, taken + 1));
                (at, seen) = (behind, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(policy: &EnvironmentPolicy) -> String {
        let ours = ["PATH", "HOME", "OPENAI_API_KEY", "gh_token", "DB_PASSWORD", "KEEP", "FOO1"];
        let ours = ours.map(|name| (OsString::from(name), OsString::from("x")));
        let env = policy.apply(ours);
        env.keys().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn secrets_are_kept_out_unless_asked_for() {
        let policy = EnvironmentPolicy::default();
        assert_eq!(left(&policy), "FOO1 HOME KEEP PATH");
        let told = EnvironmentPolicy { ignore_default_excludes: true, ..policy };
        assert_eq!(left(&told), "DB_PASSWORD FOO1 HOME KEEP OPENAI_API_KEY PATH gh_token");
    }

    #[test]
    fn the_steps_are_taken_in_order() {
        let text = r#"
            inherit = "core"
            exclude = ["ho?e"]
            set = { MY_TOKEN = "set by name", EXTRA = "1" }
            include_only = ["P*", "MY_*"]
        "#;
        let policy: EnvironmentPolicy = toml::from_str(text).unwrap();
        assert_eq!(left(&policy), "MY_TOKEN PATH");
        let none = EnvironmentPolicy { inherit: Inherit::None, ..EnvironmentPolicy::default() };
        assert_eq!(left(&none), "");
    }

    #[test]
    fn patterns_are_the_usual_ones() {
        let fits = |pattern: &str, name: &str| any(&[pattern], &OsString::from(name));
        assert!(fits("*KEY*", "monkeys") && fits("A*B*C", "axxbyyc") && fits("?", "x"));
        assert!(!fits("KEY", "KEYS") && !fits("A?", "A") && !fits("", "A") && fits("**", ""));
    }
}
