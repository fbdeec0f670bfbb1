//! Where a mention in running text begins and ends.

/// Whether a mention may begin after this text: not inside a word, an email or an address.
pub(super) fn may_begin(before: &str) -> bool {
    match before.chars().next_back() {
        None => true,
        Some(c) if c.is_ascii() => c.is_ascii_whitespace() || "([{<\"',;:|>*".contains(c),
        // Opening quotes and brackets of other scripts, but not their letters.
        Some(c) => !c.is_alphanumeric(),
    }
}

/// The path after an `@` and the length it takes, quotes included.
pub(super) fn path(rest: &str) -> Option<(&str, usize)> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let path = &quoted[..quoted.find(['"', '\n', '\r'])?];
        let closed = quoted[path.len()..].starts_with('"') && !path.trim().is_empty();
        return closed.then_some((path, path.len() + 2));
    }
    let end = rest.find(|c: char| c.is_whitespace() || "\"'`<>|*".contains(c));
    let path = trimmed(&rest[..end.unwrap_or(rest.len())]);
    let begins = path.starts_with(|c: char| c.is_alphanumeric() || "./~_\\[(".contains(c));
    let says_something = path.contains(char::is_alphanumeric);
    // `@user@host` is an account, `@scope/name@1` a package.
    (begins && says_something && !path.contains('@')).then_some((path, path.len()))
}

/// The known skill after a `$`: the longest name that ends where a word may end.
pub(super) fn skill(rest: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    let part_of_name = |c: char| c.is_alphanumeric() || "_-:./".contains(c);
    let end = rest.find(|c: char| !part_of_name(c)).unwrap_or(rest.len());
    let mut name = &rest[..end];
    loop {
        if !name.is_empty() && is_known(name) {
            return Some(name);
        }
        // Only punctuation is given back: `$deploy.` is a skill, `$deployment` is not.
        let shorter = name.strip_suffix(['-', ':', '.', '/', '_'])?;
        name = shorter;
    }
}

/// Without the punctuation of the sentence around it; brackets of the path's own stay.
fn trimmed(path: &str) -> &str {
    let mut path = path;
    while let Some(last) = path.chars().next_back() {
        let unmatched =
            |open: char, close: char| path.matches(close).count() > path.matches(open).count();
        let is_punctuation = match last {
            ')' => unmatched('(', ')'),
            ']' => unmatched('[', ']'),
            '}' => unmatched('{', '}'),
            '.' | ',' | ';' | ':' | '!' | '?' => true,
            c => !c.is_ascii() && !c.is_alphanumeric(),
        };
        if !is_punctuation {
            break;
        }
        path = &path[..path.len() - last.len_utf8()];
    }
    path
}
