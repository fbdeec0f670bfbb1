//! Refuses options that do not say what they must: a misspelled sandbox must not become no sandbox.
//!
//! The planner leaves out what it cannot read and warns. For what guards a turn that is too late:
//! the turn would run with whatever the home's configuration allows.

use serde_json::{Map, Value};

use crate::error::Error;

/// What a value must be.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Word(&'static [&'static str]),
    Object,
    ApprovalPolicy,
    SandboxPolicy,
    /// Parameters of Codex's that have no option of their own.
    Extra,
    /// Codex's configuration.
    Config,
}

const SANDBOXES: &[&str] = &["read-only", "workspace-write", "danger-full-access"];
const APPROVALS: &[&str] = &["untrusted", "on-request", "on-failure", "never"];
const SUMMARIES: &[&str] = &["auto", "concise", "detailed", "none"];

#[rustfmt::skip]
const OPTIONS: &[(&str, Shape)] = &[
    ("cwd", Shape::Text), ("sandbox", Shape::Word(SANDBOXES)),
    ("approvalPolicy", Shape::ApprovalPolicy), ("approvalsReviewer", Shape::Text),
    ("sandboxPolicy", Shape::SandboxPolicy), ("ephemeral", Shape::Flag), ("effort", Shape::Text),
    ("reasoningEffort", Shape::Text), ("summary", Shape::Word(SUMMARIES)),
    ("reasoningSummary", Shape::Word(SUMMARIES)), ("modelProvider", Shape::Text),
    ("developerInstructions", Shape::Text), ("baseInstructions", Shape::Text),
    ("instructions", Shape::Word(&["developer", "base"])), ("config", Shape::Config),
    ("threadExtra", Shape::Extra), ("turnExtra", Shape::Extra), ("threadId", Shape::Text),
    ("fork", Shape::Flag), ("model", Shape::Text), ("parseMentions", Shape::Flag),
    ("imageDetail", Shape::Word(&["auto", "low", "high", "original"])),
];

/// Options that guard a turn; null does not stand for "not given" here.
const GUARDS: &[&str] = &["sandbox", "sandboxPolicy", "approvalPolicy", "approvalsReviewer"];

/// Parameters that have an option of their own or are ours to set.
#[rustfmt::skip]
const OWN_PARAMETERS: &[&str] = &[
    "model", "modelProvider", "cwd", "baseInstructions", "developerInstructions", "config",
    "ephemeral", "dynamicTools", "threadId", "lastTurnId", "excludeTurns", "history", "effort",
    "summary", "outputSchema", "input",
];

/// Codex's own names of what guards a thread.
const GUARDING_CONFIG: &[&str] =
    &["sandbox_mode", "sandbox_workspace_write", "approval_policy", "approvals_reviewer"];

/// Checks the options of a call, or the defaults for them, found at `place`.
pub(super) fn check_options(given: &Value, place: &str) -> Result<(), Error> {
    let Value::Object(given) = given else {
        return if given.is_null() { Ok(()) } else { wrong(place, "an object") };
    };
    for (name, value) in given {
        let place = format!("{place}.{name}");
        let Some((_, shape)) = OPTIONS.iter().find(|(known, _)| known == name) else {
            let meant = meant_guard(name).map(|guard| format!("; did you mean `{guard}`?"));
            let why = format!("no such option{}", meant.unwrap_or_default());
            return Err(Error::invalid(place, why));
        };
        if !value.is_null() || GUARDS.contains(&name.as_str()) {
            check_shape(value, *shape, &place)?;
        }
    }
    Ok(())
}

/// Refuses settings of a call that stand where nobody reads them and would have guarded it.
pub(super) fn check_rest(rest: &Map<String, Value>) -> Result<(), Error> {
    for name in rest.keys() {
        if let Some(guard) = meant_guard(name) {
            let why = format!("it goes into `providerOptions.codex` as `{guard}`");
            return Err(Error::invalid(format!("options.{name}"), why));
        }
    }
    Ok(())
}

