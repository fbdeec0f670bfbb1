//! Everything that is known of a question, as a list: what `?` shows.

use bindery::core::interrupt::{Ask, Interrupt};
use bindery::core::item::{ChangeKind, FileChange};
use serde_json::Value;

use super::keys::shown_rule;
use crate::view::wording::text_at;

/// The facts in the order they are shown: what each is called, and what it is.
///
/// Commands stand here as they were sent, with the shell around them, and names in full.
pub(super) fn facts(interrupt: &Interrupt) -> Vec<(&'static str, String)> {
    let mut facts = of_ask(&interrupt.ask);
    facts.push(("thread", interrupt.thread_id.to_string()));
    facts.push(("turn", interrupt.turn_id.to_string()));
    facts.push(("call", interrupt.call_id.to_string()));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

fn of_ask(ask: &Ask) -> Vec<(&'static str, String)> {
    match ask {
        Ask::Command {
            command,
            cwd,
            reason,
            into_running,
            person_required,
            rule,
            network,
            network_rules,
        } => {
            let running = into_running.then(|| "typed into a command that runs already".to_owned());
            let person = person_required.then(|| "a person must decide each time".to_owned());
            let rule = rule.as_deref().map(|rule| format!("all of `{} …`", shown_rule(rule)));
            let mut facts = vec![
                ("as sent", command.clone()),
                ("how", running.unwrap_or_default()),
                ("who", person.unwrap_or_default()),
                ("folder", cwd.clone()),
                ("reason", reason.clone().unwrap_or_default()),
                ("always", rule.unwrap_or_default()),
                ("network", network.as_ref().map(reached).unwrap_or_default()),
            ];
            facts.extend(network_rules.iter().map(|rule| ("rule", saved(rule))));
            facts
        }
        Ask::FileChange { changes, reason, grant_root } => {
            let mut facts: Vec<_> = changes.iter().map(changed).collect();
            facts.push(("reason", reason.clone().unwrap_or_default()));
            facts.push(("writable", grant_root.clone().unwrap_or_default()));
            facts
        }
        Ask::Permissions { permissions, reason, cwd } => vec![
            ("wanted", permissions.to_string()),
            ("reason", reason.clone().unwrap_or_default()),
            ("folder", cwd.clone().unwrap_or_default()),
        ],
        Ask::UserInput { questions } => {
            questions.iter().map(|question| ("question", question.to_string())).collect()
        }
        Ask::Elicitation { server, message, mode, schema, tool_params, persist } => vec![
            ("server", server.clone()),
            ("message", message.clone()),
            ("mode", mode.clone()),
            ("schema", schema.as_ref().map(Value::to_string).unwrap_or_default()),
            ("input", tool_params.as_ref().map(Value::to_string).unwrap_or_default()),
            ("kept", persist.join(", ")),
        ],
        Ask::ToolCall { tool, namespace, arguments } => vec![
            ("tool", tool.clone()),
            ("of", namespace.clone().unwrap_or_default()),
            ("input", arguments.to_string()),
        ],
    }
}

/// The diff itself is shown whole above.
fn changed(change: &FileChange) -> (&'static str, String) {
    match &change.kind {
        ChangeKind::Add => ("new", change.path.clone()),
        ChangeKind::Delete => ("deleted", change.path.clone()),
        ChangeKind::Update { move_path: Some(to) } => ("moved", format!("{} to {to}", change.path)),
        _ => ("changed", change.path.clone()),
    }
}

/// `https example.org`; a shape that is not known is shown as it is.
pub(super) fn reached(network: &Value) -> String {
    match (text_at(network, &["protocol"]), text_at(network, &["host"])) {
        (Some(protocol), Some(host)) => format!("{protocol} {host}"),
        _ => network.to_string(),
    }
}

fn saved(rule: &Value) -> String {
    match (text_at(rule, &["action"]), text_at(rule, &["host"])) {
        (Some(action), Some(host)) => format!("{action} `{host}` from now on"),
        _ => rule.to_string(),
    }
}
