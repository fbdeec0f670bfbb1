//! Settings of a thread or turn (`providerOptions.codex`), checked before anything runs.
//!
//! [`prompt_to_turn`](crate::map::prompt_to_turn) leaves a setting that it cannot read out and
//! warns. A server must not: a mistyped `sandbox` would run with whatever comes next. [`check`]
//! refuses it, [`bounded`] says which of them stay within a sandbox, and [`schema()`] describes
//! them all.

pub mod bounded;

mod schema;

mod shape;

use serde_json::{Map, Value};

pub use self::schema::schema;
use self::shape::{SHAPES, Shape};
pub(crate) use self::shape::{THREAD_KEYS, TURN_KEYS};

/// A setting that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Its name, dotted where it is nested: `sandboxPolicy.type`.
    pub name: String,
    /// What is wrong with it, and what to write instead.
    pub why: String,
}

impl SettingError {
    pub(crate) fn new(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), why: why.into() }
    }

    fn below(self, parent: &str) -> Self {
        Self { name: format!("{parent}.{}", self.name), ..self }
    }
}

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl std::error::Error for SettingError {}

/// Checks names and values. Null is no value: leave the setting out instead.
pub fn check(settings: &Map<String, Value>) -> Result<(), SettingError> {
    settings.iter().try_for_each(|(name, value)| {
        let known = SHAPES.iter().find(|(known, _)| known == name);
        let (_, shape) =
            known.ok_or_else(|| unknown(name, SHAPES.iter().map(|(name, _)| *name)))?;
        shape.check(value).map_err(|wrong| match wrong {
            Wrong::Here(why) => SettingError::new(name, why),
            Wrong::Below(error) => error.below(name),
        })
    })
}

/// Whether there is a setting of this name.
pub fn is_known(name: &str) -> bool {
    SHAPES.iter().any(|(known, _)| *known == name)
}

/// The setting that guards a turn and that a name is, or was probably meant for.
pub fn meant_guard(name: &str) -> Option<&'static str> {
    const GUARDS: [(&str, &str); 8] = [
        ("sandbox", "sandbox"),
        ("sandboxMode", "sandbox"),
        ("sandboxType", "sandbox"),
        ("sandboxPolicy", "sandboxPolicy"),
        ("approvalPolicy", "approvalPolicy"),
        ("approvalMode", "approvalPolicy"),
        ("askForApproval", "approvalPolicy"),
        ("approvalsReviewer", "approvalsReviewer"),
    ];
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', '.', ' '], "");
    let near = |known: &str| {
        let most = if known.len() > 8 { 2 } else { 1 };
        strsim::damerau_levenshtein(&plain(name), &plain(known)) <= most
    };
    GUARDS.iter().find(|(known, _)| near(known)).map(|(_, guard)| *guard)
}

/// A setting that nobody knows, with the nearest that is known.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> SettingError {
    let why = match nearest(name, known) {
        Some(near) => format!("no such setting; did you mean `{near}`?"),
        None => "no such setting".to_owned(),
    };
    SettingError::new(name, why)
}

/// The word that was probably meant: `sandbox_mode` for `sandboxMode`, `read-only` for `readonly`.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', '.', ' '], "");
    let word = plain(word);
    let scored = known.map(|known| (strsim::damerau_levenshtein(&plain(known), &word), known));
    let (distance, near) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2.max(word.chars().count() / 3)).then_some(near)
}

/// What is wrong with a value.
enum Wrong {
    /// The value itself.
    Here(String),
    /// Something in it.
    Below(SettingError),
}

impl From<SettingError> for Wrong {
    fn from(error: SettingError) -> Self {
        Self::Below(error)
    }
}