fn check_shape(value: &Value, shape: Shape, place: &str) -> Result<(), Error> {
    match shape {
        Shape::Text => match value.as_str() {
            Some(text) if !text.is_empty() => Ok(()),
            _ => wrong(place, "a text that is not empty"),
        },
        Shape::Flag => value.is_boolean().then_some(()).map_or(wrong(place, "true or false"), Ok),
        Shape::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            _ => wrong(place, &format!("one of {}", words.join(", "))),
        },
        Shape::Object => value.is_object().then_some(()).map_or(wrong(place, "an object"), Ok),
        Shape::ApprovalPolicy if value.is_object() => {
            let flags = value.as_object().filter(|object| object.len() == 1);
            let flags = flags.and_then(|object| object.get("granular")?.as_object());
            match flags {
                Some(flags) => check_flags(flags, &format!("{place}.granular")),
                None => wrong(place, "a word, or an object with `granular` alone"),
            }
        }
        Shape::ApprovalPolicy => check_shape(value, Shape::Word(APPROVALS), place),
        Shape::SandboxPolicy => check_policy(value, place),
        Shape::Extra => check_extra(value, place),
        Shape::Config => check_config(value, place),
    }
}

fn check_flags(flags: &Map<String, Value>, place: &str) -> Result<(), Error> {
    const KNOWN: &[&str] =
        &["sandbox_approval", "rules", "skill_approval", "request_permissions", "mcp_elicitations"];
    for (name, value) in flags {
        if !KNOWN.contains(&name.as_str()) {
            let why = format!("no such flag; known are {}", KNOWN.join(", "));
            return Err(Error::invalid(format!("{place}.{name}"), why));
        }
        check_shape(value, Shape::Flag, &format!("{place}.{name}"))?;
    }
    Ok(())
}

fn check_policy(value: &Value, place: &str) -> Result<(), Error> {
    let fields: &[&str] = match value["type"].as_str() {
        Some("dangerFullAccess") => &[],
        Some("readOnly" | "externalSandbox") => &["networkAccess"],
        Some("workspaceWrite") => {
            &["writableRoots", "networkAccess", "excludeTmpdirEnvVar", "excludeSlashTmp"]
        }
        _ => {
            let types = "readOnly, workspaceWrite, externalSandbox, dangerFullAccess";
            return wrong(&format!("{place}.type"), &format!("one of {types}"));
        }
    };
    let mut given = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    match given.find(|name| *name != "type" && !fields.contains(name)) {
        Some(name) => {
            Err(Error::invalid(format!("{place}.{name}"), "no such field of this policy"))
        }
        None => Ok(()),
    }
}

/// Codex passes over parameters that it does not know.
fn check_extra(value: &Value, place: &str) -> Result<(), Error> {
    check_shape(value, Shape::Object, place)?;
    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
        let own = OWN_PARAMETERS.contains(&name.as_str()).then_some(name.as_str());
        if let Some(option) = meant_guard(name).or(own) {
            let why = format!("it has an option of its own or is ours to set: `{option}`");
            return Err(Error::invalid(format!("{place}.{name}"), why));
        }
    }
    Ok(())
}

/// Codex passes over keys that it does not know here, too.
fn check_config(value: &Value, place: &str) -> Result<(), Error> {
    check_shape(value, Shape::Object, place)?;
    for (name, value) in value.as_object().into_iter().flatten() {
        let key = name.split('.').next().unwrap_or_default();
        let place = format!("{place}.{name}");
        let meant = GUARDING_CONFIG.iter().find(|known| plain(known) == plain(key));
        if (meant.is_some() || meant_guard(key).is_some()) && !GUARDING_CONFIG.contains(&key) {
            let why = format!("Codex knows {}", GUARDING_CONFIG.join(", "));
            return Err(Error::invalid(place, why));
        }
        match name.as_str() {
            "sandbox_mode" => check_shape(value, Shape::Word(SANDBOXES), &place)?,
            "approval_policy" => check_shape(value, Shape::ApprovalPolicy, &place)?,
            _ => {}
        }
    }
    Ok(())
}

