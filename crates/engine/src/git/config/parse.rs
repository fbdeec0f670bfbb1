//! The syntax of git's configuration.

use std::iter::Peekable;
use std::str::Chars;

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In small letters.
    pub(super) section: String,
    /// As it is written.
    pub(super) subsection: Option<String>,
    /// In small letters.
    pub(super) key: String,
    /// Without quotes; empty where a key stands alone.
    pub(super) value: String,
}

/// The settings of a file in their order. What git would stumble over is passed over, so that a
/// setting is rather found where git finds none than the other way round.
pub(super) fn parse(text: &str) -> Vec<Setting> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let mut found = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    while let Some(&next) = chars.peek() {
        match next {
            '[' => {
                chars.next();
                (section, subsection) = header(&mut chars);
            }
            '#' | ';' => skip_line(&mut chars),
            c if c.is_alphanumeric() => {
                let key = name(&mut chars);
                let value = value(&mut chars);
                let (section, subsection) = (section.clone(), subsection.clone());
                found.push(Setting { section, subsection, key, value });
            }
            _ => {
                chars.next();
            }
        }
    }
    found
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    for c in chars.by_ref() {
        if c == '\n' {
            return;
        }
    }
}

/// The letters of a name, small.
fn name(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '-' | '.')) {
        name.extend(c.to_lowercase());
    }
    name
}

/// What stands between brackets: a section, and what of it in quotes or after a dot.
fn header(chars: &mut Peekable<Chars<'_>>) -> (String, Option<String>) {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let written = name(chars);
    let (section, dotted) = match written.split_once('.') {
        Some((section, rest)) => (section.to_owned(), Some(rest.to_owned())),
        None => (written, None),
    };
    let mut quoted = None;
    while let Some(c) = chars.next() {
        match c {
            ']' | '\n' => break,
            '"' => quoted = Some(quoted_name(chars)),
            _ => {}
        }
    }
    (section, quoted.or(dotted))
}

fn quoted_name(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\n' => break,
            '\\' => name.extend(chars.next()),
            c => name.push(c),
        }
    }
    name
}

/// The rest of a line, which goes on in the next one after a backslash.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    if chars.next_if_eq(&'=').is_none() {
        return String::new();
    }
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let mut value = String::new();
    // As long as it is after something else than a space outside of quotes.
    let mut kept = 0;
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted && value.is_empty() => continue,
            '\\' => match chars.next() {
                Some('\n') | None => continue,
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(other) => value.push(other),
            },
            c => value.push(c),
        }
        if quoted || !c.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<String> {
        let line = |one: Setting| {
            let sub = one.subsection.map(|sub| format!("{sub}.")).unwrap_or_default();
            format!("{}.{sub}{}\n{}", one.section, one.key, one.value)
        };
        parse(text).into_iter().map(line).collect()
    }

    /// Expected is what `git config --list -z` says of each.
    #[test]
    fn settings_are_read_as_git_reads_them() {
        let texts: [(&str, &[&str]); 11] = [
            ("[core]\n\thooksPath = a b  # c\n", &["core.hookspath\na b"]),
            ("[Core] HooksPath=\"a;b\" ; c\n", &["core.hookspath\na;b"]),
            ("[core]\nhookspath = a\\\nb\\\n  c\n", &["core.hookspath\nab  c"]),
            (
                "[core]\nhooksPath = \"a \\\"b\\\" \\\\ \" x  \n[Other]\nk=1\n",
                &["core.hookspath\na \"b\" \\  x", "other.k\n1"],
            ),
            ("# [core]\n; x = y\n[core]\n\n  hooksPath=x#y\n", &["core.hookspath\nx"]),
            ("[include \"\"]\npath = x\n", &["include..path\nx"]),
            (
                "[includeIf \"gitdir:~/A b/\\\"\"]\n\tpath = x\\ty\n",
                &["includeif.gitdir:~/A b/\".path\nx\ty"],
            ),
            ("[a.B]\nc = d\n[a \"B\"]\nc = e\n", &["a.b.c\nd", "a.B.c\ne"]),
            (
                "[core]\nhooksPath = \"one\" two \"three  \"  \n",
                &["core.hookspath\none two three  "],
            ),
            ("[core]\r\nhooksPath = x\r\n[z]\r\nk = v\r\n", &["core.hookspath\nx", "z.k\nv"]),
            ("\u{feff}[core]\nhooksPath = \\\n  x\n", &["core.hookspath\nx"]),
        ];
        for (text, expected) in texts {
            assert_eq!(listed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_git_would_refuse_still_has_its_settings() {
        for text in ["[core\nhooksPath = x\n", "!\n[core]\nhooksPath = x", "[core]hooksPath=\"x\n"]
        {
            let found = listed(text);
            assert!(found.iter().any(|one| one == "core.hookspath\nx"), "{text:?}: {found:?}");
        }
        assert_eq!(listed("[core]\nhooksPath"), ["core.hookspath\n"]);
    }
}
