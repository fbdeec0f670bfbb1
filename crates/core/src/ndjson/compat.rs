//! The original vocabulary, field for field.

use serde::Serialize;

use super::{Artifact, Event, Parameters, Role, Status};
use crate::json_text::JsonText;

/// What a reader of the original vocabulary gives meaning to.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Known<'a> {
    Init {
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a JsonText<'a>>,
        #[serde(rename = "modelId", skip_serializing_if = "Option::is_none")]
        model_id: Option<&'a JsonText<'a>>,
    },
    Message {
        role: Role,
        content: &'a JsonText<'a>,
        delta: bool,
    },
    ToolUse {
        tool_name: &'a JsonText<'a>,
        tool_id: &'a JsonText<'a>,
        parameters: &'a Parameters<'a>,
    },
    ToolResult {
        tool_id: &'a JsonText<'a>,
        status: Status,
        output: &'a JsonText<'a>,
    },
    Stderr {
        content: &'a JsonText<'a>,
    },
    Artifact(&'a Artifact),
}

/// An error is told as `stderr`, the only place the original vocabulary has for it.
pub(super) fn of<'a>(event: &'a Event<'a>) -> Option<Known<'a>> {
    Some(match event {
        Event::Init { session_id, model_id, .. } => {
            Known::Init { session_id: session_id.as_ref(), model_id: model_id.as_ref() }
        }
        Event::Message { role, content, delta, .. } => {
            Known::Message { role: *role, content, delta: *delta }
        }
        Event::ToolUse(call) => Known::ToolUse {
            tool_name: &call.tool_name,
            tool_id: &call.tool_id,
            parameters: &call.parameters,
        },
        Event::ToolResult(result) => Known::ToolResult {
            tool_id: &result.tool_id,
            status: result.status,
            output: &result.output,
        },
        Event::Stderr { content, .. } | Event::Error { message: content, .. } => {
            Known::Stderr { content }
        }
        Event::Artifact(artifact) => Known::Artifact(artifact),
        Event::Reasoning { .. }
        | Event::Plan { .. }
        | Event::Usage { .. }
        | Event::Unknown { .. }
        | Event::Result(_) => return None,
    })
}
