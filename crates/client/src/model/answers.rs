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
        Continuation::Approval { approval_id, approved, reason, options } => {
            let unknown = || AnswerError::Unknown(approval_id.clone());
            let record = interrupts.get(&approval_id).ok_or_else(unknown)?;
            // A token answers only for the thread that asked.
            if record.interrupt.thread_id != *thread {
                return Err(unknown());
            }
            let reason = reason.as_deref().unwrap_or_default();
            let answer = approval_answer(&record.interrupt.ask, approved, reason, &options);
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
/// The SDK's own answer has but a boolean and a reason, so the reason may hold what was asked for.
pub fn approval_answer(
    ask: &Ask,
    approved: bool,
    reason: &str,
    options: &Map<String, Value>,
) -> Answer {
    if !approved {
        return refusal(ask, options);
    }
    match ask {
        Ask::Permissions { permissions, .. } => {
            let for_session = options.get("forSession") == Some(&Value::Bool(true));
            Answer::Permissions { granted: permissions.clone(), for_session }
        }
        Ask::UserInput { questions } => {
            let answers = options.get("answers").and_then(Value::as_object).cloned();
            let answers = answers.or_else(|| answers_in(reason, questions));
            Answer::UserInput { answers: answers.unwrap_or_default() }
        }
        Ask::Elicitation { tool_params: None, .. } => Answer::Elicitation {
            action: ElicitationAction::Accept,
            content: options.get("content").cloned().or_else(|| form_in(reason).map(Value::Object)),
        },
        _ => Answer::decision(decision(options).unwrap_or(Decision::Accept)),
    }
}

/// Answers by question as JSON, or the words that answer the only question.
fn answers_in(reason: &str, questions: &[Value]) -> Option<Map<String, Value>> {
    if let Some(answers) = form_in(reason) {
        return Some(answers);
    }
    match questions {
        [only] if !reason.is_empty() => {
            let id = only.get("id")?.as_str()?.to_owned();
            Some(Map::from_iter([(id, Value::from(reason))]))
        }
        _ => None,
    }
}

/// A filled form as JSON.
fn form_in(reason: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(reason).ok()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn questions(ids: &[&str]) -> Ask {
        Ask::UserInput { questions: ids.iter().map(|id| json!({ "id": id })).collect() }
    }

    fn said(ask: &Ask, approved: bool, reason: &str) -> Value {
        serde_json::to_value(approval_answer(ask, approved, reason, &Map::new())).unwrap()
    }

    #[test]
    fn a_reason_answers_the_only_question_or_all_of_them_as_json() {
        let (one, two) = (questions(&["a"]), questions(&["a", "b"]));
        #[rustfmt::skip]
        let table = [
            (&one, true,  "Red",                    json!({ "a": "Red" })),
            (&one, true,  r#"{"a":"Blue"}"#,        json!({ "a": "Blue" })),
            (&two, true,  r#"{"a":"x","b":["y"]}"#, json!({ "a": "x", "b": ["y"] })),
            (&two, true,  "Red",                    json!({})),
            (&one, true,  "",                       json!({})),
            (&one, false, "Red",                    json!({})),
        ];
        for (ask, approved, reason, want) in table {
            assert_eq!(said(ask, approved, reason)["answers"], want, "{approved} {reason}");
        }
    }

    #[test]
    fn a_reason_fills_the_form_of_a_server_and_approves_nothing_by_itself() {
        let ask = Ask::Elicitation {
            server: "s".into(),
            message: "Who?".into(),
            mode: "form".into(),
            schema: None,
            tool_params: None,
            persist: vec![],
        };
        let form = r#"{"name":"Ann"}"#;
        assert_eq!(said(&ask, true, form)["content"], json!({ "name": "Ann" }));
        assert_eq!(said(&ask, false, form)["action"], "decline");
        assert_eq!(said(&ask, true, "sure")["content"], Value::Null);
    }
}
