//! Every word of the protocol and what becomes of it: one list, checked against the real binary.

/// What becomes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has a type and a mapper of its own.
    Mapped,
    /// It is passed on as a notice with all it says.
    Notice,
    /// It is not shown (or not served), because of this.
    NotShown(&'static str),
}

use Fate::{Mapped, NotShown, Notice};

const ACCOUNT: &str = "about the account, not about a turn";
const ECHO: &str = "repeats what other messages of the turn say";
const HOST: &str = "answers a host request that only its sender needs";
const HOUSE: &str = "bookkeeping of Codex's own clients";
const REALTIME: &str = "voice conversations are not turns";
const WINDOWS: &str = "about setting up Windows, not about a turn";

/// What becomes of a notification; none for one that 0.169 does not have.
pub fn notification(method: &str) -> Option<Fate> {
    find(NOTIFICATIONS, method)
}

/// What becomes of a server request; none for one that 0.169 does not have.
pub fn server_request(method: &str) -> Option<Fate> {
    find(SERVER_REQUESTS, method)
}

/// What becomes of a thread item; none for one that 0.169 does not have.
pub fn thread_item(kind: &str) -> Option<Fate> {
    find(THREAD_ITEMS, kind)
}

fn find(table: &[(&str, Fate)], word: &str) -> Option<Fate> {
    table.iter().find(|(name, _)| *name == word).map(|(_, fate)| *fate)
}

/// All notifications.
#[rustfmt::skip]
pub const NOTIFICATIONS: &[(&str, Fate)] = &[
    ("error", Mapped),
    ("thread/started", Mapped),
    ("thread/tokenUsage/updated", Mapped),
    ("turn/started", Mapped),
    ("turn/completed", Mapped),
    ("turn/diff/updated", Mapped),
    ("turn/plan/updated", Mapped),
    ("item/started", Mapped),
    ("item/completed", Mapped),
    ("item/agentMessage/delta", Mapped),
    ("item/plan/delta", Mapped),
    ("item/reasoning/summaryPartAdded", Mapped),
    ("item/reasoning/summaryTextDelta", Mapped),
    ("item/reasoning/textDelta", Mapped),
    ("item/commandExecution/outputDelta", Mapped),
    ("item/commandExecution/terminalInteraction", Mapped),
    ("item/fileChange/patchUpdated", Mapped),
    ("item/mcpToolCall/progress", Mapped),
    ("serverRequest/resolved", Mapped),

    ("warning", Notice),
    ("guardianWarning", Notice),
    ("configWarning", Notice),
    ("deprecationNotice", Notice),
    ("model/rerouted", Notice),
    ("model/verification", Notice),
    ("model/safetyBuffering/updated", Notice),
    ("modelProvider/authRecoveryStarted", Notice),
    ("modelProvider/authRecoveryCompleted", Notice),
    ("turn/moderationMetadata", Notice),
    ("hook/started", Notice),
    ("hook/completed", Notice),
    ("item/autoApprovalReview/started", Notice),
    ("item/autoApprovalReview/completed", Notice),
    ("autoApprovalReview/strictReviewRequired", Notice),
    ("mcpServer/startupStatus/updated", Notice),
    ("mcpServer/event/stream/notification", Notice),
    ("thread/goal/updated", Notice),
    ("thread/reverted", Notice),
    ("thread/environment/connected", Notice),
    ("thread/environment/disconnected", Notice),

    ("account/rateLimits/updated", NotShown(ACCOUNT)),
    ("account/updated", NotShown(ACCOUNT)),
    ("account/login/completed", NotShown(ACCOUNT)),
    ("account/gatewayOAuth/changed", NotShown(ACCOUNT)),
    ("mcpServer/oauthLogin/completed", NotShown(ACCOUNT)),

    ("thread/status/changed", NotShown(ECHO)),
    ("thread/compacted", NotShown(ECHO)),
    ("item/fileChange/outputDelta", NotShown("deprecated and no longer sent")),
    ("rawResponseItem/completed", Mapped),
    ("rawResponse/completed", Mapped),

    ("command/exec/outputDelta", NotShown(HOST)),
    ("process/outputDelta", NotShown(HOST)),
    ("process/exited", NotShown(HOST)),
    ("fs/changed", NotShown(HOST)),
    ("fuzzyFileSearch/sessionUpdated", NotShown(HOST)),
    ("fuzzyFileSearch/sessionCompleted", NotShown(HOST)),
    ("externalAgentConfig/import/progress", NotShown(HOST)),
    ("externalAgentConfig/import/completed", NotShown(HOST)),

    ("app/list/updated", NotShown(HOUSE)),
    ("project/changed", NotShown(HOUSE)),
    ("remoteControl/status/changed", NotShown(HOUSE)),
    ("skills/changed", NotShown(HOUSE)),
    ("thread/archived", NotShown(HOUSE)),
    ("thread/unarchived", NotShown(HOUSE)),
    ("thread/deleted", NotShown(HOUSE)),
    ("thread/closed", NotShown(HOUSE)),
    ("thread/attachment/updated", NotShown(HOUSE)),
    ("thread/goal/cleared", NotShown(HOUSE)),
    ("thread/name/updated", NotShown(HOUSE)),
    ("thread/prediction/updated", NotShown(HOUSE)),
    ("thread/project/updated", NotShown(HOUSE)),
    ("thread/section/changed", NotShown(HOUSE)),
    ("thread/queue/changed", NotShown(HOUSE)),
    ("thread/readState/changed", NotShown(HOUSE)),
    ("thread/settings/updated", NotShown(HOUSE)),

    ("thread/realtime/started", NotShown(REALTIME)),
    ("thread/realtime/itemAdded", NotShown(REALTIME)),
    ("thread/realtime/item/started", NotShown(REALTIME)),
    ("thread/realtime/item/transcript/delta", NotShown(REALTIME)),
    ("thread/realtime/item/completed", NotShown(REALTIME)),
    ("thread/realtime/transcript/delta", NotShown(REALTIME)),
    ("thread/realtime/transcript/done", NotShown(REALTIME)),
    ("thread/realtime/outputAudio/delta", NotShown(REALTIME)),
    ("thread/realtime/sdp", NotShown(REALTIME)),
    ("thread/realtime/error", NotShown(REALTIME)),
    ("thread/realtime/closed", NotShown(REALTIME)),

    ("windows/worldWritableWarning", NotShown(WINDOWS)),
    ("windowsSandbox/setupCompleted", NotShown(WINDOWS)),
];

