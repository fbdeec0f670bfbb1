//! What the policy lets through, and what it makes of it.

use super::*;

const NONE: Policy = Policy { full_access: false, config: false, escalation: None };
const CONFIG: Policy = Policy { full_access: false, config: true, escalation: None };
const ALL: Policy = Policy { full_access: true, config: true, escalation: None };

/// A tenant with a root that has the folder `in`, and a home with this `config.toml`.
struct Place {
    _folder: tempfile::TempDir,
    settings: TenantSettings,
}

impl Place {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let (home, root) = (path.join("home"), path.join("root"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(home.join("config.toml"), config.replace("ROOT", root.to_str().unwrap()))
            .unwrap();
        Self { _folder: folder, settings: TenantSettings::new(home, root) }
    }

    /// What settings become, or the code of the refusal.
    fn confined(&self, policy: Policy, options: Value) -> Result<Value, &'static str> {
        let mut options = options.as_object().unwrap().clone();
        policy.check(&options).map_err(|err| err.code())?;
        let (settings, cwd) = (&self.settings, &self.settings.root);
        policy.confine(settings, cwd, &mut options).map_err(|err| err.code())?;
        Ok(Value::Object(options))
    }
}

#[test]
fn what_reaches_out_must_be_allowed() {
    let place = Place::new("");
    let code = |policy, options| place.confined(policy, options).err();
    assert_eq!(code(NONE, json!({"model": "m", "sandbox": "read-only"})), None);
    assert_eq!(code(NONE, json!({"sandbox": "danger-full-access"})), Some("forbidden"));
    assert_eq!(code(NONE, json!({"config": {}})), Some("forbidden"));
    assert_eq!(code(NONE, json!({"sandboxx": 1})), Some("invalid"));
    assert_eq!(code(ALL, json!({"sandbox": "danger-full-access", "config": {}})), None);
}

#[test]
fn no_name_for_full_access_gets_past_a_tenant_without_it() {
    let place = Place::new("");
    #[rustfmt::skip]
    let table = [
        json!({"sandbox": "danger-full-access"}),
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}}),
        json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/"]}}),
        json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/none"]}}),
        json!({"config": {"sandbox_mode": "danger-full-access"}}),
        json!({"sandbox": "read-only", "config": {"sandbox_mode": "danger-full-access"}}),
        json!({"sandbox": "danger-full-access", "sandboxPolicy": {"type": "readOnly"}}),
        json!({"config": {"sandbox_workspace_write.writable_roots": ["/"]}}),
        json!({"config": {"sandbox_workspace_write": {"writable_roots": ["/"]}}}),
        json!({"config": {"profile": "p"}}),
        json!({"config": {"permissions": {"p": {}}}}),
        json!({"config": {"default_permissions": ":danger-no-sandbox"}}),
        json!({"config": {"approvals_reviewer": "auto_review"}}),
        json!({"config": {"mcp_servers.x.command": "sh"}}),
        json!({"threadExtra": {"permissions": ":danger-no-sandbox"}}),
        json!({"turnExtra": {"permissions": {}}}),
        json!({"approvalsReviewer": "auto_review"}),
        json!({"approvalsReviewer": "guardian_subagent"}),
    ];
    for options in table {
        let refused = place.confined(CONFIG, options.clone());
        assert_eq!(refused, Err("forbidden"), "{options}");
    }
}

#[test]
fn the_sandbox_of_a_tenant_without_full_access_is_written_down_in_full() {
    let written = json!({ "type": "workspaceWrite", "writableRoots": [], "networkAccess": false,
        "excludeTmpdirEnvVar": false, "excludeSlashTmp": false });
    let read = json!({ "type": "readOnly", "networkAccess": false });
    let online = |network: bool| {
        let mut policy = written.clone();
        policy["networkAccess"] = json!(network);
        policy
    };
    #[rustfmt::skip]
    let table = [
        // the home                              the call                  what is in force
        ("",                                     json!({}),                              &read),
        ("",                                     json!({"sandbox": "workspace-write"}),  &written),
        ("sandbox_mode = 'workspace-write'",     json!({}),                              &written),
        ("sandbox_mode = 'workspace-write'",     json!({"sandbox": "read-only"}),        &read),
        ("sandbox_mode = 'danger-full-access'",  json!({}),                              &written),
        ("sandbox_mode = 'new-in-some-version'", json!({}),                              &read),
        ("profile = 'p'\n[profiles.p]\nsandbox_mode = 'danger-full-access'",
            json!({}), &written),
        ("[projects.'ROOT']\ntrust_level = 'trusted'",   json!({}),                      &written),
        ("[projects.'ROOT']\ntrust_level = 'untrusted'", json!({}),                      &read),
        ("broken = ",                            json!({}),                              &read),
        ("sandbox_mode = 'workspace-write'\n[sandbox_workspace_write]\nnetwork_access = true",
            json!({}), &online(true)),
        ("sandbox_mode = 'workspace-write'\n[sandbox_workspace_write]\nnetwork_access = true",
            json!({"config": {"sandbox_workspace_write.network_access": false}}), &online(false)),
        ("", json!({"config": {"sandbox_mode": "workspace-write",
            "sandbox_workspace_write": {"network_access": true}}}), &online(true)),
        ("sandbox_mode = 'danger-full-access'", json!({"sandboxPolicy": {"type": "readOnly"}}),
            &read),
    ];
    for (home, options, want) in table {
        let options_told = options.to_string();
        let got = Place::new(home).confined(CONFIG, options).unwrap();
        assert_eq!(&got["sandboxPolicy"], want, "{home} {options_told}");
        let mode = if want["type"] == "readOnly" { "read-only" } else { "workspace-write" };
        assert_eq!(got["sandbox"], mode, "{home} {options_told}");
        assert_eq!(got["approvalsReviewer"], "user");
        assert_eq!(got.get("config"), None, "{home} {options_told}");
    }
    let place = Place::new("");
    let inside = place.settings.root.join("in");
    let roots = json!({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": [inside]}});
    let got = place.confined(CONFIG, roots).unwrap();
    assert_eq!(got["sandboxPolicy"]["writableRoots"], json!([inside]));
    assert_eq!(place.confined(ALL, json!({"model": "m"})), Ok(json!({"model": "m"})));
}

#[test]
fn who_may_escalate_depends_on_full_access_unless_it_is_said() {
    assert_eq!((NONE.escalation(), ALL.escalation()), (Escalation::Deny, Escalation::Any));
    let said = Policy { escalation: Some(Escalation::Approver), ..ALL };
    assert_eq!(said.escalation(), Escalation::Approver);
    let place = Place::new("");
    let reviewer = json!({"approvalsReviewer": "auto_review"});
    assert_eq!(place.confined(said, reviewer.clone()), Err("forbidden"));
    assert_eq!(place.confined(ALL, reviewer.clone()), Ok(reviewer));
    let read: Policy = toml::from_str("full_access = false\nescalation = 'approver'").unwrap();
    assert_eq!(read.escalation(), Escalation::Approver);
    assert!(toml::from_str::<Policy>("escalation = 'maybe'").is_err());
}
