//! What a tenant's callers may ask Codex for.

use serde_json::{Map, Value};

use super::Policy;
use crate::error::Error;

/// Options that every caller may set, as `providerOptions.codex` has them.
const FREE: &[&str] = &[
    "model",
    "modelProvider",
    "effort",
    "reasoningEffort",
    "summary",
    "reasoningSummary",
    "imageDetail",
    "approvalPolicy",
    "approvalsReviewer",
    "sandbox",
    "instructions",
    "baseInstructions",
    "developerInstructions",
    "parseMentions",
    // Chosen by the server; what a call says of them is read or passed over.
    "threadId",
    "fork",
    "cwd",
];

/// Options that reach past the sandbox or are passed to Codex unread.
const GUARDED: &[&str] = &["config", "threadExtra", "turnExtra", "sandboxPolicy", "ephemeral"];

impl Policy {
    /// Whether these options may be used; unknown ones may not.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), Error> {
        for (name, value) in options {
            let what = || format!("settings.{name}");
            if GUARDED.contains(&name.as_str()) {
                if !self.config {
                    return Err(Error::Forbidden(format!(
                        "`{}` is not allowed for this tenant",
                        what()
                    )));
                }
            } else if !FREE.contains(&name.as_str()) {
                return Err(Error::invalid(what(), "no such setting"));
            }
            if reaches_out(name, value) && !self.full_access {
                let why = "full access is not allowed for this tenant".to_owned();
                return Err(Error::Forbidden(why));
            }
        }
        Ok(())
    }
}

fn reaches_out(name: &str, value: &Value) -> bool {
    match name {
        "sandbox" => value == "danger-full-access",
        "sandboxPolicy" => value["type"] == "dangerFullAccess",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_reaches_out_must_be_allowed() {
        let code = |policy: Policy, options: Value| {
            policy.check(options.as_object().unwrap()).err().map(|err| err.code())
        };
        let (none, all) = (Policy::default(), Policy { full_access: true, config: true });
        assert_eq!(code(none, json!({"model": "m", "sandbox": "read-only"})), None);
        assert_eq!(code(none, json!({"sandbox": "danger-full-access"})), Some("forbidden"));
        assert_eq!(code(none, json!({"config": {}})), Some("forbidden"));
        assert_eq!(code(none, json!({"sandboxx": 1})), Some("invalid"));
        assert_eq!(code(all, json!({"sandbox": "danger-full-access", "config": {}})), None);
        let config = Policy { full_access: false, config: true };
        let policy = json!({"sandboxPolicy": {"type": "dangerFullAccess"}});
        assert_eq!(code(config, policy), Some("forbidden"));
    }
}
