//! Threads in the protocol's shapes.

use serde_json::{Value, json};

use super::threads::{About, Birth};
use crate::thread::{Sandbox, Standing, ThreadView};

/// A thread as every reply carries it.
pub(crate) fn thread(view: &ThreadView, birth: &Birth, about: &About, turns: bool) -> Value {
    let cwd = view.standing.cwd.display().to_string();
    let turns = if turns { view.turns.clone() } else { Vec::new() };
    json!({
        "id": view.id,
        "environments": [{ "environmentId": "local", "cwd": cwd, "runtimeWorkspaceRoots": [cwd] }],
        "extra": null,
        "sessionId": view.id,
        "forkedFromId": birth.forked_from,
        "parentThreadId": null,
        "preview": about.preview,
        "ephemeral": birth.ephemeral,
        "section": null,
        "sectionEnteredAt": null,
        "projectId": null,
        "historyMode": "paginated",
        "modelProvider": birth.provider,
        "model": view.standing.model,
        "reasoningEffort": view.standing.effort,
        "createdAt": birth.created_at,
        "updatedAt": about.updated_at,
        "recencyAt": about.updated_at,
        "status": view.status,
        "path": birth.path,
        "cwd": cwd,
        "cliVersion": birth.cli_version,
        "originator": birth.originator,
        "source": birth.source,
        "canAcceptDirectInput": true,
        "threadSource": null,
        "agentNickname": null,
        "agentRole": null,
        "gitInfo": birth.git,
        "name": about.name,
        "daybreakEnabled": null,
        "turns": turns,
    })
}

/// The reply of `thread/start`, `thread/resume` and `thread/fork`.
pub(crate) fn opened(thread: Value, standing: &Standing, birth: &Birth) -> Value {
    let cwd = standing.cwd.display().to_string();
    json!({
        "thread": thread,
        "model": standing.model,
        "modelProvider": birth.provider,
        "serviceTier": null,
        "disabledPluginIds": [],
        "cwd": cwd,
        "runtimeWorkspaceRoots": [cwd],
        "instructionSources": birth.sources,
        "approvalPolicy": standing.approval,
        "approvalsReviewer": standing.reviewer,
        "sandbox": standing.sandbox,
        "activePermissionProfile": { "id": profile(&standing.sandbox), "extends": null },
        "reasoningEffort": standing.effort,
        "multiAgentMode": "explicitRequestOnly",
    })
}

fn profile(sandbox: &Sandbox) -> &'static str {
    match sandbox {
        Sandbox::ReadOnly { .. } => ":read-only",
        Sandbox::WorkspaceWrite { .. } => ":workspace",
        Sandbox::DangerFullAccess | Sandbox::ExternalSandbox { .. } => ":danger-full-access",
    }
}

/// A turn with as much of its items as is wanted.
pub(crate) fn turn(mut turn: Value, view: ItemsView) -> Value {
    match view {
        ItemsView::Full => {}
        ItemsView::NotLoaded => {
            turn["items"] = json!([]);
            turn["itemsView"] = json!("notLoaded");
        }
        ItemsView::Summary => {
            let items = turn["items"].as_array().cloned().unwrap_or_default();
            let first = items.iter().find(|item| item["type"] == "userMessage");
            let last = items.iter().rev().find(|item| item["type"] == "agentMessage");
            turn["items"] = first.into_iter().chain(last).cloned().collect();
            turn["itemsView"] = json!("summary");
        }
    }
    turn
}

/// How much of a turn's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ItemsView {
    /// None of them.
    NotLoaded,
    /// What was asked and what was answered.
    #[default]
    Summary,
    /// All of them.
    Full,
}
