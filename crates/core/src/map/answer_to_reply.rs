//! An answer → the result that Codex expects for the question it asked.

use serde_json::{Map, Value, json};

use crate::interrupt::{Answer, Ask, Decision, ElicitationAction};

/// The JSON-RPC result for an answer, or why the answer does not fit the question.
pub fn reply(ask: &Ask, answer: &Answer) -> Result<Value, String> {
    match (ask, answer) {
        (Ask::Command { .. }, Answer::Decision { decision }) => {
            Ok(json!({ "decision": command_decision(ask, decision)? }))
        }
        (Ask::FileChange { .. }, Answer::Decision { decision }) => {
            Ok(json!({ "decision": file_decision(decision)? }))
        }
        (Ask::Permissions { permissions, .. }, Answer::Permissions { granted, for_session }) => {
            within(granted, permissions)?;
            let scope = if *for_session { "session" } else { "turn" };
            Ok(json!({ "permissions": granted, "scope": scope }))
        }
        (Ask::UserInput { questions }, Answer::UserInput { answers }) => {
            Ok(json!({ "answers": user_answers(questions, answers)? }))
        }
        (Ask::Elicitation { persist, .. }, Answer::Decision { decision }) => {
            elicitation_decision(persist, decision)
        }
        (Ask::Elicitation { .. }, Answer::Elicitation { action, content }) => {
            Ok(elicited(*action, content.clone().unwrap_or_else(|| json!({})), Value::Null))
        }
        (Ask::ToolCall { .. }, Answer::ToolResult { content, success }) => {
            Ok(json!({ "contentItems": content, "success": success }))
        }
        _ => Err("this kind of answer does not fit this kind of question".to_owned()),
    }
}

fn command_decision(ask: &Ask, decision: &Decision) -> Result<Value, String> {
    let Ask::Command { rule, network_rules, person_required, .. } = ask else {
        return Err("not a command".to_owned());
    };
    Ok(match decision {
        Decision::Accept => json!("accept"),
        Decision::Decline => json!("decline"),
        Decision::Cancel => json!("cancel"),
        _ if *person_required => {
            return Err("this command can be accepted only once at a time".to_owned());
        }
        Decision::AcceptForSession => json!("acceptForSession"),
        // A rule outlives the turn, so it must be exactly the one that was shown.
        Decision::AcceptWithRule(words) if Some(words) == rule.as_ref() => {
            json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": words } })
        }
        Decision::ApplyNetworkRule(rule) if network_rules.contains(rule) => {
            json!({ "applyNetworkPolicyAmendment": { "network_policy_amendment": rule } })
        }
        Decision::AcceptWithRule(_) | Decision::ApplyNetworkRule(_) => {
            return Err("this rule was not offered".to_owned());
        }
    })
}

fn file_decision(decision: &Decision) -> Result<&'static str, String> {
    match decision {
        Decision::Accept => Ok("accept"),
        Decision::AcceptForSession => Ok("acceptForSession"),
        Decision::Decline => Ok("decline"),
        Decision::Cancel => Ok("cancel"),
        _ => Err("a file change takes no rule".to_owned()),
    }
}

/// An MCP tool's approval comes as a form; how long it holds travels beside it.
fn elicitation_decision(persist: &[String], decision: &Decision) -> Result<Value, String> {
    let remembered = |how: &str| {
        let offered = persist.iter().any(|word| word == how);
        offered.then(|| json!({ "persist": how })).ok_or("this was not offered".to_owned())
    };
    let (action, meta) = match decision {
        Decision::Accept => (ElicitationAction::Accept, Value::Null),
        Decision::AcceptForSession => (ElicitationAction::Accept, remembered("session")?),
        Decision::AcceptWithRule(_) => (ElicitationAction::Accept, remembered("always")?),
        Decision::Decline => (ElicitationAction::Decline, Value::Null),
        Decision::Cancel => (ElicitationAction::Cancel, Value::Null),
        Decision::ApplyNetworkRule(_) => return Err("an MCP tool takes no network rule".into()),
    };
    Ok(elicited(action, json!({}), meta))
}

fn elicited(action: ElicitationAction, content: Value, meta: Value) -> Value {
    let content = if action == ElicitationAction::Accept { content } else { Value::Null };
    json!({ "action": action, "content": content, "_meta": meta })
}

/// Grants may only be a part of what was asked for.
fn within(granted: &Value, wanted: &Value) -> Result<(), String> {
    match (granted, wanted) {
        (Value::Null, _) => Ok(()),
        (Value::Object(granted), Value::Object(wanted)) => {
            granted.iter().try_for_each(|(key, value)| {
                within(value, wanted.get(key).unwrap_or(&Value::Null))
                    .map_err(|why| format!("`{key}`: {why}"))
            })
        }
        (Value::Array(granted), Value::Array(wanted)) => {
            let all = granted.iter().all(|entry| wanted.contains(entry));
            all.then_some(()).ok_or_else(|| "more is granted than was asked for".to_owned())
        }
        (Value::Bool(false), _) => Ok(()),
        (granted, wanted) if granted == wanted => Ok(()),
        (Value::Object(map), _) if map.is_empty() => Ok(()),
        _ => Err("more is granted than was asked for".to_owned()),
    }
}

