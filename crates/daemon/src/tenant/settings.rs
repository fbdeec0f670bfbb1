//! A tenant's settings as a file says them: what it does not name stays as it is.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{HookTool, Limits, Policy, TenantSettings, Webhook};
use crate::error::Error;

/// The longest time that a tool may take, in seconds.
const LONGEST: u64 = 600;

/// What a file says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsFile {
    /// The home of its Codex.
    pub codex_home: Option<PathBuf>,
    /// The folder that all its threads work in.
    pub root: Option<PathBuf>,
    /// How much it may use.
    pub limits: Option<Section<Limits>>,
    /// What its callers may ask Codex for.
    pub policy: Option<Section<Policy>>,
    /// Who is told when something happens.
    pub webhooks: Option<Vec<Webhook>>,
    /// Tools that are served by a webhook.
    pub tools: Option<Vec<HookTool>>,
    /// Added to the environment of its workers.
    pub env: Option<BTreeMap<String, String>>,
}

/// A section of a file: what it names changes, the rest stays.
#[derive(Clone, Debug)]
pub struct Section<T> {
    named: Map<String, Value>,
    kind: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Section<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Map::deserialize(deserializer)?;
        T::deserialize(Value::Object(named.clone())).map_err(D::Error::custom)?;
        Ok(Self { named, kind: PhantomData })
    }
}

impl<T: Serialize + DeserializeOwned> Section<T> {
    fn over(self, settings: T) -> Result<T, Error> {
        let failed = |err: serde_json::Error| Error::Internal(err.to_string());
        let mut all = serde_json::to_value(settings).map_err(failed)?;
        for (name, value) in self.named {
            all[camel_case(&name)] = value;
        }
        serde_json::from_value(all).map_err(failed)
    }
}

/// The name under which a setting is stored; files may use underscores.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        name + &letters.next().map_or(String::new(), |it| it.to_uppercase().to_string())
            + letters.as_str()
    })
}

impl SettingsFile {
    /// Reads a file of TOML.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|err| Error::io(path, err))?;
        let wrong =
            |why: String| Error::Config { what: path.display().to_string(), why: why.to_owned() };
        let file: Self = toml::from_str(&text).map_err(|err| wrong(err.to_string()))?;
        file.check().map_err(wrong)?;
        Ok(file)
    }

    /// Puts what it says in the place of what there was.
    pub fn apply(self, settings: &mut TenantSettings) -> Result<(), Error> {
        let absolute =
            |path: PathBuf| std::path::absolute(&path).map_err(|err| Error::io(&path, err));
        if let Some(home) = self.codex_home {
            settings.codex_home = absolute(home)?;
        }
        if let Some(root) = self.root {
            settings.root = absolute(root)?;
        }
        if let Some(limits) = self.limits {
            settings.limits = limits.over(settings.limits)?;
        }
        if let Some(policy) = self.policy {
            settings.policy = policy.over(settings.policy)?;
        }
        replace(&mut settings.webhooks, self.webhooks);
        replace(&mut settings.tools, self.tools);
        replace(&mut settings.env, self.env);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for hook in self.webhooks.iter().flatten() {
            check_call("a webhook", &hook.url, &hook.secret)?;
            if hook.events.is_empty() {
                return Err("a webhook: its `events` are empty, so it is told nothing".to_owned());
            }
        }
        let mut names = std::collections::BTreeSet::new();
        for tool in self.tools.iter().flatten() {
            let what = format!("the tool `{}`", tool.name);
            check_call(&what, &tool.url, &tool.secret)?;
            let fine = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
            if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.chars().all(fine) {
                return Err(format!("{what}: its name needs letters, digits, `-` and `_`"));
            }
            if !names.insert(&tool.name) {
                return Err(format!("{what} is there twice"));
            }
            if !(1..=LONGEST).contains(&tool.timeout_seconds) {
                return Err(format!("{what}: `timeout_seconds` is from 1 to {LONGEST}"));
            }
            if !tool.input_schema.is_object() {
                return Err(format!("{what}: `input_schema` is a JSON Schema, so a table"));
            }
        }
        Ok(())
    }
}

fn replace<T>(old: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *old = new;
    }
}

fn check_call(what: &str, url: &str, secret: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).ok();
    if parsed.is_none_or(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host()) {
        return Err(format!("{what}: its `url` must begin with `https://` or `http://`"));
    }
    if secret.is_empty() {
        return Err(format!("{what}: its `secret` is empty, so nobody could trust a call"));
    }
    let coded = secret.strip_prefix("whsec_");
    if coded.is_some_and(|coded| coded.is_empty() || STANDARD.decode(coded).is_err()) {
        return Err(format!("{what}: its `secret` must have base64 after `whsec_`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SettingsFile, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acme.toml");
        std::fs::write(&path, text).unwrap();
        SettingsFile::read(&path)
    }

    #[test]
    fn what_a_file_does_not_name_stays() {
        let mut settings = TenantSettings::new("/home".into(), "/root".into());
        settings.env.insert("A".to_owned(), "1".to_owned());
        let file = read("[limits]\nthread_queue = 3\n[policy]\nfull_access = true").unwrap();
        file.apply(&mut settings).unwrap();
        assert_eq!(settings.limits, Limits { thread_queue: 3, ..Limits::default() });
        assert!(settings.policy.full_access && !settings.policy.config);
        let file =
            "[limits]\nrequestsPerMinute = 5\n[policy]\nconfig = true\nescalation = 'approver'";
        read(file).unwrap().apply(&mut settings).unwrap();
        read("[policy]\nfull_access = false").unwrap().apply(&mut settings).unwrap();
        let limits = Limits { thread_queue: 3, requests_per_minute: 5, ..Limits::default() };
        assert_eq!(settings.limits, limits);
        assert!(!settings.policy.full_access && settings.policy.config);
        assert!(settings.policy.escalation.is_some());
        assert_eq!((settings.root, settings.env.len()), ("/root".into(), 1));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let tool = "[[tools]]\nname = 't'\ndescription = ''\nsecret = 's'\n";
        for (text, told) in [
            ("limit = 1", "unknown field `limit`"),
            ("[[webhooks]]\nurl = 'ftp://x'\nsecret = 's'", "must begin with `https://`"),
            ("[[webhooks]]\nurl = 'http://x'\nsecret = ''", "`secret` is empty"),
            ("[[webhooks]]\nurl = 'http://x'\nsecret = 'whsec_!'", "base64 after `whsec_`"),
            ("[[webhooks]]\nurl = 'http://x'\nsecret = 's'\nevents = []", "told nothing"),
            (
                "[[webhooks]]\nurl = 'http://x'\nsecret = 's'\nevents = ['turn.over']",
                "unknown variant `turn.over`",
            ),
            (&*format!("{tool}url = 'http://x'\ninput_schema = 1"), "a JSON Schema"),
            (
                &*format!("{tool}url = 'http://x'\ntimeout_seconds = 0\ninput_schema = {{}}"),
                "from 1 to 600",
            ),
        ] {
            let wrong = read(text).unwrap_err().to_string();
            assert!(wrong.contains(told), "{wrong}");
        }
    }
}
