//! The methods of Codex's app-server: which are served here, how, and which are not.
//!
//! All are named, so that a client learns whether it misspelt a method or asked for one that this
//! server leaves to Codex.

/// How a method is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// One after the other, in the order they came.
    InOrder,
    /// Beside the others.
    Beside,
}

use Run::{Beside, InOrder};

/// Methods that are served.
#[rustfmt::skip]
pub(crate) const SERVED: &[(&str, Run)] = &[
    ("initialize",                      InOrder),
    ("thread/start",                    InOrder),
    ("thread/resume",                   InOrder),
    ("thread/fork",                     InOrder),
    ("thread/archive",                  InOrder),
    ("thread/delete",                   InOrder),
    ("thread/unsubscribe",              InOrder),
    ("thread/name/set",                 InOrder),
    ("thread/unarchive",                InOrder),
    ("thread/compact/start",            InOrder),
    ("thread/list",                     Beside),
    ("thread/loaded/list",              InOrder),
    ("thread/read",                     InOrder),
    ("thread/turns/list",               InOrder),
    ("thread/items/list",               InOrder),
    ("thread/inject_items",             InOrder),
    ("skills/list",                     InOrder),
    ("hooks/list",                      InOrder),
    ("fs/readFile",                     Beside),
    ("fs/writeFile",                    Beside),
    ("fs/createDirectory",              Beside),
    ("fs/getMetadata",                  Beside),
    ("fs/readDirectory",                Beside),
    ("fs/remove",                       Beside),
    ("fs/copy",                         Beside),
    ("turn/start",                      InOrder),
    ("turn/steer",                      InOrder),
    ("turn/interrupt",                  Beside),
    ("review/start",                    InOrder),
    ("model/list",                      Beside),
    ("modelProvider/capabilities/read", InOrder),
    ("mcpServerStatus/list",            Beside),
    ("mcpServer/resource/read",         Beside),
    ("mcpServer/tool/call",             Beside),
    ("account/read",                    InOrder),
    ("account/rateLimits/read",         InOrder),
    ("getAuthStatus",                   InOrder),
    ("config/read",                     InOrder),
    ("configRequirements/read",         InOrder),
    ("command/exec",                    Beside),
];

/// Methods of Codex 0.166 that are not served.
#[rustfmt::skip]
pub(crate) const LEFT_OUT: &[&str] = &[
    "server/diagnostics", "userVerification/status", "userVerification/enroll",
    "userVerification/delete", "userVerification/verify", "userVerification/cancel",
    "thread/sample", "thread/sample/cancel", "thread/increment_elicitation",
    "thread/decrement_elicitation", "thread/prediction/request", "thread/goal/set",
    "thread/goal/get", "thread/goal/clear", "thread/queue/add", "thread/queue/list",
    "thread/queue/update", "thread/queue/delete", "thread/queue/reorder", "thread/queue/start",
    "thread/metadata/update", "thread/attachment/add", "thread/attachment/list",
    "thread/attachmentOwner/list", "thread/attachment/remove", "thread/section/move",
    "thread/settings/update", "thread/memoryMode/set", "thread/memory/read", "memory/status",
    "memory/reset", "rollout/compress", "thread/shellCommand",
    "thread/approveGuardianDeniedAction", "thread/backgroundTerminals/clean",
    "thread/backgroundTerminals/list", "thread/backgroundTerminals/terminate", "thread/revert",
    "project/list", "project/read", "project/create", "project/import", "project/update",
    "project/move", "project/delete", "threadSection/list", "threadSection/create",
    "threadSection/update", "threadSection/delete", "thread/search", "thread/searchOccurrences",
    "thread/readState/update", "thread/items/read", "skills/extraRoots/set", "marketplace/add",
    "marketplace/remove", "marketplace/upgrade", "plugin/list", "plugin/search",
    "plugin/installed", "plugin/reconcile", "plugin/read", "plugin/skill/read",
    "plugin/share/save", "plugin/share/updateTargets", "plugin/share/list",
    "plugin/share/checkout", "plugin/share/delete", "app/read", "app/list", "app/installed",
    "fs/watch", "fs/unwatch", "skills/config/write", "plugin/install", "plugin/uninstall",
    "turn/settings/update", "thread/realtime/start", "thread/realtime/appendAudio",
    "thread/realtime/appendText", "thread/realtime/appendSpeech", "thread/realtime/stop",
    "thread/timeline/list", "thread/realtime/listVoices", "account/gatewayOAuth/read",
    "account/gatewayOAuth/login", "account/gatewayOAuth/cancel", "experimentalFeature/list",
    "permissionProfile/list", "experimentalFeature/enablement/set", "remoteControl/enable",
    "remoteControl/disable", "remoteControl/status/read", "remoteControl/pairing/start",
    "remoteControl/pairing/status", "remoteControl/client/list", "remoteControl/client/revoke",
    "collaborationMode/list", "mock/experimentalMethod", "environment/add", "environment/info",
    "environment/status", "mcpServer/oauth/login", "config/mcpServer/reload",
    "mcpServer/event/stream/start", "mcpServer/event/stream/stop", "windowsSandbox/setupStart",
    "windowsSandbox/readiness",
    "account/login/start", "account/bedrock/discover", "account/bedrock/setup",
    "account/gcp/setup", "account/bedrock/checkGovCloudRequirements", "account/login/cancel",
    "accountSession/list", "accountSession/switch", "account/logout",
    "account/rateLimitResetCredit/consume", "account/usage/read",
    "account/workspaceMessages/read", "account/sendAddCreditsNudgeEmail", "feedback/upload",
    "feedback/save", "command/exec/write", "command/exec/terminate", "command/exec/resize",
    "process/spawn", "process/writeStdin", "process/kill", "process/resizePty",
    "externalAgentConfig/detect", "externalAgentConfig/import",
    "externalAgentConfig/import/recordHistory", "externalAgentConfig/import/readHistories",
    "config/value/write", "config/batchWrite", "getConversationSummary", "gitDiffToRemote",
    "fuzzyFileSearch", "fuzzyFileSearch/sessionStart", "fuzzyFileSearch/sessionUpdate",
    "fuzzyFileSearch/sessionStop",
];

/// How a method is run; none for one that is not served.
pub(crate) fn served(method: &str) -> Option<Run> {
    SERVED.iter().find(|(name, _)| *name == method).map(|(_, run)| *run)
}

/// What Codex says of a method that nobody knows, with the names of those served here.
pub(crate) fn unknown(method: &str) -> String {
    let names: Vec<String> = SERVED.iter().map(|(name, _)| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!("Invalid request: unknown variant `{method}`, expected one of {names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_served_or_left_out_and_named_once() {
        let mut names: Vec<&str> = SERVED.iter().map(|(name, _)| *name).collect();
        names.extend(LEFT_OUT);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
