//! Asks a person. Only a clear yes is one: no answer, a refusal and an answer we cannot read all
//! mean no.

use serde_json::{Value, json};

use super::Cx;
use crate::outlet::Refusal;
use crate::thread::ApprovalsReviewer;
use crate::thread::view::Wait;

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This once.
    Yes,
    /// This, whenever it comes again in this thread.
    ForSession,
    /// Everything that begins with these words, from now on.
    Always(Vec<String>),
    /// No, for this reason.
    No(String),
    /// No, and the turn is to end.
    Cancel,
}

/// A command to be asked about.
pub(super) struct CommandAsk<'a> {
    /// The item it belongs to.
    pub(super) item_id: &'a str,
    /// `command`, or `writeStdin` for typing into a running one.
    pub(super) kind: &'static str,
    /// As it is shown.
    pub(super) command: &'a str,
    /// Where it would run.
    pub(super) cwd: &'a str,
    /// Why it is asked, or why the model wants it.
    pub(super) reason: Option<&'a str>,
    /// What "always" would allow.
    pub(super) rule: Option<&'a [String]>,
}

/// May this command run?
pub(super) async fn command(ask: CommandAsk<'_>, cx: &Cx) -> Verdict {
    let CommandAsk { item_id, kind, command, cwd, reason, rule } = ask;
    let amendment = rule
        .map(|rule| json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": rule } }));
    let mut decisions = vec![json!("accept")];
    if kind == "command" {
        decisions.push(json!("acceptForSession"));
    }
    decisions.extend(amendment);
    decisions.extend([json!("decline"), json!("cancel")]);
    let params = json!({
        "kind": kind,
        "itemId": item_id,
        "startedAtMs": cx.voice.now_ms(),
        "environmentId": "local",
        "reason": reason,
        "command": command,
        "cwd": cwd,
        "commandActions": [{ "type": "unknown", "command": command }],
        "proposedExecpolicyAmendment": rule,
        "availableDecisions": decisions,
    });
    put("item/commandExecution/requestApproval", params, cx).await
}

/// May these files change? The changes were told with the item.
pub(super) async fn files(item_id: &str, reason: Option<&str>, cx: &Cx) -> Verdict {
    let params = json!({
        "itemId": item_id,
        "startedAtMs": cx.voice.now_ms(),
        "reason": reason,
        "grantRoot": null,
    });
    match put("item/fileChange/requestApproval", params, cx).await {
        // There are no rules for files.
        Verdict::Always(_) => unreadable(),
        verdict => verdict,
    }
}

async fn put(method: &'static str, params: Value, cx: &Cx) -> Verdict {
    match ask_reviewer(method, params, cx).await {
        Ok(answer) => read(&answer),
        Err(refusal) => Verdict::No(format!("the approval request failed: {}", refusal.why)),
    }
}

/// Puts an approval to whoever is to review it. What we cannot have reviewed is declined: the
/// client was told that nobody there is asked, and may accept whatever comes.
pub(super) async fn ask_reviewer(
    method: &'static str,
    params: Value,
    cx: &Cx,
) -> Result<Value, Refusal> {
    match cx.standing.reviewer {
        ApprovalsReviewer::User => cx.voice.ask(method, params, Some(Wait::Approval)).await,
        ApprovalsReviewer::AutoReview | ApprovalsReviewer::GuardianSubagent => {
            let why = "an automatic review is asked for, which this engine does not have";
            let hint = "set `approvalsReviewer` to `user` to be asked";
            cx.voice.warn(&format!("an approval was declined: {why}; {hint}"));
            Err(Refusal { why: format!("declined: {why}") })
        }
    }
}

fn read(answer: &Value) -> Verdict {
    let decision = &answer["decision"];
    match decision.as_str() {
        Some("accept") => return Verdict::Yes,
        Some("acceptForSession") => return Verdict::ForSession,
        Some("decline") => return Verdict::No("rejected by user".to_owned()),
        Some("cancel") => return Verdict::Cancel,
        _ => {}
    }
    let rule = &decision["acceptWithExecpolicyAmendment"]["execpolicy_amendment"];
    match serde_json::from_value::<Vec<String>>(rule.clone()) {
        Ok(rule) if !rule.is_empty() => Verdict::Always(rule),
        _ => unreadable(),
    }
}

fn unreadable() -> Verdict {
    Verdict::No("the answer to the approval request is none that is known".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let rule = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["ls"] } });
        let yes = [
            (json!("accept"), Verdict::Yes),
            (json!("acceptForSession"), Verdict::ForSession),
            (rule, Verdict::Always(vec!["ls".to_owned()])),
        ];
        for (decision, verdict) in yes {
            assert_eq!(read(&json!({ "decision": decision })), verdict);
        }
        let no = [
            json!({}),
            json!(null),
            json!("accept"),
            json!({ "decision": "yes" }),
            json!({ "decision": true }),
            json!({ "decision": "Accept" }),
            json!({ "decision": { "accept": {} } }),
            json!({ "decision": { "acceptWithExecpolicyAmendment": {} } }),
            json!({ "decision": { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": [] } } }),
            json!({ "decision": "decline" }),
        ];
        for answer in no {
            assert!(matches!(read(&answer), Verdict::No(_)), "{answer}");
        }
        assert_eq!(read(&json!({ "decision": "cancel" })), Verdict::Cancel);
    }
}
