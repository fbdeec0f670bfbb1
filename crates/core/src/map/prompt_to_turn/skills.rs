//! Whether a call speaks of skills by name, so that Codex has to be asked which there are.

use serde_json::Value;

use super::{PlanContext, own};
use crate::call::CallOptions;
use crate::prompt::{Message, UserPart};
use crate::spec::Metadata;

/// The call names a skill without its path, or may do so with a `$` in its text.
pub fn names_skills(options: &CallOptions, context: &PlanContext) -> bool {
    let asked = own::find(options.provider_options.as_ref(), "parseMentions");
    let parses = context.parse_mentions || asked.is_some_and(|flag| flag == true);
    let messages = options.prompt.0.iter().rev().filter_map(|message| message.known());
    let newest = messages.take_while(|message| !matches!(message, Message::Assistant { .. }));
    newest.into_iter().any(|message| match message {
        Message::User { content, provider_options } => {
            let parts = content.iter().filter_map(|part| part.known());
            by_name(provider_options.as_ref()) || parts.into_iter().any(|part| speaks(part, parses))
        }
        _ => false,
    })
}

fn speaks(part: &UserPart, parses: bool) -> bool {
    match part {
        UserPart::Text(text) => {
            by_name(text.provider_options.as_ref()) || (parses && text.text.contains('$'))
        }
        UserPart::File(file) => by_name(file.provider_options.as_ref()),
        _ => false,
    }
}

fn by_name(options: Option<&Metadata>) -> bool {
    let Some(given) = own::find(options, "skills") else { return false };
    let one = std::slice::from_ref(given);
    let all = given.as_array().map_or(one, Vec::as_slice);
    all.iter().any(|skill| skill.get("path").and_then(Value::as_str).is_none())
}
