//! The keys that answer a question.

use bindery::core::interrupt::{Answer, Ask, Decision, ElicitationAction, Interrupt};
use serde_json::{Map, Value};

use super::questions::questions;
use crate::view::shell::unwrapped;

/// What a key does.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyAction {
    /// It answers.
    Answer {
        /// With this.
        answer: Answer,
        /// And the turn is to be interrupted, because the answer itself cannot say so.
        stop: bool,
    },
    /// It shows everything that is known of the question.
    More,
}

/// A key that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The key.
    pub key: char,
    /// What it means, in words.
    pub words: String,
    /// What it does.
    pub action: KeyAction,
}

/// What a key does for a question; none if it is not offered.
pub fn key(interrupt: &Interrupt, key: char) -> Option<KeyAction> {
    let choices = choices(interrupt);
    choices.into_iter().find(|choice| choice.key == key).map(|choice| choice.action)
}

/// The keys that are offered for a question, in the order in which they are shown.
///
/// None for questions that are answered in words.
pub fn choices(interrupt: &Interrupt) -> Vec<Choice> {
    let mut choices = match &interrupt.ask {
        Ask::Command { person_required: true, .. } => {
            [decision('y', "once", Decision::Accept)].into_iter().chain(noes()).collect()
        }
        Ask::Command { rule, network_rules, .. } => command(rule.as_deref(), network_rules),
        Ask::FileChange { .. } => {
            let yes = [decision('y', "once", Decision::Accept), for_session()];
            yes.into_iter().chain(noes()).collect()
        }
        Ask::Permissions { permissions, .. } => permission(permissions),
        Ask::Elicitation { tool_params: Some(_), persist, .. } => tool(persist),
        // Without a field to fill in there must still be a key to press.
        ask if !questions(ask).is_empty() => return Vec::new(),
        Ask::Elicitation { .. } => elicitation("yes", None),
        ask => refusals(ask),
    };
    choices.push(Choice { key: '?', words: "more".to_owned(), action: KeyAction::More });
    choices
}

/// The no that also ends the turn: what Ctrl-C means at any question.
pub(crate) fn stop(ask: &Ask) -> KeyAction {
    match ask {
        Ask::Command { .. } | Ask::FileChange { .. } => answered(Decision::Cancel),
        Ask::Elicitation { tool_params: Some(_), .. } => answered(Decision::Cancel),
        Ask::Elicitation { .. } => KeyAction::Answer {
            answer: Answer::Elicitation { action: ElicitationAction::Cancel, content: None },
            stop: true,
        },
        ask => KeyAction::Answer { answer: Answer::refusal(ask, STOPPED), stop: true },
    }
}

const STOPPED: &str = "the user stopped the turn";

fn command(rule: Option<&[String]>, network_rules: &[Value]) -> Vec<Choice> {
    let mut choices = vec![decision('y', "once", Decision::Accept), for_session()];
    if let Some(rule) = rule.filter(|rule| !rule.is_empty()) {
        // With a shell around it, it is the script that somebody would recognise.
        let words = format!("always `{} …`", unwrapped(&shown_rule(rule)));
        choices.push(decision('a', &words, Decision::AcceptWithRule(rule.to_vec())));
    }
    for (action, key, verb) in [("allow", 'h', "always allow"), ("deny", 'd', "always deny")] {
        let with = |rule: &&Value| rule.get("action").is_some_and(|word| word == action);
        if let Some(rule) = network_rules.iter().find(with) {
            let host = rule.get("host").and_then(Value::as_str).unwrap_or("?");
            let words = format!("{verb} `{host}`");
            choices.push(decision(key, &words, Decision::ApplyNetworkRule(rule.clone())));
        }
    }
    choices.extend(noes());
    choices
}

/// Words with spaces or signs in them are quoted, so that their borders can be seen.
pub(super) fn shown_rule(rule: &[String]) -> String {
    let plain = |ch: char| ch.is_alphanumeric() || "-_./:=@+,%".contains(ch);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    rule.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn permission(wanted: &Value) -> Vec<Choice> {
    let grant = |key: char, words: &str, granted: &Value, for_session: bool, stop: bool| {
        let answer = Answer::Permissions { granted: granted.clone(), for_session };
        Choice { key, words: words.to_owned(), action: KeyAction::Answer { answer, stop } }
    };
    let nothing = Value::Object(Map::new());
    vec![
        grant('y', "for this turn", wanted, false, false),
        grant('s', "for this session", wanted, true, false),
        grant('n', "no, go on", &nothing, false, false),
        grant('c', "no, stop", &nothing, false, true),
    ]
}

fn tool(persist: &[String]) -> Vec<Choice> {
    let offered = |how: &str| persist.iter().any(|word| word == how);
    let mut choices = vec![decision('y', "once", Decision::Accept)];
    if offered("session") {
        choices.push(for_session());
    }
    if offered("always") {
        // The words of a rule mean nothing here: it is the tool that is remembered.
        choices.push(decision('a', "always", Decision::AcceptWithRule(Vec::new())));
    }
    choices.extend(noes());
    choices
}

/// The keys of an MCP server's question; yes gives `content`.
pub(crate) fn elicitation(yes: &str, content: Option<Value>) -> Vec<Choice> {
    let with = |key: char, words: &str, action: ElicitationAction, stop: bool| {
        let accepted = action == ElicitationAction::Accept;
        let answer = Answer::Elicitation { action, content: content.clone().filter(|_| accepted) };
        Choice { key, words: words.to_owned(), action: KeyAction::Answer { answer, stop } }
    };
    vec![
        with('y', yes, ElicitationAction::Accept, false),
        with('n', "no, go on", ElicitationAction::Decline, false),
        with('c', "no, stop", ElicitationAction::Cancel, true),
    ]
}

fn refusals(ask: &Ask) -> Vec<Choice> {
    let answer = Answer::refusal(ask, "this terminal cannot run the tool");
    let no = KeyAction::Answer { answer, stop: false };
    vec![
        Choice { key: 'n', words: "no, go on".to_owned(), action: no },
        Choice { key: 'c', words: "no, stop".to_owned(), action: stop(ask) },
    ]
}

fn for_session() -> Choice {
    decision('s', "for this session", Decision::AcceptForSession)
}

fn noes() -> [Choice; 2] {
    [decision('n', "no, go on", Decision::Decline), decision('c', "no, stop", Decision::Cancel)]
}

fn decision(key: char, words: &str, decision: Decision) -> Choice {
    Choice { key, words: words.to_owned(), action: answered(decision) }
}

fn answered(decision: Decision) -> KeyAction {
    KeyAction::Answer { answer: Answer::decision(decision), stop: false }
}
