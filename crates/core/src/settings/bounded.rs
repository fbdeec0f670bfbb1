//! Settings that stay within a sandbox: the allow-list for whoever may not leave it.
//!
//! Codex has many settings that start programs outside of every sandbox (MCP servers, hooks,
//! `notify`, providers that fetch their key by a command) or that choose a sandbox by another name
//! (profiles, permissions). New versions bring more. So what is not listed here is refused.

use serde_json::{Map, Value};

use super::SettingError;

/// Keys of `config.toml` that reach the model and nothing else.
#[rustfmt::skip]
const MODEL_CONFIG: &[&str] = &[
    "model", "model_provider", "model_reasoning_effort", "model_reasoning_summary",
    "model_verbosity", "model_context_window", "model_auto_compact_token_limit",
    "model_supports_reasoning_summaries", "review_model", "service_tier", "personality",
    "hide_agent_reasoning", "show_raw_agent_reasoning", "tool_output_token_limit",
    "project_doc_max_bytes", "compact_prompt", "instructions", "developer_instructions",
    "web_search", "tools.web_search", "tools.view_image", "tools.update_plan.enabled",
    "features.goals", "features.multi_agent",
];

/// Keys that choose the sandbox itself; whoever enforces it reads their values.
pub const SANDBOX_CONFIG: &[&str] = &["sandbox_mode", "sandbox_workspace_write"];

/// Keys that say when somebody is asked; who may answer is decided elsewhere.
const APPROVAL_CONFIG: &[&str] = &["approval_policy"];

/// Parameters of `thread/start`, `thread/resume` and `thread/fork` that may be passed on unread.
const THREAD_EXTRA: &[&str] = &["serviceTier", "personality", "experimentalRawEvents"];

/// Parameters of `turn/start` that may be passed on unread.
const TURN_EXTRA: &[&str] =
    &["serviceTier", "serviceTierForTurn", "personality", "clientUserMessageId"];

/// Whether overrides of `config.toml`, dotted or nested, stay within the sandbox.
pub fn check_config(config: &Map<String, Value>) -> Result<(), SettingError> {
    let mut keys = Vec::new();
    flatten("", config, &mut keys);
    keys.into_iter().try_for_each(|key| {
        let within = |known: &&str| {
            key.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let listed = MODEL_CONFIG.contains(&key.as_str())
            || APPROVAL_CONFIG.iter().any(within)
            || SANDBOX_CONFIG.iter().any(within);
        if listed { Ok(()) } else { Err(outside(format!("config.{key}"))) }
    })
}

/// Whether parameters that are passed on unread stay within the sandbox.
pub fn check_extras(settings: &Map<String, Value>) -> Result<(), SettingError> {
    let lists = [("threadExtra", THREAD_EXTRA), ("turnExtra", TURN_EXTRA)];
    lists.into_iter().try_for_each(|(name, listed)| {
        let extra = settings.get(name).and_then(Value::as_object).into_iter().flatten();
        extra.map(|(key, _)| key).try_for_each(|key| match listed.contains(&key.as_str()) {
            true => Ok(()),
            false => Err(outside(format!("{name}.{key}"))),
        })
    })
}

fn outside(name: String) -> SettingError {
    SettingError::new(name, "it may reach past the sandbox, which needs full access")
}

/// All keys, dotted. A quoted key with a dot in it is no key of Codex's.
fn flatten(prefix: &str, table: &Map<String, Value>, keys: &mut Vec<String>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            Value::Object(below) if !below.is_empty() => flatten(&format!("{key}."), below, keys),
            _ => keys.push(key),
        }
    }
}

/// The value of a key of `config.toml`, dotted or nested.
pub fn config_value<'a>(config: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let dotted = config.get(path);
    let nested = || {
        let (first, rest) = path.split_once('.')?;
        config.get(first)?.as_object().and_then(|below| config_value(below, rest))
    };
    dotted.or_else(nested)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_start_programs_or_choose_a_sandbox_by_another_name_is_outside() {
        #[rustfmt::skip]
        let table = [
            (json!({"mcp_servers": {"x": {"command": "sh"}}}), "config.mcp_servers.x.command"),
            (json!({"mcp_servers.x.command": "sh"}),           "config.mcp_servers.x.command"),
            (json!({"notify": ["sh"]}),                        "config.notify"),
            (json!({"profile": "danger"}),                     "config.profile"),
            (json!({"profiles": {"p": {"sandbox_mode": "danger-full-access"}}}),
                "config.profiles.p.sandbox_mode"),
            (json!({"permissions": {}}),                       "config.permissions"),
            (json!({"default_permissions": "x"}),              "config.default_permissions"),
            (json!({"model_providers": {"p": {"auth": {"command": "sh"}}}}),
                "config.model_providers.p.auth.command"),
            (json!({"projects": {"/x": {"trust_level": "trusted"}}}),
                "config.projects./x.trust_level"),
            (json!({"approvals_reviewer": "auto_review"}),     "config.approvals_reviewer"),
            (json!({"modelx": 1}),                             "config.modelx"),
            (json!({"shell_environment_policy.inherit": "all"}),
                "config.shell_environment_policy.inherit"),
        ];
        for (config, name) in table {
            let error = check_config(config.as_object().unwrap()).unwrap_err();
            assert_eq!(error.name, name, "{config}");
        }
        let fine = json!({"model": "m", "sandbox_mode": "read-only", "features": {"goals": true},
            "sandbox_workspace_write": {"network_access": true}});
        assert_eq!(check_config(fine.as_object().unwrap()), Ok(()));
    }

    #[test]
    fn parameters_that_are_not_listed_are_outside() {
        let check = |settings: Value| check_extras(settings.as_object().unwrap());
        assert_eq!(check(json!({"turnExtra": {"serviceTier": "flex"}})), Ok(()));
        for (extra, key) in [
            ("threadExtra", "permissions"),
            ("threadExtra", "runtimeWorkspaceRoots"),
            ("threadExtra", "environments"),
            ("turnExtra", "permissions"),
            ("turnExtra", "environments"),
            ("turnExtra", "newInSomeVersion"),
        ] {
            let error = check(json!({ extra: { key: {} } })).unwrap_err();
            assert_eq!(error.name, format!("{extra}.{key}"));
        }
    }
}
