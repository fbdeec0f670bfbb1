//! Setup: what Codex tells the model beside the user's words.

use bindery_core::transcript::Setup;
use serde_json::Value;

use super::Normaliser;
use crate::ledger::Account;
use crate::wire::Message;

/// How text that Codex or a client injects begins, and what it is.
const INJECTED: &[(&str, &str)] = &[
    ("<user_instructions>", "AGENTS.md"),
    ("# AGENTS.md instructions", "AGENTS.md"),
    ("<environment_context>", "environment"),
    ("<turn_aborted>", "turn aborted"),
    ("<skill>", "skill"),
    ("<user_shell_command>", "user shell command"),
    ("<user_action>", "user action"),
    ("<subagent_notification>", "sub-agent"),
    ("<codex_internal_context source=\"goal\"", "goal"),
    ("<codex_internal_context source=\"user_goal\"", "goal"),
    ("<codex_internal_context", "internal context"),
    ("<goal_context>", "goal"),
    ("<hook_prompt", "hook"),
    ("<recommended_plugins>", "plugins"),
    ("<realtime_delegation>", "realtime"),
    ("<external_", "external context"),
    ("Warning: apply_patch was requested via", "warning"),
    ("Warning: The maximum number of unified exec", "warning"),
    ("Warning: Your account was flagged", "warning"),
];

/// What the parts of developer messages are.
const DEVELOPER: &[(&str, &str)] = &[
    ("<permissions instructions>", "permissions"),
    ("<skills_instructions>", "skills"),
    ("<collaboration_mode>", "collaboration mode"),
    ("<model_switch>", "model switch"),
    ("<multi_agent_mode>", "agents"),
    ("<turn_aborted>", "turn aborted"),
    ("<personality", "personality"),
    ("<apps_instructions>", "apps"),
    ("<plugins_instructions>", "plugins"),
];

/// The topic of injected text, by how it begins.
pub(crate) fn injected_topic(text: &str) -> Option<&'static str> {
    lookup(INJECTED, text)
}

/// Labels that Codex puts around images are no text.
pub(super) fn is_image_label(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text == "<image>"
        || (text.starts_with("<image name=") && text.ends_with('>'))
}

fn lookup(table: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    table.iter().find(|(prefix, _)| text.starts_with(prefix)).map(|(_, topic)| *topic)
}

impl Normaliser<'_> {
    /// A line that is setup and nothing else.
    pub(super) fn add_setup(&mut self, texts: Vec<(String, String)>) {
        self.settle(Account::Setup);
        let origin = self.origin();
        let setup =
            texts.into_iter().map(|(topic, text)| Setup { topic, text, origin: origin.clone() });
        self.early_setup.extend(setup);
        self.place_setup();
    }

    /// Setup in the same line as something that is shown: the line is the other's.
    pub(super) fn context_beside(&mut self, texts: Vec<(String, String)>) {
        let mut origin = self.origin();
        origin.lines.clear();
        let setup =
            texts.into_iter().map(|(topic, text)| Setup { topic, text, origin: origin.clone() });
        self.early_setup.extend(setup);
        self.place_setup();
    }

    /// Setup in an open turn belongs to it; else it waits for the next.
    fn place_setup(&mut self) {
        let open = self.turns.back_mut().filter(|turn| turn.explicit && !turn.ended);
        if let Some(turn) = open {
            turn.record.setup.append(&mut self.early_setup);
        }
    }

    /// A developer (or system) message.
    pub(super) fn instructions(&mut self, message: Message) {
        let role = message.role.as_str();
        let named = message.content.into_iter().map(|block| match block.is_known() {
            true => {
                let text = block.text.unwrap_or_default();
                let topic = lookup(DEVELOPER, &text).or_else(|| injected_topic(&text));
                (topic.unwrap_or(role).to_owned(), text)
            }
            false => (format!("unknown {}", block.kind), block.into_value().to_string()),
        });
        let named: Vec<_> = named.collect();
        self.add_setup(if named.is_empty() {
            vec![(role.to_owned(), String::new())]
        } else {
            named
        });
    }

    /// The tools that were offered (0.166).
    pub(super) fn additional_tools(&mut self, item: &Value) {
        let tools = item.get("tools").and_then(Value::as_array);
        let names = tools.into_iter().flatten().filter_map(|tool| tool.get("name")?.as_str());
        let names: Vec<_> = names.collect();
        self.add_setup(vec![("tools".to_owned(), names.join(", "))]);
    }
}
