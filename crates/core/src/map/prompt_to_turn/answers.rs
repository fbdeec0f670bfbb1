//! Tool results and approvals at the end of a prompt → answers to a turn that may be waiting.

use super::history::Split;
use super::inject::placed;
use super::notes::{Notes, Place};
use super::{Continuation, ThreadChoice, output, own};
use crate::interrupt::Answer;
use crate::open::Open;
use crate::prompt::{Message, ToolPart};
use crate::spec::Metadata;

/// Answers to the thread's own calls, or to any call if the prompt ends with them.
///
/// A fresh thread waits for nothing, but its caller may hold a turn whose thread id the history
/// has lost on its way (plain chat clients keep no metadata); the ids of the calls still tell.
pub(super) fn collect(split: &Split<'_>, notes: &mut Notes<'_>) -> Vec<Continuation> {
    let fresh = split.thread == ThreadChoice::Fresh;
    if fresh && !split.latest.is_empty() {
        return Vec::new();
    }
    let mut answers = Vec::new();
    for (index, message) in split.earlier.iter().rev() {
        let Message::Tool { content, provider_options } = message else {
            if fresh {
                break;
            }
            continue;
        };
        let parts = placed(*index, content);
        let of_message = parts.filter_map(|(place, part)| answer(part, place, split, notes));
        let mut of_message: Vec<Continuation> = of_message.collect();
        of_message.iter_mut().for_each(|answer| say_more(answer, provider_options.as_ref()));
        answers.push(of_message);
    }
    answers.into_iter().rev().flatten().collect()
}

/// Options of the message stand beneath those of its parts, which the SDK does not send.
fn say_more(answer: &mut Continuation, of_message: Option<&Metadata>) {
    if let Continuation::Approval { options, .. } = answer {
        for (name, value) in own::merged(of_message) {
            options.entry(name).or_insert(value);
        }
    }
}

fn answer(
    part: &Open<ToolPart>,
    place: Place,
    split: &Split<'_>,
    notes: &mut Notes<'_>,
) -> Option<Continuation> {
    match part {
        Open::Known(ToolPart::ToolResult(result)) => {
            let expected = split.thread == ThreadChoice::Fresh
                || split.known_calls.contains(&result.tool_call_id);
            expected.then(|| {
                let output = output::read(&result.output, place, notes);
                let content = output.pieces.iter().map(output::Piece::dynamic).collect();
                Continuation::ToolResult {
                    call_id: result.tool_call_id.clone(),
                    tool_name: result.tool_name.clone(),
                    answer: Answer::ToolResult { content, success: output.success },
                }
            })
        }
        Open::Known(ToolPart::ToolApprovalResponse {
            approval_id,
            approved,
            reason,
            provider_options,
        }) => Some(Continuation::Approval {
            approval_id: approval_id.clone(),
            approved: *approved,
            reason: reason.clone(),
            options: own::merged(provider_options.as_ref()),
        }),
        // Noted where the history is read.
        Open::Unknown { .. } => None,
    }
}
