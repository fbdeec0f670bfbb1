//! What a thread may do by itself and what it asks first, in the protocol's own shapes.

use std::path::PathBuf;

use bindery_core::open::Open;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When the person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Before anything that is not known to be harmless.
    Untrusted,
    /// When the model asks for more than the sandbox gives.
    #[default]
    #[serde(alias = "on-failure")]
    OnRequest,
    /// Never: what would need an answer is refused.
    Never,
    /// As on request, for the kinds of question that are switched on; others are refused.
    Granular(Granular),
}

/// Who answers when an approval is needed. A word that we do not know is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalsReviewer {
    /// The person.
    #[default]
    User,
    /// A model, in the person's place. The engine has no such reviewer, so it declines.
    AutoReview,
    /// The older word for the same.
    GuardianSubagent,
}

/// Which kinds of question are asked. Two of them have nothing to ask about here yet: there are no
/// skills and no requests for permissions. They are kept for whoever reads the thread's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granular {
    /// To leave the sandbox, or to run what destroys things.
    pub sandbox_approval: bool,
    /// Because a rule says so.
    pub rules: bool,
    /// To use a skill.
    #[serde(default)]
    pub skill_approval: bool,
    /// For more permissions.
    #[serde(default)]
    pub request_permissions: bool,
    /// Of MCP servers; whether a tool of theirs may be called is always asked.
    pub mcp_elicitations: bool,
}

/// What commands can reach: `sandboxPolicy` of `turn/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Sandbox {
    /// Everything.
    DangerFullAccess,
    /// Files can be read, none written.
    ReadOnly {
        /// Whether the network is open.
        #[serde(default)]
        network_access: bool,
    },
    /// Somebody else fences us in.
    ExternalSandbox {
        /// `restricted` or `enabled`.
        #[serde(default)]
        network_access: Option<String>,
    },
    /// Files in the roots can be written.
    WorkspaceWrite {
        /// Roots beside the thread's folder.
        #[serde(default)]
        writable_roots: Vec<PathBuf>,
        /// Whether the network is open.
        #[serde(default)]
        network_access: bool,
        /// `$TMPDIR` is no root.
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        /// `/tmp` is no root.
        #[serde(default)]
        exclude_slash_tmp: bool,
    },
}

impl Approval {
    /// Reads the protocol's value. What we do not know is the strictest: a policy must not become
    /// looser because it is newer than we are.
    pub fn read(value: &Value) -> Self {
        match Open::<Self>::from_value(value.clone()) {
            Open::Known(approval) => approval,
            Open::Unknown { .. } => Self::Untrusted,
        }
    }

    /// Whether a person may be asked to let something leave the sandbox.
    pub(crate) fn asks_about_sandbox(self) -> bool {
        match self {
            Self::Untrusted | Self::OnRequest => true,
            Self::Never => false,
            Self::Granular(kinds) => kinds.sandbox_approval,
        }
    }

    /// Whether a person may be asked by MCP servers.
    pub(crate) fn lets_servers_ask(self) -> bool {
        match self {
            Self::Untrusted | Self::OnRequest => true,
            Self::Never => false,
            Self::Granular(kinds) => kinds.mcp_elicitations,
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::ReadOnly { network_access: false }
    }
}

impl Sandbox {
    /// Writing in the thread's folder and the temporary ones, without network.
    pub fn workspace() -> Self {
        Self::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: false,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        }
    }

    /// The policy of a mode's name: `read-only`, `workspace-write`, `danger-full-access`.
    pub fn of_mode(mode: &str) -> Option<Self> {
        Some(match mode {
            "read-only" => Self::ReadOnly { network_access: false },
            "workspace-write" => Self::workspace(),
            "danger-full-access" => Self::DangerFullAccess,
            _ => return None,
        })
    }

    /// Whether everything was allowed by name.
    pub fn is_full_access(&self) -> bool {
        matches!(self, Self::DangerFullAccess)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_we_do_not_know_is_the_strictest() {
        assert_eq!(Approval::read(&json!("on-request")), Approval::OnRequest);
        assert_eq!(Approval::read(&json!({ "granular": {} })), Approval::Untrusted);
        assert_eq!(Approval::read(&json!("sometimes")), Approval::Untrusted);
    }

    #[test]
    fn kinds_of_question_are_read_and_told_in_the_protocol_s_shape() {
        let said = json!({ "granular": { "sandbox_approval": true, "rules": false,
            "mcp_elicitations": true } });
        let approval = Approval::read(&said);
        let told = json!({ "granular": { "sandbox_approval": true, "rules": false,
            "skill_approval": false, "request_permissions": false, "mcp_elicitations": true } });
        assert_eq!(json!(approval), told);
        assert!(approval.asks_about_sandbox() && approval.lets_servers_ask());
        assert_eq!(Approval::read(&told), approval);
    }

    #[test]
    fn modes_and_objects_mean_the_same() {
        let object = json!({ "type": "workspaceWrite", "networkAccess": false });
        let policy: Sandbox = serde_json::from_value(object).expect("a policy");
        assert_eq!(Some(policy), Sandbox::of_mode("workspace-write"));
        assert_eq!(Sandbox::of_mode("everything"), None);
    }
}
