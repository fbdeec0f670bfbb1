//! Reads scripts of the plainest kind, in which every shell sees the same words.
//!
//! What decides about a command has to see exactly the words that the shell will run. A full
//! grammar is the wrong tool for that: ours takes a vertical tab or a carriage return for a blank,
//! which no shell does. So only a small language is read, one in which bash, zsh and POSIX shells
//! agree, and every character that is not known to be harmless makes the script unreadable.

/// Words that begin something else than a command when they stand first and unquoted.
const RESERVED: [&str; 29] = [
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "typeset",
    "until",
    "while",
    "declare",
    "export",
    "float",
    "integer",
    "local",
    "readonly",
];

/// A piece of a script.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// `&&`, `||`, `|`: a command has to follow, on this line or a later one.
    Joint,
    /// `;`
    Semicolon,
    LineEnd,
}

#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

/// The commands of a script; `None` if a shell could see anything else in it.
pub(super) fn read(script: &str) -> Option<Vec<Vec<String>>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut current: Vec<String> = Vec::new();
    // Whether a joint waits for its second command.
    let mut joined = false;
    for token in tokens(script)? {
        match token {
            Token::Word(word) => {
                if current.is_empty() && !is_program(&word) {
                    return None;
                }
                current.push(word.text);
                joined = false;
            }
            Token::LineEnd if current.is_empty() => {}
            _ if current.is_empty() => return None,
            token => {
                commands.push(std::mem::take(&mut current));
                joined = token == Token::Joint;
            }
        }
    }
    if !current.is_empty() {
        commands.push(current);
    }
    (!joined && !commands.is_empty()).then_some(commands)
}

/// Whether a shell takes a first word for a program: not for an assignment, a keyword or a job.
fn is_program(word: &Word) -> bool {
    let special = word.text.contains('=') || word.text.starts_with(['%', '-', '+', '@']);
    !word.text.is_empty() && !special && (word.quoted || !RESERVED.contains(&word.text.as_str()))
}

fn tokens(script: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ' ' | '\t' => 1,
            '\n' => {
                tokens.push(Token::LineEnd);
                1
            }
            ';' => {
                tokens.push(Token::Semicolon);
                1
            }
            '|' | '&' => {
                let length = joint(rest)?;
                tokens.push(Token::Joint);
                length
            }
            _ => {
                let (word, length) = word(rest)?;
                tokens.push(Token::Word(word));
                length
            }
        };
        rest = &rest[length..];
    }
    Some(tokens)
}

/// The length of the joint that a text begins with. `|&` and a single `&` are none.
fn joint(text: &str) -> Option<usize> {
    match text.as_bytes() {
        [b'|', b'|', ..] | [b'&', b'&', ..] => Some(2),
        [b'|', b'&', ..] | [b'&', ..] => None,
        _ => Some(1),
    }
}

/// The word that a text begins with, without its quotes, and its length.
fn word(text: &str) -> Option<(Word, usize)> {
    let mut word = Word { text: String::new(), quoted: false };
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match next {
            ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
            '\'' | '"' => {
                let inner = &text[at + 1..];
                let inner = &inner[..inner.find(next)?];
                if !is_literal(inner, next) {
                    return None;
                }
                word.text.push_str(inner);
                word.quoted = true;
                at += inner.len() + 2;
            }
            // At the start of a word zsh looks up a program for it.
            '=' if at == 0 => return None,
            plain if is_plain(plain) => {
                word.text.push(plain);
                at += 1;
            }
            _ => return None,
        }
    }
    Some((word, at))
}

/// Characters that mean themselves without quotes, in every shell. Characters beyond ASCII are
/// not among them: whether one of their bytes is a blank depends on the language that is set.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_-./:,+@%=".contains(char)
}

/// Whether a shell leaves the text between quotes as it is.
fn is_literal(inner: &str, quote: char) -> bool {
    quote == '\'' || !inner.contains(['\\', '$', '`', '!'])
}
