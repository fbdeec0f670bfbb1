//! Reads a shell script into its plain commands, where it is made of nothing else.

mod plain;

use std::path::Path;

use tree_sitter::{Node, Tree};

use crate::exec::shell;
use crate::syntax;

/// Shells whose `-c` is read.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];

/// A longer script is not read: nobody looks through it either.
const MOST: usize = 256 * 1024;

/// The plain commands of a shell call; anything else is one command as it is.
pub fn commands(argv: &[String]) -> Vec<Vec<String>> {
    of_shell(argv).and_then(plain).unwrap_or_else(|| vec![argv.to_vec()])
}

/// The script of `bash -lc …` and its like. The shell must be a known one: a program that only
/// has the name of a shell does with the script what it likes.
pub(super) fn of_shell(argv: &[String]) -> Option<&str> {
    let known = |shell: &str| !shell.contains('/') || shell::is_known(Path::new(shell));
    script_argument(argv).filter(|_| known(&argv[0]))
}

/// The same for any program that has the name of a shell. Good for refusing, not for allowing.
pub(super) fn script_argument(argv: &[String]) -> Option<&str> {
    let [shell, flag, script] = argv else { return None };
    let named = SHELLS.contains(&name(shell));
    (named && matches!(flag.as_str(), "-c" | "-lc")).then_some(script.as_str())
}

/// The plain commands of a shell call within a script, however deep.
pub(super) fn nested_commands(argv: &[String]) -> Vec<Vec<String>> {
    let commands = script_argument(argv).and_then(plain).unwrap_or_default();
    let deeper: Vec<_> = commands.iter().flat_map(|command| nested_commands(command)).collect();
    commands.into_iter().chain(deeper).collect()
}

/// The last part of a program's path.
pub(super) fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

pub(super) fn parse(script: &str) -> Option<Tree> {
    if script.len() > MOST {
        return None;
    }
    syntax::tree(script)
}

/// Plain words joined by `&&`, `||`, `;` and `|`; `None` if there is anything else.
pub fn plain(script: &str) -> Option<Vec<Vec<String>>> {
    if script.len() > MOST {
        return None;
    }
    plain::read(script)
}

/// Every command of a script, however deep, its words as far as they can be known. `None` if the
/// script cannot be read.
pub(super) fn all(script: &str) -> Option<Vec<Vec<String>>> {
    // The shell takes a line's end after a backslash out before it reads anything else.
    let script = &script.replace("\\\n", "");
    let tree = parse(script)?;
    let root = tree.root_node();
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
        if node.kind() == "command" {
            let mut cursor = node.walk();
            let words = node.children(&mut cursor);
            found.push(words.filter_map(|word| guess(word, script)).collect());
        }
    }
    (!root.has_error()).then_some(found)
}

/// A word without what only quotes it.
fn guess(node: Node<'_>, script: &str) -> Option<String> {
    let text = node.utf8_text(script.as_bytes()).ok()?;
    if matches!(node.kind(), "raw_string" | "string") {
        let inner = text.get(1..text.len().saturating_sub(1))?;
        return Some(inner.replace("\\\"", "\""));
    }
    Some(text.chars().filter(|c| !matches!(c, '\\' | '"' | '\'')).collect())
}