/// The guard that a name is, or is likely to be meant for.
fn meant_guard(name: &str) -> Option<&'static str> {
    let name = plain(name);
    match name.as_str() {
        "sandboxmode" | "sandboxtype" => return Some("sandbox"),
        "approvalmode" | "askforapproval" => return Some("approvalPolicy"),
        _ => {}
    }
    let near = |guard: &&&str| {
        let most = if guard.len() > 8 { 2 } else { 1 };
        edit_distance(&name, &plain(guard)) <= most
    };
    GUARDS.iter().find(near).copied()
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// How many letters must be changed, added or taken away.
fn edit_distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (other, wanted) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[other + 1];
            row[other + 1] = changed.min(diagonal + 1).min(row[other] + 1);
        }
    }
    row[to.len()]
}

fn wrong(place: &str, want: &str) -> Result<(), Error> {
    Err(Error::invalid(place, format!("it must be {want}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guard_that_is_misspelled_or_has_a_wrong_value_is_refused() {
        #[rustfmt::skip]
        let refused = [
            json!({"sandbox": "readonly"}), json!({"sandbox": "readOnly"}), json!({"sandbox": ""}),
            json!({"sandbox": null}), json!({"sandbox": {"mode": "read-only"}}),
            json!({"sandboxMode": "read-only"}), json!({"sandbox_mode": "read-only"}),
            json!({"Sandbox": "read-only"}), json!({"sandbx": "read-only"}),
            json!({"approvalPolicy": "unless-trusted"}), json!({"approvalPolicy": {"x": {}}}),
            json!({"approvalPolicy": {"granular": {"rule": true}}}),
            json!({"approvalPolicy": {"granular": {"rules": "yes"}}}),
            json!({"sandboxPolicy": {"type": "read-only"}}), json!({"sandboxPolicy": "readOnly"}),
            json!({"sandboxPolicy": {"type": "workspaceWrite", "writable_roots": []}}),
            json!({"threadExtra": {"sandbox": "read-only"}}), json!({"threadExtra": []}),
            json!({"turnExtra": {"sandboxMode": "read-only"}}),
            json!({"turnExtra": {"sandbox_policy": {}}}), json!({"config": {"sandbox": "x"}}),
            json!({"config": {"sandboxMode": "read-only"}}),
            json!({"config": {"sandbox-mode": "read-only"}}),
            json!({"config": {"sandbox_mode": "readonly"}}),
            json!({"config": {"approvalPolicy": "never"}}),
            json!({"cwd": ""}), json!({"cwd": 1}), json!({"ephemeral": "yes"}), json!({"nope": 1}),
            json!("read-only"), json!([]),
        ];
        for given in refused {
            let error = check_options(&given, "thread").expect_err(&given.to_string());
            assert_eq!(error.code(), "invalid", "{given}");
        }
    }

    #[test]
    fn what_is_right_passes() {
        #[rustfmt::skip]
        let right = [
            json!(null), json!({}), json!({"effort": null}), json!({"approvalPolicy": "never"}),
            json!({"sandbox": "read-only", "approvalPolicy": {"granular": {"rules": true}}}),
            json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/a"]}}),
            json!({"config": {"sandbox_workspace_write.network_access": true, "model": "x"}}),
            json!({"config": {"sandbox_mode": "read-only", "mcp_servers": {}}}),
            json!({"threadExtra": {"historyMode": "legacy"}}),
        ];
        for given in right {
            check_options(&given, "thread").unwrap_or_else(|error| panic!("{given}: {error}"));
        }
    }

    #[test]
    fn the_error_names_the_option_that_was_meant() {
        let error = check_options(&json!({"sandboxMode": "read-only"}), "thread").unwrap_err();
        let want = "thread.sandboxMode: no such option; did you mean `sandbox`?";
        assert_eq!(error.to_string(), want);
        let rest = json!({"sandbox": "read-only", "temperature": 1});
        assert!(check_rest(rest.as_object().unwrap()).is_err());
        assert!(check_rest(json!({"temperature": 1}).as_object().unwrap()).is_ok());
    }
}