/// Question id → `{answers: […]}`, for questions that were asked.
fn user_answers(questions: &[Value], answers: &Map<String, Value>) -> Result<Value, String> {
    let asked = |id: &str| questions.iter().any(|q| q.get("id").is_some_and(|known| known == id));
    let mut reply = Map::new();
    for (id, answer) in answers {
        if !asked(id) {
            return Err(format!("no question `{id}` was asked"));
        }
        let list = match answer {
            Value::Array(_) => answer.clone(),
            one => json!([one]),
        };
        reply.insert(id.clone(), json!({ "answers": list }));
    }
    Ok(Value::Object(reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Ask {
        Ask::Command {
            command: "git push".into(),
            cwd: "/p".into(),
            reason: None,
            into_running: false,
            person_required: false,
            rule: Some(vec!["git".into(), "push".into()]),
            network: None,
            network_rules: vec![json!({"action": "allow", "host": "a"})],
        }
    }

    fn say(ask: &Ask, decision: Decision) -> Result<Value, String> {
        reply(ask, &Answer::decision(decision))
    }

    #[test]
    fn command_decisions_are_codexs_words() {
        let rule = vec!["git".to_owned(), "push".to_owned()];
        #[rustfmt::skip]
        let table = [
            (Decision::Accept,           json!({"decision": "accept"})),
            (Decision::AcceptForSession, json!({"decision": "acceptForSession"})),
            (Decision::Decline,          json!({"decision": "decline"})),
            (Decision::Cancel,           json!({"decision": "cancel"})),
            (Decision::AcceptWithRule(rule.clone()),
                json!({"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": rule}}})),
            (Decision::ApplyNetworkRule(json!({"action": "allow", "host": "a"})),
                json!({"decision": {"applyNetworkPolicyAmendment":
                    {"network_policy_amendment": {"action": "allow", "host": "a"}}}})),
        ];
        for (decision, want) in table {
            assert_eq!(say(&command(), decision.clone()), Ok(want), "{decision:?}");
        }
    }

    #[test]
    fn a_rule_that_was_not_shown_is_refused() {
        assert!(say(&command(), Decision::AcceptWithRule(vec!["git".into()])).is_err());
        assert!(say(&command(), Decision::ApplyNetworkRule(json!({"host": "b"}))).is_err());
    }

    #[test]
    fn what_a_person_must_decide_is_accepted_once_and_no_more() {
        let mut ask = command();
        if let Ask::Command { person_required, .. } = &mut ask {
            *person_required = true;
        }
        for decision in [Decision::Accept, Decision::Decline, Decision::Cancel] {
            assert_eq!(say(&ask, decision.clone()), say(&command(), decision));
        }
        let rule = vec!["git".to_owned(), "push".to_owned()];
        let network = json!({"action": "allow", "host": "a"});
        for decision in [
            Decision::AcceptForSession,
            Decision::AcceptWithRule(rule),
            Decision::ApplyNetworkRule(network),
        ] {
            assert!(say(&ask, decision.clone()).is_err(), "{decision:?}");
        }
    }

    #[test]
    fn grants_are_a_part_of_what_was_asked() {
        let wanted = json!({"network": {"enabled": true}, "fileSystem": {"write": ["/a", "/b"]}});
        let ask = Ask::Permissions { permissions: wanted, reason: None, cwd: None };
        let grant = |granted| reply(&ask, &Answer::Permissions { granted, for_session: false });
        assert!(grant(json!({})).is_ok());
        assert!(grant(json!({"fileSystem": {"write": ["/b"]}})).is_ok());
        assert!(grant(json!({"fileSystem": {"write": ["/"]}})).is_err());
        assert!(grant(json!({"fileSystem": {"read": ["/a"]}})).is_err());
    }

    #[test]
    fn every_refusal_fits_its_question_and_never_says_yes() {
        let asks = [
            command(),
            Ask::FileChange { changes: vec![], reason: None, grant_root: None },
            Ask::Permissions { permissions: json!({"network": {}}), reason: None, cwd: None },
            Ask::UserInput { questions: vec![] },
            Ask::Elicitation {
                server: "s".into(),
                message: String::new(),
                mode: "form".into(),
                schema: None,
                tool_params: None,
                persist: vec![],
            },
            Ask::ToolCall { tool: "t".into(), namespace: None, arguments: json!({}) },
        ];
        for ask in asks {
            let reply = reply(&ask, &Answer::refusal(&ask, "no")).unwrap().to_string();
            assert!(!reply.contains("accept") && !reply.contains("true"), "{reply}");
        }
    }
}
