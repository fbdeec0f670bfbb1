//! Requests of the server → the call they are about, `tool-approval-request`, and an interrupt.

use serde_json::{Value, json};

use super::item::tool_name;
use super::notice::unknown;
use super::{TurnMapper, tools::Tools};
use crate::ids::{ApprovalId, CallId, ItemId};
use crate::interrupt::{Ask, Interrupt};
use crate::part::Part;
use crate::spec::codex_metadata;
use crate::wire::app_server::request::{Body, CommandApproval, Elicitation, ServerRequest};

/// Names of calls that stand for a question about no call.
const ALONE: &str = "question:";

/// Whether a call was made up for a question.
pub(super) fn stands_alone(item: &ItemId) -> bool {
    item.as_str().starts_with(ALONE)
}

/// Maps one request; the interrupt is none for what nobody can answer.
pub(super) fn ask(
    mapper: &mut TurnMapper,
    id: &ApprovalId,
    request: &ServerRequest,
    parts: &mut Vec<Part>,
) -> Option<Interrupt> {
    let thread = request.address.thread_id.clone()?;
    if thread != mapper.context.thread_id {
        let (more, interrupt) = mapper.agents.ask(id, request)?;
        parts.extend(more);
        return interrupt;
    }
    // Another turn of the thread is nothing to the reader of this one.
    if request.address.turn_id.as_ref().is_some_and(|turn| *turn != mapper.context.turn_id) {
        return None;
    }
    let Some(ask) = ask_of(mapper, request) else {
        if let Body::Unknown { why } = &request.body {
            parts.push(unknown(&request.method, why, &request.params));
        }
        return None;
    };
    let call_id = call_of(mapper, id, request, &ask, parts);
    let turn_id = request.address.turn_id.clone().unwrap_or(mapper.context.turn_id.clone());
    let interrupt = Interrupt { id: id.clone(), thread_id: thread, turn_id, call_id, ask };
    // A client tool's call is the question itself; everything else wants an approval.
    if !matches!(interrupt.ask, Ask::ToolCall { .. }) {
        let details = serde_json::to_value(&interrupt.ask).unwrap_or_default();
        parts.push(Part::ToolApprovalRequest {
            approval_id: id.clone(),
            tool_call_id: interrupt.call_id.clone(),
            provider_metadata: codex_metadata(details),
        });
    }
    Some(interrupt)
}

fn ask_of(mapper: &TurnMapper, request: &ServerRequest) -> Option<Ask> {
    Some(match &request.body {
        Body::Command(approval) => command(approval),
        Body::FileChange(approval) => Ask::FileChange {
            changes: changes(&mapper.tools, request.address.item_id.as_ref()),
            reason: approval.reason.clone(),
            grant_root: approval.grant_root.clone(),
        },
        Body::Permissions(approval) => Ask::Permissions {
            permissions: approval.permissions.clone(),
            reason: approval.reason.clone(),
            cwd: approval.cwd.clone(),
        },
        Body::UserInput(input) => Ask::UserInput { questions: input.questions.clone() },
        Body::Elicitation(elicitation) => elicited(elicitation),
        Body::ToolCall(call) => Ask::ToolCall {
            tool: call.tool.clone(),
            namespace: call.namespace.clone(),
            arguments: call.arguments.clone(),
        },
        Body::NotServed(_) | Body::Unknown { .. } => return None,
    })
}

fn command(approval: &CommandApproval) -> Ask {
    let kind = approval.kind.as_deref();
    Ask::Command {
        command: approval.command.clone().unwrap_or_default(),
        cwd: approval.cwd.clone().unwrap_or_default(),
        reason: approval.reason.clone(),
        into_running: kind == Some("writeStdin"),
        // `humanCommand` (0.169) wants this. So does a kind that we do not know: it gets the
        // narrowest yes there is.
        person_required: !matches!(kind, None | Some("command" | "writeStdin")),
        rule: approval.proposed_execpolicy_amendment.clone(),
        network: approval.network_approval_context.clone(),
        network_rules: approval.proposed_network_policy_amendments.clone().unwrap_or_default(),
    }
}

fn elicited(elicitation: &Elicitation) -> Ask {
    let meta = elicitation.meta.as_ref();
    let is_tool = meta
        .and_then(|meta| meta.get("codex_approval_kind"))
        .is_some_and(|kind| kind == "mcp_tool_call");
    let tool_params = meta.and_then(|meta| meta.get("tool_params")).cloned();
    let persist = meta.and_then(|meta| meta.get("persist")).cloned().unwrap_or_default();
    Ask::Elicitation {
        server: elicitation.server_name.clone(),
        message: elicitation.message.clone().unwrap_or_default(),
        mode: elicitation.mode.clone().unwrap_or_default(),
        schema: elicitation.requested_schema.clone(),
        tool_params: is_tool.then(|| tool_params.unwrap_or(json!({}))),
        persist: serde_json::from_value(persist).unwrap_or_default(),
    }
}

/// The changes are not in the request; they were announced with the item.
fn changes(tools: &Tools, item: Option<&ItemId>) -> Vec<crate::item::FileChange> {
    item.map(|item| tools.changes(item)).unwrap_or_default()
}

/// The call a question is about; a question about no call becomes one, since an approval request
/// must follow its call.
fn call_of(
    mapper: &mut TurnMapper,
    id: &ApprovalId,
    request: &ServerRequest,
    ask: &Ask,
    parts: &mut Vec<Part>,
) -> CallId {
    if let Ask::Elicitation { server, tool_params: Some(_), .. } = ask
        && let Some(call) = mapper.tools.newest_with_prefix(&format!("mcp:{server}/"))
    {
        return call;
    }
    if let Some(item) = request.address.item_id.as_ref().filter(|item| mapper.tools.is_open(item)) {
        return CallId::new(item.as_str());
    }
    let item = match (&request.address.item_id, ask) {
        (Some(item), Ask::Command { .. } | Ask::FileChange { .. } | Ask::ToolCall { .. }) => {
            item.clone()
        }
        _ => ItemId::new(format!("{ALONE}{id}")),
    };
    let (name, input) = call_for(ask, &request.params);
    mapper.tools.call(&item, &name, &input, parts);
    CallId::new(item.as_str())
}

fn call_for(ask: &Ask, params: &Value) -> (String, Value) {
    match ask {
        Ask::Command { command, cwd, .. } => {
            ("codex_command_execution".into(), json!({ "command": command, "cwd": cwd }))
        }
        Ask::FileChange { changes, .. } => {
            ("codex_file_change".into(), json!({ "changes": changes }))
        }
        Ask::Permissions { .. } => ("codex_permissions".into(), params.clone()),
        Ask::UserInput { .. } => ("codex_user_input".into(), params.clone()),
        Ask::Elicitation { .. } => ("codex_elicitation".into(), params.clone()),
        Ask::ToolCall { tool, namespace, arguments } => {
            (tool_name(namespace.as_deref(), tool), arguments.clone())
        }
    }
}
