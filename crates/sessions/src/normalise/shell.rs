//! Command lines: joined as the live protocol writes them, and unwrapped for the eye.

/// Words as one command line, quoted where they must be.
pub fn join(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// The command inside `bash -lc '…'`; anything else as it is.
pub fn display_command(command: &str) -> String {
    let trimmed = command.trim();
    for shell in ["bash", "zsh", "sh"] {
        for flag in ["-lc", "-c"] {
            let wrapped = split_shell(trimmed, shell, flag);
            if let Some(inner) = wrapped.and_then(unquote) {
                return inner;
            }
        }
    }
    trimmed.to_owned()
}

/// The script of `["bash", "-lc", script]`.
pub(super) fn script(words: &[String]) -> Option<&str> {
    match words {
        [shell, flag, script] if is_shell(shell) && (flag == "-lc" || flag == "-c") => Some(script),
        _ => None,
    }
}

fn is_shell(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("bash" | "zsh" | "sh"))
}

fn split_shell<'a>(command: &'a str, shell: &str, flag: &str) -> Option<&'a str> {
    let (program, rest) = command.split_once(' ')?;
    let named = program.rsplit('/').next() == Some(shell);
    rest.strip_prefix(flag)?.strip_prefix(' ').filter(|_| named)
}

/// One shell word, all of the text.
fn unquote(text: &str) -> Option<String> {
    let mut word = String::new();
    let mut rest = text.trim().chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\'' => {
                let tail = rest.as_str();
                let end = tail.find('\'')?;
                word.push_str(&tail[..end]);
                rest = tail[end + 1..].chars();
            }
            '"' => loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => word.push(rest.next()?),
                    letter => word.push(letter),
                }
            },
            '\\' => word.push(rest.next()?),
            letter if letter.is_whitespace() => return None,
            letter => word.push(letter),
        }
    }
    Some(word)
}

fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-./:=@_,%^".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains('\'') {
        return format!("'{word}'");
    }
    let inner = word.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
    format!("\"{}\"", inner.replace('`', "\\`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_command_is_unwrapped_again() {
        for script in ["ls", "ls -la && cat 'a b'", "echo \"$HOME\" `x` \\n", "é 'ü' \"q\""] {
            let words = ["/bin/bash", "-lc", script].map(str::to_owned);
            assert_eq!(display_command(&join(&words)), script);
        }
        assert_eq!(display_command("git status"), "git status");
        assert_eq!(display_command("bash -lc 'a' 'b'"), "bash -lc 'a' 'b'");
    }
}