impl Shape {
    fn check(&self, value: &Value) -> Result<(), Wrong> {
        let want = |fits: bool, want: &str| match fits {
            true => Ok(()),
            false => Err(Wrong::Here(format!("it must be {want}, and it is {}", told(value)))),
        };
        match self {
            Self::Text => want(value.as_str().is_some_and(|t| !t.is_empty()), "a text"),
            Self::Flag => want(value.is_boolean(), "true or false"),
            Self::Word(words) => one_of(value, words),
            Self::AbsolutePaths => {
                let absolute = |path: &Value| path.as_str().is_some_and(|p| p.starts_with('/'));
                let fits = value.as_array().is_some_and(|paths| paths.iter().all(absolute));
                want(fits, "a list of absolute paths")
            }
            Self::Object(fields) => {
                let Some(object) = value.as_object() else { return want(false, "an object") };
                Ok(shape::check_fields(object, fields)?)
            }
            Self::ApprovalPolicy => approval_policy(value),
            Self::SandboxPolicy => sandbox_policy(value),
            Self::Config => match value.as_object() {
                Some(config) => Ok(shape::check_config(config)?),
                None => want(false, "an object"),
            },
            Self::Extra(taken) => match value.as_object() {
                Some(extra) => Ok(shape::check_extra(extra, taken)?),
                None => want(false, "an object"),
            },
        }
    }
}

fn one_of(value: &Value, words: &[&str]) -> Result<(), Wrong> {
    if value.as_str().is_some_and(|word| words.contains(&word)) {
        return Ok(());
    }
    let near = value.as_str().and_then(|word| nearest(word, words.iter().copied()));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let why = format!("it must be one of {}, and it is {}{near}", words.join(", "), told(value));
    Err(Wrong::Here(why))
}

