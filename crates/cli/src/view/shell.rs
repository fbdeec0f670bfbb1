//! Commands as Codex wraps them, and as a person would type them.

/// The command inside `/bin/bash -lc '…'`; anything else as it is.
///
/// Only a well-known shell with exactly one script is unwrapped: what is shown in place of the
/// whole must be all that runs.
pub fn unwrapped(command: &str) -> String {
    let words = words(command);
    match words.as_deref() {
        Some([shell, flag, script]) if known_shell(shell) && (flag == "-lc" || flag == "-c") => {
            script.clone()
        }
        _ => command.to_owned(),
    }
}

fn known_shell(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders = ["", "/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    folders.contains(&folder) && ["bash", "sh", "zsh", "dash"].contains(&name)
}

/// The words of a command in the shell's quoting; none if it is not just words.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(ch) = chars.next() {
        match ch {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut chars, word.get_or_insert_default())?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\n' | '#' => return None,
            ch => word.get_or_insert_default().push(ch),
        }
    }
    words.extend(word);
    Some(words)
}

fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            ch => word.push(ch),
        }
    }
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match chars.next()? {
                ch @ ('"' | '\\' | '$' | '`') => word.push(ch),
                ch => word.extend(['\\', ch]),
            },
            ch => word.push(ch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_exactly_a_shell_and_its_script_is_unwrapped() {
        let table = [
            ("/bin/bash -lc 'cargo test parse'", "cargo test parse"),
            (r#"bash -c "echo \"a\" 'b'""#, r#"echo "a" 'b'"#),
            (r#"/bin/bash -lc 'echo '"'"'x'"'"''"#, "echo 'x'"),
            ("/bin/sh -c 'a\nb'", "a\nb"),
            ("/bin/bash -lc ls", "ls"),
            // Everything else stays whole.
            ("cargo test", "cargo test"),
            ("/tmp/bash -lc 'ls'", "/tmp/bash -lc 'ls'"),
            ("/bin/bash -lc 'ls' extra", "/bin/bash -lc 'ls' extra"),
            ("/bin/bash -lc 'ls'; rm x", "/bin/bash -lc 'ls'; rm x"),
            ("/bin/bash -lc \"$(x)\"", "/bin/bash -lc \"$(x)\""),
            ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
        ];
        for (command, want) in table {
            assert_eq!(unwrapped(command), want, "{command}");
        }
    }
}