/// All requests of the server.
#[rustfmt::skip]
pub const SERVER_REQUESTS: &[(&str, Fate)] = &[
    ("item/commandExecution/requestApproval", Mapped),
    ("item/fileChange/requestApproval", Mapped),
    ("item/permissions/requestApproval", Mapped),
    ("item/tool/call", Mapped),
    ("item/tool/requestUserInput", Mapped),
    ("mcpServer/elicitation/request", Mapped),
    ("account/chatgptAuthTokens/refresh", NotShown("Codex keeps its own login")),
    ("attestation/generate", NotShown("we do not ask for this capability")),
    ("currentTime/read", NotShown("the clock of Codex's machine is the right one")),
    ("applyPatchApproval", NotShown("of API v1, not sent for v2 turns")),
    ("execCommandApproval", NotShown("of API v1, not sent for v2 turns")),
];

/// All thread items.
#[rustfmt::skip]
pub const THREAD_ITEMS: &[(&str, Fate)] = &[
    ("userMessage", Mapped),
    ("hookPrompt", Mapped),
    ("agentMessage", Mapped),
    ("functionCallOutput", Mapped),
    ("plan", Mapped),
    ("reasoning", Mapped),
    ("commandExecution", Mapped),
    ("fileChange", Mapped),
    ("mcpToolCall", Mapped),
    ("dynamicToolCall", Mapped),
    ("collabAgentToolCall", Mapped),
    ("subAgentActivity", Mapped),
    ("webSearch", Mapped),
    ("imageView", Mapped),
    ("sleep", Mapped),
    ("imageGeneration", Mapped),
    ("enteredReviewMode", Mapped),
    ("exitedReviewMode", Mapped),
    ("contextCompaction", Mapped),
];
