//! Which variables a command gets. What looks like a secret is kept from it unless asked for.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

/// Names of secrets, as patterns. Codex 0.166 knows the first three, and leaves them in.
#[rustfmt::skip]
const SECRETS: [&str; 31] = [
    "*KEY*", "*SECRET*", "*TOKEN*", "*PASSW*", "*CREDENTIAL*", "*PASS", "*_PASS*", "*PASSPHRASE*",
    "*_CREDS*", "*_PAT", "*_PAT_*", "PAT", "*AUTH*", "*_DSN", "DSN", "*DATABASE_UR*", "*DB_UR*",
    "*MONGO*_UR*", "*REDIS*_UR*", "*CONNECTION_STRING*", "*CONNSTR*", "*COOKIE*", "*JWT*",
    "*BEARER*", "*PRIVATE*", "*WEBHOOK*", "*SIGNATURE*",
    "*_PWD", "*_PWD_*", "*_PW", "*_PW_*",
];

/// Names that look like secrets and are none. An agent's socket is among them: without it git
/// reaches no remote by SSH, and it signs, but gives no key away.
const NO_SECRETS: [&str; 5] =
    ["SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_*", "*_AUTHOR", "*_AUTHORS"];

/// How secrets begin, whatever the name of their variable.
#[rustfmt::skip]
const SECRET_VALUES: [&str; 33] = [
    "-----BEGIN", "sk-", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-",
    "xapp-", "AKIA", "ASIA", "npm_", "hf_", "AIza", "SG.", "dop_v1_", "pypi-", "sk_live_",
    "rk_live_", "sk_test_", "hvs.", "ya29.", "shpat_", "gsk_", "glc_", "lin_api_", "eyJ",
    "Bearer ", "bearer ", "token ", "Basic ",
];

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
            env.retain(|name, value| !is_secret(name, value));
        }
        env.retain(|name, _| !any(&self.exclude, name));
        env.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        if !self.include_only.is_empty() {
            env.retain(|name, _| any(&self.include_only, name));
        }
        env
    }
}

fn is_secret(name: &OsString, value: &OsString) -> bool {
    let text = value.to_string_lossy();
    (any(&SECRETS, name) && !any(&NO_SECRETS, name))
        || SECRET_VALUES.iter().any(|start| text.trim_start().starts_with(start))
        || holds_password(&text)
}

/// Whether there is an address with a password in it: `scheme://user:password@host`.
fn holds_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| c.is_whitespace() || "/?#".contains(c));
        let host = &rest[..end.unwrap_or(rest.len())];
        if let Some((user, _)) = host.rsplit_once('@') {
            return user.split_once(':').is_some_and(|(_, secret)| !secret.is_empty());
        }
        // A password may hold a slash that should have been escaped; a port is none.
        let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        host.split_once(':').is_some_and(|(_, secret)| !is_port(secret) && rest.contains('@'))
    })
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
    fn secrets_are_known_by_their_names_and_by_their_values() {
        let secret = |name: &str, value: &str| is_secret(&name.into(), &value.into());
        #[rustfmt::skip]
        let names = [
            "DATABASE_URL", "PGPASSWORD", "SMTP_PASS", "DB_PASS_RO", "GITHUB_PAT", "SENTRY_DSN",
            "NPM_CONFIG__AUTH", "npm_config__auth", "BASIC_AUTH", "SSHPASS", "MYSQL_PWD_PASSWD",
            "AZURE_STORAGE_CONNECTION_STRING", "REDIS_URL", "MONGODB_URI", "SLACK_WEBHOOK_URL",
            "GPG_PASSPHRASE", "SESSION_COOKIE", "AWS_SECRET_ACCESS_KEY", "MY_JWT",
        ];
        for name in names {
            assert!(secret(name, "x"), "{name}");
        }
        let values = [
            "https://me:hunter2@example.org/x",
            "postgres://u:p@/db",
            "amqp://u:p%2F@h",
            "http://u:a/b@host",
            "one https://a.b/ two redis://:pw@host:1/0",
            "ghp_abc",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
        ];
        for value in values {
            assert!(secret("PLAIN", value), "{value}");
        }
        for name in ["SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_NAME", "PATH", "PWD", "PATTERN"] {
            assert!(!secret(name, "/x"), "{name}");
        }
        let plain = [
            "https://example.org:8080/a@b",
            "ssh://git@github.com/x",
            "http://proxy:3128",
            "a:b@c",
            "file:///x",
        ];
        for value in plain {
            assert!(!secret("PLAIN", value), "{value}");
        }
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
