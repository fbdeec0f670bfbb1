//! A later call's answers → the turn that waits for them.

use bindery_core::ids::{ApprovalId, ThreadId};
use bindery_core::interrupt::{Answer, Ask, Decision, ElicitationAction};
use bindery_core::map::prompt_to_turn::Continuation;
use serde_json::{Map, Value};

use crate::interrupts::{AnswerError, Interrupts};

/// Gives the answers of a call to the turn that waits; tells which were not taken, and why.
pub(super) fn deliver(
    interrupts: &Interrupts,
    thread: &ThreadId,
    answers: Vec<Continuation>,
) -> Vec<AnswerError> {
    answers.into_iter().filter_map(|answer| one(interrupts, thread, answer).err()).collect()
}

fn one(
    interrupts: &Interrupts,
    thread: &ThreadId,
    answer: Continuation,
) -> Result<(), AnswerError> {
    match answer {
        Continuation::Approval { approval_id, approved, reason: _, options } => {
            let unknown = || AnswerError::Unknown(approval_id.clone());
            let record = interrupts.get(&approval_id).ok_or_else(unknown)?;
            // A token answers only for the thread that asked.
            if record.interrupt.thread_id != *thread {
                return Err(unknown());
            }
            let answer = approval(&record.interrupt.ask, approved, &options);
            interrupts.answer(&approval_id, answer)
        }
        Continuation::ToolResult { call_id, answer, .. } => {
            let unknown = || AnswerError::Unknown(ApprovalId::new(call_id.as_str()));
            let token = interrupts.of_call(thread, &call_id).ok_or_else(unknown)?;
            interrupts.answer(&token, answer)
        }
    }
}

/// Yes or no in the words of the question; `decision` and `answers` among the options say more.
fn approval(ask: &Ask, approved: bool, options: &Map<String, Value>) -> Answer {
    if !approved {
        return refusal(ask, options);
    }
    match ask {
        Ask::Permissions { permissions, .. } => {
            let for_session = options.get("forSession") == Some(&Value::Bool(true));
            Answer::Permissions { granted: permissions.clone(), for_session }
        }
        Ask::UserInput { .. } => {
            let answers = options.get("answers").and_then(Value::as_object).cloned();
            Answer::UserInput { answers: answers.unwrap_or_default() }
        }
        Ask::Elicitation { tool_params: None, .. } => Answer::Elicitation {
            action: ElicitationAction::Accept,
            content: options.get("content").cloned(),
        },
        _ => Answer::decision(decision(options).unwrap_or(Decision::Accept)),
    }
}

/// A refusal may be made stronger (`cancel`), never weaker.
fn refusal(ask: &Ask, options: &Map<String, Value>) -> Answer {
    let decidable = matches!(ask, Ask::Command { .. } | Ask::FileChange { .. });
    match decision(options) {
        Some(Decision::Cancel) if decidable => Answer::decision(Decision::Cancel),
        _ => Answer::refusal(ask, "the user said no"),
    }
}

fn decision(options: &Map<String, Value>) -> Option<Decision> {
    serde_json::from_value(options.get("decision")?.clone()).ok()
}
