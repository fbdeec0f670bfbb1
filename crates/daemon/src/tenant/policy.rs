//! What a tenant's callers may ask Codex for.
//!
//! [`Policy::check`] refuses names and values that are wrong or guarded. [`Policy::confine`] then
//! decides on what would really be in force, whoever said it: the call, the thread, the home's own
//! `config.toml`. For a tenant without full access the outcome is written down in full, so that
//! nothing below decides otherwise.

use std::path::{Path, PathBuf};

use bindery_core::settings::{self, SettingError, bounded};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::sandbox::{Effective, HomeDefaults};
use super::{Escalation, TenantSettings};
use crate::error::Error;

/// What a tenant's callers may ask Codex for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Policy {
    /// `danger-full-access`: commands outside the sandbox.
    #[serde(alias = "full_access")]
    pub full_access: bool,
    /// Overrides of `config.toml`, and parameters that are passed through unread.
    pub config: bool,
    /// Who may let something leave the sandbox by an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// Settings that reach past the sandbox or are passed to Codex unread.
const GUARDED: &[&str] = &["config", "threadExtra", "turnExtra", "sandboxPolicy", "ephemeral"];

impl Policy {
    /// Who may let something leave the sandbox: nobody, unless the tenant may leave it anyway.
    pub fn escalation(&self) -> Escalation {
        let usual = if self.full_access { Escalation::Any } else { Escalation::Deny };
        self.escalation.unwrap_or(usual)
    }

    /// Whether these settings may be used; those that are unknown or mistyped may not.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), Error> {
        settings::check(options).map_err(invalid)?;
        let guarded = options.keys().find(|name| GUARDED.contains(&name.as_str()));
        match guarded.filter(|_| !self.config) {
            Some(name) => {
                let why = format!("`settings.{name}` is not allowed for this tenant");
                Err(Error::Forbidden(why))
            }
            None => Ok(()),
        }
    }

    /// Holds merged settings to the policy. Those of a tenant without full access name their
    /// sandbox in full afterwards.
    pub fn confine(
        &self,
        tenant: &TenantSettings,
        cwd: &Path,
        options: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        self.check_reviewer(options)?;
        if self.full_access {
            return Ok(());
        }
        bounded::check_extras(options).map_err(beyond)?;
        let mut config = match options.remove("config") {
            Some(Value::Object(config)) => config,
            _ => Map::new(),
        };
        bounded::check_config(&config).map_err(beyond)?;
        let home = HomeDefaults::read(&tenant.codex_home, cwd);
        let sandbox = Effective::of(options, &config, &home, &tenant.root)?;
        let is_sandbox = |key: &str| {
            let first = key.split('.').next().unwrap_or_default();
            bounded::SANDBOX_CONFIG.contains(&first)
        };
        config.retain(|key, _| !is_sandbox(key));
        if !config.is_empty() {
            options.insert("config".to_owned(), Value::Object(config));
        }
        options.insert("sandbox".to_owned(), json!(sandbox.mode()));
        options.insert("sandboxPolicy".to_owned(), sandbox.policy());
        Ok(())
    }

    /// A reviewer that is a program would say yes in a person's place. The home may name one, so it
    /// is written down that a person is asked.
    fn check_reviewer(&self, options: &mut Map<String, Value>) -> Result<(), Error> {
        if self.full_access && self.escalation() == Escalation::Any {
            return Ok(());
        }
        match options.get("approvalsReviewer") {
            None => {}
            Some(word) if word == "user" => {}
            Some(_) => {
                let why = "`settings.approvalsReviewer`: questions of this tenant are for people; \
                           use `user`";
                return Err(Error::Forbidden(why.to_owned()));
            }
        }
        options.insert("approvalsReviewer".to_owned(), json!("user"));
        Ok(())
    }
}

/// Folders that settings which were held to a policy let a turn write beside its own.
pub fn roots_of(options: &Map<String, Value>) -> Vec<PathBuf> {
    let roots = options.get("sandboxPolicy").and_then(|policy| policy["writableRoots"].as_array());
    roots.into_iter().flatten().filter_map(|root| root.as_str().map(PathBuf::from)).collect()
}

/// A setting that is wrong.
pub fn invalid(error: SettingError) -> Error {
    Error::invalid(format!("settings.{}", error.name), error.why)
}

fn beyond(error: SettingError) -> Error {
    Error::Forbidden(format!("`settings.{}`: {}", error.name, error.why))
}

#[cfg(test)]
mod tests;
