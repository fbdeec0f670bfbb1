//! Which settings there are, and what their values look like.

use serde_json::{Map, Value};

use super::{SettingError, Wrong, nearest, unknown};

/// What a value looks like.
pub(super) enum Shape {
    /// A text that is not empty.
    Text,
    /// True or false.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of absolute paths.
    AbsolutePaths,
    /// These fields and no others.
    Object(&'static [(&'static str, Shape)]),
    /// A word, or which kinds of question are asked.
    ApprovalPolicy,
    /// The object that `turn/start` takes.
    SandboxPolicy,
    /// Overrides of `config.toml`, by dotted key or nested.
    Config,
    /// Parameters that are passed to Codex unread; these have a setting of their own.
    Extra(&'static [&'static str]),
}

/// The modes of a thread's sandbox.
pub(super) const SANDBOX_MODES: &[&str] = &["read-only", "workspace-write", "danger-full-access"];

pub(super) const APPROVAL_WORDS: &[&str] = &["untrusted", "on-request", "never"];

const REVIEWERS: &[&str] = &["user", "auto_review", "guardian_subagent"];

const SUMMARIES: &[&str] = &["auto", "concise", "detailed", "none"];

/// Parameters of `thread/start` and its like that have a setting of their own, or are ours.
#[rustfmt::skip]
pub(crate) const THREAD_KEYS: &[&str] = &[
    "model", "modelProvider", "cwd", "approvalPolicy", "approvalsReviewer", "sandbox",
    "baseInstructions", "developerInstructions", "config", "ephemeral", "dynamicTools",
    "threadId", "lastTurnId", "excludeTurns", "history",
];

/// Parameters of `turn/start` that have a setting of their own, or are ours.
#[rustfmt::skip]
pub(crate) const TURN_KEYS: &[&str] = &[
    "model", "effort", "summary", "cwd", "approvalPolicy", "approvalsReviewer", "sandboxPolicy",
    "outputSchema", "threadId", "input",
];

#[rustfmt::skip]
pub(super) const SHAPES: &[(&str, Shape)] = &[
    ("model",                 Shape::Text),
    ("modelProvider",         Shape::Text),
    ("effort",                Shape::Text),
    ("reasoningEffort",       Shape::Text),
    ("summary",               Shape::Word(SUMMARIES)),
    ("reasoningSummary",      Shape::Word(SUMMARIES)),
    ("imageDetail",           Shape::Word(&["auto", "low", "high", "original"])),
    ("approvalPolicy",        Shape::ApprovalPolicy),
    ("approvalsReviewer",     Shape::Word(REVIEWERS)),
    ("sandbox",               Shape::Word(SANDBOX_MODES)),
    ("sandboxPolicy",         Shape::SandboxPolicy),
    ("instructions",          Shape::Word(&["developer", "base"])),
    ("baseInstructions",      Shape::Text),
    ("developerInstructions", Shape::Text),
    ("parseMentions",         Shape::Flag),
    ("ephemeral",             Shape::Flag),
    ("config",                Shape::Config),
    ("threadExtra",           Shape::Extra(THREAD_KEYS)),
    ("turnExtra",             Shape::Extra(TURN_KEYS)),
    ("threadId",              Shape::Text),
    ("fork",                  Shape::Flag),
    ("cwd",                   Shape::Text),
];

#[rustfmt::skip]
pub(super) const GRANULAR: &[(&str, Shape)] = &[
    ("sandbox_approval",    Shape::Flag),
    ("rules",               Shape::Flag),
    ("skill_approval",      Shape::Flag),
    ("request_permissions", Shape::Flag),
    ("mcp_elicitations",    Shape::Flag),
];

/// Those of them that Codex does not fill in.
pub(super) const GRANULAR_NEEDED: &[&str] = &["sandbox_approval", "rules", "mcp_elicitations"];