fn approval_policy(value: &Value) -> Result<(), Wrong> {
    let Some(object) = value.as_object() else { return one_of(value, shape::APPROVAL_WORDS) };
    shape::check_fields(object, &[("granular", Shape::Object(shape::GRANULAR))])?;
    let granular = object.get("granular").and_then(Value::as_object);
    let Some(granular) = granular else {
        return Err(Wrong::Here("an object must have the field `granular`".to_owned()));
    };
    let missing = shape::GRANULAR_NEEDED.iter().filter(|name| !granular.contains_key(**name));
    let missing: Vec<String> = missing.map(|name| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!("it needs {} as well", missing.join(", "));
    Err(SettingError::new("granular", why).into())
}

/// Each type has fields of its own.
fn sandbox_policy(value: &Value) -> Result<(), Wrong> {
    let Some(object) = value.as_object() else {
        let why = format!("it must be an object with a `type`, and it is {}", told(value));
        return Err(Wrong::Here(why));
    };
    let types: Vec<&str> = shape::SANDBOX_POLICIES.iter().map(|(name, _)| *name).collect();
    let kind = object.get("type").unwrap_or(&Value::Null);
    match one_of(kind, &types) {
        Err(Wrong::Here(why)) => return Err(SettingError::new("type", why).into()),
        checked => checked?,
    }
    let fields = shape::SANDBOX_POLICIES.iter().find(|(name, _)| kind == name);
    let mut rest = object.clone();
    rest.remove("type");
    Ok(shape::check_fields(&rest, fields.map(|(_, fields)| *fields).unwrap_or_default())?)
}

/// A value in few words, for an error.
fn told(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= 40 => format!("`{text}`"),
        Value::String(_) => "a long text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(settings: Value) -> Result<(), String> {
        check(settings.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_mistyped_is_named_with_what_was_probably_meant() {
        #[rustfmt::skip]
        let table = [
            (json!({"sandbox": "readonly"}),            "sandbox: ", "did you mean `read-only`?"),
            (json!({"sandbox": "readOnly"}),            "sandbox: ", "did you mean `read-only`?"),
            (json!({"sandbox": "Danger-Full-Access"}),  "sandbox: ", "danger-full-access"),
            (json!({"sandbox": null}),                  "sandbox: ", "it is null"),
            (json!({"sandbox": true}),                  "sandbox: ", "it is true"),
            (json!({"sandbox": ["read-only"]}),         "sandbox: ", "a list"),
            (json!({"sandbox": ""}),                    "sandbox: ", "one of"),
            (json!({"sandbox_mode": "read-only"}),      "sandbox_mode: ", "no such setting"),
            (json!({"sandbx": "read-only"}),            "sandbx: ", "did you mean `sandbox`?"),
            (json!({"approval_policy": "never"}),       "approval_policy: ", "`approvalPolicy`?"),
            (json!({"approvalPolicy": "on-failure"}),   "approvalPolicy: ", "one of untrusted"),
            (json!({"approvalPolicy": "onRequest"}),    "approvalPolicy: ", "`on-request`?"),
            (json!({"approvalPolicy": {"granular": {"sandbox_aproval": true}}}),
                "approvalPolicy.granular.sandbox_aproval: ", "`sandbox_approval`?"),
            (json!({"approvalPolicy": {"granular": {"rules": "yes"}}}),
                "approvalPolicy.granular.rules: ", "true or false"),
            (json!({"approvalPolicy": {"never": {}}}),  "approvalPolicy.never: ", "no such"),
            (json!({"approvalPolicy": {}}),             "approvalPolicy: ", "`granular`"),
            (json!({"approvalPolicy": {"granular": {}}}), "approvalPolicy.granular: ",
                "it needs `sandbox_approval`, `rules`, `mcp_elicitations` as well"),
            (json!({"approvalPolicy": {"granular": {"rules": true, "sandbox_approval": true}}}),
                "approvalPolicy.granular: ", "it needs `mcp_elicitations` as well"),
            (json!({"config": {"approval_policy": {"granular": {"rules": true}}}}),
                "config.approval_policy.granular: ", "it needs"),
            (json!({"sandboxPolicy": "readOnly"}),      "sandboxPolicy: ", "an object"),
            (json!({"sandboxPolicy": {}}),              "sandboxPolicy.type: ", "it is null"),
            (json!({"sandboxPolicy": {"type": "read-only"}}),
                "sandboxPolicy.type: ", "did you mean `readOnly`?"),
            (json!({"sandboxPolicy": {"type": "readOnly", "networkAcces": false}}),
                "sandboxPolicy.networkAcces: ", "`networkAccess`?"),
            (json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": "/"}}),
                "sandboxPolicy.writableRoots: ", "a list of absolute paths"),
            (json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["../x"]}}),
                "sandboxPolicy.writableRoots: ", "absolute"),
            (json!({"sandboxPolicy": {"type": "workspaceWrite", "networkAccess": "enabled"}}),
                "sandboxPolicy.networkAccess: ", "true or false"),
            (json!({"approvalsReviewer": "auto"}),      "approvalsReviewer: ", "user"),
            (json!({"config": {"sandbox_mode": "readonly"}}), "config.sandbox_mode: ", "`read-only`?"),
            (json!({"config": {"sandbox_mod": "read-only"}}), "config.sandbox_mod: ", "`sandbox_mode`?"),
            (json!({"config": {"sandbox.mode": "read-only"}}), "config.sandbox.mode: ", "`sandbox_mode`?"),
            (json!({"config": {"approval_policy": 1}}), "config.approval_policy: ", "one of"),
            (json!({"config": {"sandbox_workspace_write": {"network": true}}}),
                "config.sandbox_workspace_write.network: ", "no such"),
            (json!({"config": {"sandbox_workspace_write.network_access": "yes"}}),
                "config.sandbox_workspace_write.network_access: ", "true or false"),
            (json!({"config": {"model": null}}),        "config.model: ", "null"),
            (json!({"turnExtra": {"sandboxPolicy": {"type": "readOnly"}}}),
                "turnExtra.sandboxPolicy: ", "a setting of its own"),
            (json!({"threadExtra": {"sandbox_policy": {}}}), "threadExtra.sandbox_policy: ", ""),
            (json!({"effort": 3}),                      "effort: ", "a text"),
            (json!({"zebra": 3}),                       "zebra: ", "no such setting"),
        ];
        for (settings, name, why) in table {
            let wrong = checked(settings.clone()).expect_err(&settings.to_string());
            assert!(wrong.starts_with(name) && wrong.contains(why), "{settings}: {wrong}");
        }
    }

    #[test]
    fn what_codex_takes_passes() {
        #[rustfmt::skip]
        let table = [
            json!({"sandbox": "read-only", "approvalPolicy": "never", "effort": "xhigh"}),
            json!({"approvalPolicy": {"granular": {"sandbox_approval": false, "rules": true,
                "mcp_elicitations": true}}}),
            json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}),
            json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
            json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/a"],
                "networkAccess": true, "excludeSlashTmp": true}}),
            json!({"config": {"features.goals": false, "model": "m", "tools": {"web_search": true},
                "sandbox_workspace_write": {"network_access": true}}}),
            json!({"threadExtra": {"serviceTier": "flex"}, "turnExtra": {"personality": "x"}}),
            json!({"threadId": "t", "fork": true, "parseMentions": true, "imageDetail": "high"}),
        ];
        for settings in table {
            assert_eq!(checked(settings.clone()), Ok(()), "{settings}");
        }
    }
}
