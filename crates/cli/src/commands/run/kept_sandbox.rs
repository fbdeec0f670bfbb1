//! The sandbox that a thread had in its last turn. Neither Codex nor the engine goes back to it
//! when a thread goes on: they take the configured one, which may allow more.

use bindery::AppServer;
use bindery::core::ids::ThreadId;
use bindery::sessions::resume;
use serde_json::{Map, Value, json};

use super::resume::explained;
use crate::failure::Hinted;

/// A sandbox, as a thread is opened with it and as its turns are told it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptSandbox {
    /// The mode; none for a policy that no mode names.
    pub(super) mode: Option<&'static str>,
    /// The whole policy, in the words of the app-server protocol.
    pub(super) policy: Value,
}

/// Reads it from the thread's session file; none where no turn of it was recorded.
pub(super) async fn read(
    server: &AppServer,
    thread: &ThreadId,
) -> anyhow::Result<Option<KeptSandbox>> {
    let known = server.read_thread(thread).await;
    let known = known.map_err(|err| explained(err, Some(thread.as_str())))?;
    let Some(path) = known.path else { return Ok(None) };
    let options = resume::Options { turns: 0, ..resume::Options::default() };
    let load = move || resume::load(path.as_ref(), &[], options);
    let resumed = tokio::task::spawn_blocking(load).await??;
    let context = resumed.turn_context.unwrap_or_default();
    match &context["sandbox_policy"] {
        Value::Null => Ok(None),
        policy => translated(policy).map(Some).ok_or_else(|| {
            let message = format!("the thread's last turn had a sandbox of unknown kind: {policy}");
            Hinted::misuse(message, "say which one it shall have now, with `--sandbox`")
        }),
    }
}

/// A policy of a session file in the words of the protocol.
fn translated(policy: &Value) -> Option<KeptSandbox> {
    // Sessions of the first versions say `mode`.
    let kind = policy["type"].as_str().or(policy["mode"].as_str()).or(policy.as_str())?;
    let (mode, kind, keys): (_, _, &[(&str, &str)]) = match kind {
        "danger-full-access" => (Some("danger-full-access"), "dangerFullAccess", &[]),
        "read-only" => (Some("read-only"), "readOnly", &[("network_access", "networkAccess")]),
        "workspace-write" => (
            Some("workspace-write"),
            "workspaceWrite",
            &[
                ("writable_roots", "writableRoots"),
                ("network_access", "networkAccess"),
                ("exclude_tmpdir_env_var", "excludeTmpdirEnvVar"),
                ("exclude_slash_tmp", "excludeSlashTmp"),
            ],
        ),
        "external-sandbox" => (None, "externalSandbox", &[("network_access", "networkAccess")]),
        _ => return None,
    };
    let mut said = Map::from_iter([("type".to_owned(), json!(kind))]);
    let known = keys.iter().filter(|(old, _)| !policy[old].is_null());
    said.extend(known.map(|(old, new)| ((*new).to_owned(), policy[old].clone())));
    Some(KeptSandbox { mode, policy: Value::Object(said) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_a_session_file_has_its_words_in_the_protocol() {
        let workspace = json!({
            "type": "workspace-write", "writable_roots": ["/a"], "network_access": true,
            "exclude_tmpdir_env_var": false, "exclude_slash_tmp": true,
        });
        let want = json!({
            "type": "workspaceWrite", "writableRoots": ["/a"], "networkAccess": true,
            "excludeTmpdirEnvVar": false, "excludeSlashTmp": true,
        });
        let kept = translated(&workspace).unwrap();
        assert_eq!((kept.mode, kept.policy), (Some("workspace-write"), want));
        let old = translated(&json!({ "mode": "read-only" })).unwrap();
        assert_eq!((old.mode, old.policy), (Some("read-only"), json!({ "type": "readOnly" })));
        let outer = translated(&json!({ "type": "external-sandbox", "network_access": "enabled" }));
        let want = json!({ "type": "externalSandbox", "networkAccess": "enabled" });
        assert_eq!(outer.map(|kept| (kept.mode, kept.policy)), Some((None, want)));
    }

    #[test]
    fn an_unknown_kind_is_not_guessed() {
        assert_eq!(translated(&json!({ "type": "lunar" })), None);
        assert_eq!(translated(&json!({})), None);
    }
}
