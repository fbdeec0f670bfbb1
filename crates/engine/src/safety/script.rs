//! Reads a shell script into its plain commands, where it is made of nothing else.

use tree_sitter::{Node, Tree};

use crate::syntax;

/// Shells whose `-c` is read.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];

/// A longer script is not read: nobody looks through it either.
const MOST: usize = 256 * 1024;

/// The plain commands of a shell call; anything else is one command as it is.
pub fn commands(argv: &[String]) -> Vec<Vec<String>> {
    of_shell(argv).and_then(plain).unwrap_or_else(|| vec![argv.to_vec()])
}

/// The script of `bash -lc …` and its like.
pub(super) fn of_shell(argv: &[String]) -> Option<&str> {
    let [shell, flag, script] = argv else { return None };
    let known = SHELLS.contains(&name(shell));
    (known && matches!(flag.as_str(), "-c" | "-lc")).then_some(script.as_str())
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
    let tree = parse(script)?;
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let mut commands = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match node.kind() {
            "program" | "list" | "pipeline" => {
                let mut cursor = node.walk();
                let mut children: Vec<_> = node.children(&mut cursor).collect();
                children.reverse();
                open.extend(children);
            }
            "command" => commands.push(command(node, script)?),
            "&&" | "||" | ";" | "|" | "\n" => {}
            _ => return None,
        }
    }
    (!commands.is_empty()).then_some(commands)
}

fn command(node: Node<'_>, script: &str) -> Option<Vec<String>> {
    let mut cursor = node.walk();
    let words = node.children(&mut cursor).map(|child| match child.kind() {
        "command_name" => word(child.child(0)?, script),
        _ => word(child, script),
    });
    words.collect()
}

/// A word as the program will see it; `None` if the shell would change it first.
fn word(node: Node<'_>, script: &str) -> Option<String> {
    let text = node.utf8_text(script.as_bytes()).ok()?;
    match node.kind() {
        "word" | "number" => {
            let changed = |c: char| "\\{}*?[]~$`!#\"'()<>&|;".contains(c) || c.is_control();
            (!text.contains(changed)).then(|| text.to_owned())
        }
        "raw_string" => Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()),
        "string" => {
            let inner = text.strip_prefix('"')?.strip_suffix('"')?;
            (!inner.contains(['\\', '$', '`', '!', '"'])).then(|| inner.to_owned())
        }
        "concatenation" => {
            let mut cursor = node.walk();
            node.children(&mut cursor).map(|child| word(child, script)).collect()
        }
        _ => None,
    }
}

/// Every command of a script, however deep, its words as far as they can be known. `None` if the
/// script cannot be read.
pub(super) fn all(script: &str) -> Option<Vec<Vec<String>>> {
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
