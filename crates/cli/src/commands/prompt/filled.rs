//! One of the user's own prompts, called on a command line.

use bindery::engine::config::Home;
use bindery::engine::prompt::custom;

use crate::failure::Hinted;

/// The prompt of this name with its arguments in it; `/prompts:` before the name is not needed.
pub(in crate::commands) fn filled(
    name: &str,
    arguments: &[String],
    home: &Home,
) -> anyhow::Result<String> {
    let prompts = custom::list(&custom::folder(&home.codex));
    let name = name.strip_prefix(custom::CALL).unwrap_or(name);
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let hint = match names.is_empty() {
            true => "write one: `prompts/NAME.md` in the Codex home".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        return Err(Hinted::misuse(format!("no prompt `{name}`"), hint));
    };
    Ok(prompt.expand(arguments)?)
}

/// The same for words that call one, `/prompts:NAME …`: none where they call none that is there.
pub(in crate::commands) fn called(words: &str, home: &Home) -> anyhow::Result<Option<String>> {
    if !words.starts_with(custom::CALL) {
        return Ok(None);
    }
    Ok(custom::expand(words, &custom::list(&custom::folder(&home.codex)))?)
}