#[rustfmt::skip]
pub(super) const SANDBOX_POLICIES: &[(&str, &[(&str, Shape)])] = &[
    ("dangerFullAccess", &[]),
    ("readOnly",         &[("networkAccess", Shape::Flag)]),
    ("externalSandbox",  &[("networkAccess", Shape::Word(&["restricted", "enabled"]))]),
    ("workspaceWrite",   &[
        ("writableRoots",       Shape::AbsolutePaths),
        ("networkAccess",       Shape::Flag),
        ("excludeTmpdirEnvVar", Shape::Flag),
        ("excludeSlashTmp",     Shape::Flag),
    ]),
];

#[rustfmt::skip]
const SANDBOX_WORKSPACE_WRITE: &[(&str, Shape)] = &[
    ("writable_roots",         Shape::AbsolutePaths),
    ("network_access",         Shape::Flag),
    ("exclude_tmpdir_env_var", Shape::Flag),
    ("exclude_slash_tmp",      Shape::Flag),
];

/// Keys of `config.toml` that decide what commands may do. Codex has many others, and passes over
/// those that it does not know, so a key that is almost one of these is refused.
#[rustfmt::skip]
const GUARDING_CONFIG: &[(&str, Shape)] = &[
    ("sandbox_mode",            Shape::Word(SANDBOX_MODES)),
    ("sandbox_workspace_write", Shape::Object(SANDBOX_WORKSPACE_WRITE)),
    ("approval_policy",         Shape::ApprovalPolicy),
    ("approvals_reviewer",      Shape::Word(REVIEWERS)),
    ("default_permissions",     Shape::Text),
];

/// Keys that look like one of those above and are none.
const APART: &[&str] = &["permissions", "sandbox_permissions"];

pub(super) fn check_fields(
    object: &Map<String, Value>,
    fields: &[(&str, Shape)],
) -> Result<(), SettingError> {
    object.iter().try_for_each(|(name, value)| {
        let known = fields.iter().find(|(known, _)| known == name);
        let (_, shape) =
            known.ok_or_else(|| unknown(name, fields.iter().map(|(name, _)| *name)))?;
        checked(name, shape, value)
    })
}

fn checked(name: &str, shape: &Shape, value: &Value) -> Result<(), SettingError> {
    shape.check(value).map_err(|wrong| match wrong {
        Wrong::Here(why) => SettingError::new(name, why),
        Wrong::Below(error) => error.below(name),
    })
}

pub(super) fn check_config(config: &Map<String, Value>) -> Result<(), SettingError> {
    config.iter().try_for_each(|(key, value)| {
        if value.is_null() {
            let why = "it is null, which is no value; leave it out instead";
            return Err(SettingError::new(key, why));
        }
        if let Some((_, shape)) = GUARDING_CONFIG.iter().find(|(known, _)| known == key) {
            return checked(key, shape, value);
        }
        if let Some(field) = key.strip_prefix("sandbox_workspace_write.") {
            let one = Map::from_iter([(field.to_owned(), value.clone())]);
            return check_fields(&one, SANDBOX_WORKSPACE_WRITE)
                .map_err(|error| error.below("sandbox_workspace_write"));
        }
        let guarding = GUARDING_CONFIG.iter().map(|(name, _)| *name);
        match nearest(key, guarding) {
            Some(near) if !APART.contains(&key.as_str()) => {
                let why = format!("no such key of `config.toml`; did you mean `{near}`?");
                Err(SettingError::new(key, why))
            }
            _ => Ok(()),
        }
    })
}

pub(super) fn check_extra(extra: &Map<String, Value>, taken: &[&str]) -> Result<(), SettingError> {
    let guarding = ["sandbox", "sandboxPolicy", "approvalPolicy", "approvalsReviewer"];
    extra.keys().try_for_each(|key| {
        if taken.contains(&key.as_str()) {
            let why = "it has a setting of its own or is chosen by the server";
            return Err(SettingError::new(key, why));
        }
        match nearest(key, guarding.into_iter()) {
            Some(near) => {
                let why = format!("no such parameter; did you mean the setting `{near}`?");
                Err(SettingError::new(key, why))
            }
            None => Ok(()),
        }
    })
}
