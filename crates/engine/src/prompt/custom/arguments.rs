//! Arguments in the text of a prompt: by number, or by name.

use super::ExpandError;

const ALL: &str = "ARGUMENTS";

/// Fills the arguments in: by name if the text has any name in it, else by number.
pub(super) fn expand(prompt: &str, body: &str, words: &[String]) -> Result<String, ExpandError> {
    let names = names(body);
    if names.is_empty() {
        return Ok(by_number(body, words));
    }
    let values = pairs(prompt, words)?;
    let value = |name: &str| values.iter().rev().find(|(key, _)| *key == name).map(|(_, v)| *v);
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| value(name).is_none()).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(ExpandError::Missing { prompt: prompt.to_owned(), missing });
    }
    Ok(by_name(body, value))
}

/// The names in a text, each once, in order. `$ARGUMENTS` is none, nor is what follows `$$`.
pub(super) fn names(body: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, name) in places(body) {
        if name != ALL && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn pairs<'a>(prompt: &str, words: &'a [String]) -> Result<Vec<(&'a str, &'a str)>, ExpandError> {
    let told = |word: &String| (prompt.to_owned(), word.clone());
    let pair = |word: &'a String| match word.split_once('=') {
        None => {
            let (prompt, word) = told(word);
            Err(ExpandError::NotNamed { prompt, word })
        }
        Some(("", _)) => {
            let (prompt, word) = told(word);
            Err(ExpandError::NoName { prompt, word })
        }
        Some(pair) => Ok(pair),
    };
    words.iter().map(pair).collect()
}

/// Where names are: the place of the `$`, and the name.
fn places(body: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = body.as_bytes();
    body.match_indices('$').filter_map(move |(at, _)| {
        let rest = &body[at + 1..];
        let starts = rest.starts_with(|c: char| c.is_ascii_uppercase());
        let protected = at > 0 && bytes[at - 1] == b'$';
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        (starts && !protected).then(|| (at, &rest[..end]))
    })
}

fn by_name<'a>(body: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut text = String::with_capacity(body.len());
    let mut done = 0;
    for (at, name) in places(body) {
        if let Some(value) = value(name) {
            text.push_str(&body[done..at]);
            text.push_str(value);
            done = at + 1 + name.len();
        }
    }
    text + &body[done..]
}

/// `$1` to `$9` and `$ARGUMENTS`. Two dollars stay two dollars, and keep what follows as it is.
fn by_number(body: &str, words: &[String]) -> String {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match after.as_bytes().first() {
            Some(b'$') => {
                text.push_str("$$");
                &after[1..]
            }
            Some(digit @ b'1'..=b'9') => {
                let index = usize::from(digit - b'1');
                text.push_str(words.get(index).map_or("", String::as_str));
                &after[1..]
            }
            _ => match after.strip_prefix(ALL) {
                Some(after) => {
                    text.push_str(&words.join(" "));
                    after
                }
                None => {
                    text.push('$');
                    after
                }
            },
        };
    }
    text + rest
}
