//! What the model is told: the argument, stdin, or both.

use std::io::{IsTerminal, Read, Write};

use anyhow::Context;

/// The longest text read from stdin; a model's window is smaller by far.
const MOST: u64 = 16 * 1024 * 1024;

/// What stdin is good for besides a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdin {
    /// What is piped in is added to the prompt.
    Added,
    /// It is read only where there is no other prompt.
    Instead,
}

/// The prompt.
pub(super) fn prompt(argument: Option<&str>, stdin: Stdin) -> anyhow::Result<String> {
    match argument {
        Some(text) if text != "-" => beside(text, stdin),
        argument => {
            if argument.is_none() && std::io::stdin().is_terminal() {
                anyhow::bail!(
                    "No prompt provided. Either specify one as an argument or pipe the prompt \
                     into stdin."
                );
            }
            say("Reading prompt from stdin...");
            let text = read()?;
            anyhow::ensure!(!text.trim().is_empty(), "No prompt provided via stdin.");
            Ok(text)
        }
    }
}

/// A prompt that is known, with what is piped in beside it.
pub(super) fn beside(prompt: &str, stdin: Stdin) -> anyhow::Result<String> {
    if stdin == Stdin::Instead || std::io::stdin().is_terminal() {
        return Ok(prompt.to_owned());
    }
    say("Reading additional input from stdin...");
    Ok(with_stdin(prompt, &read()?))
}

fn with_stdin(prompt: &str, piped: &str) -> String {
    if piped.trim().is_empty() {
        return prompt.to_owned();
    }
    let newline = if piped.ends_with('\n') { "" } else { "\n" };
    format!("{prompt}\n\n<stdin>\n{piped}{newline}</stdin>")
}

fn read() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let stdin = std::io::stdin().lock().take(MOST + 1);
    { stdin }.read_to_end(&mut bytes).context("cannot read stdin")?;
    anyhow::ensure!(bytes.len() as u64 <= MOST, "stdin has more than 16 MiB");
    decode(&bytes)
}

/// Text as editors and shells of any system leave it.
fn decode(bytes: &[u8]) -> anyhow::Result<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    let text = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        bytes => String::from_utf8(bytes.to_vec()).ok(),
    };
    text.context("stdin is not text: neither UTF-8 nor UTF-16 with a byte order mark")
}

pub(super) fn say(words: &str) {
    // Nothing can be done about a stderr that is gone.
    let _ = writeln!(std::io::stderr(), "{words}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_in_stands_in_a_block_of_its_own() {
        assert_eq!(with_stdin("do", "  \n"), "do");
        assert_eq!(with_stdin("do", "a\nb"), "do\n\n<stdin>\na\nb\n</stdin>");
        assert_eq!(with_stdin("do", "a\n"), "do\n\n<stdin>\na\n</stdin>");
    }

    #[test]
    fn text_of_any_system_is_read_and_other_bytes_are_not() {
        assert_eq!(decode(b"\xEF\xBB\xBFh\xC3\xB6").unwrap(), "hö");
        assert_eq!(decode(b"\xFF\xFEh\0\xF6\0").unwrap(), "hö");
        assert_eq!(decode(b"\xFE\xFF\0h\0\xF6").unwrap(), "hö");
        assert!(decode(b"\xC3").is_err());
        assert!(decode(b"\xFF\xFE\x00\xD8").is_err());
    }
}
