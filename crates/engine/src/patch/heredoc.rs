//! A patch inside a shell command: models that know the tool only as a program call it so.
//!
//! Strict: one `apply_patch` that reads one here-document, with at most one `cd` before it. All
//! else is a shell command like any other.

use std::path::{Path, PathBuf};

use tree_sitter::Node;

use super::parse::parse;
use crate::syntax;

/// What a shell script holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// No patch, or more than a patch.
    Other,
    /// A patch and nothing else.
    Patch {
        /// Where the script goes first.
        folder: Option<PathBuf>,
        /// The patch.
        text: String,
    },
    /// A patch without a program that it is given to; no shell can make sense of it.
    Bare,
}

/// What the model is told of a bare patch.
pub const BARE: &str = "apply_patch verification failed: the command is a patch by itself; call \
                        the apply_patch tool with it, or write `apply_patch <<'EOF'` before it \
                        and `EOF` after it";

/// A script longer than this holds no patch that we look for.
const MAX_SCRIPT: usize = 8 << 20;

impl Script {
    /// Reads a script for bash.
    pub fn read(script: &str) -> Self {
        if script.len() > MAX_SCRIPT || !mentions_patch(script) {
            return Self::Other;
        }
        if script.trim_start().starts_with("*** Begin Patch") && parse(script).is_ok() {
            return Self::Bare;
        }
        found(script).unwrap_or(Self::Other)
    }

    /// The folder a patch's paths are taken from.
    pub fn cwd(folder: Option<&Path>, cwd: &Path) -> PathBuf {
        folder.map_or_else(|| cwd.to_owned(), |folder| cwd.join(folder))
    }
}

/// Spares ordinary commands the parser.
fn mentions_patch(script: &str) -> bool {
    script.contains("*** Begin Patch")
}

fn found(script: &str) -> Option<Script> {
    let tree = syntax::tree(script)?;
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let reader = Reader { script };
    let statement = only(root)?;
    let (folder, text) = reader.redirected(statement)?;
    Some(Script::Patch { folder: folder.map(PathBuf::from), text })
}

struct Reader<'a> {
    script: &'a str,
}

impl Reader<'_> {
    /// `[cd FOLDER &&] apply_patch <<WORD`, whose parts hang together either way round.
    fn redirected(&self, statement: Node<'_>) -> Option<(Option<String>, String)> {
        let [body, redirect] = children(statement)[..] else { return None };
        if statement.kind() == "list" {
            let folder = self.joined_by_and(statement).then(|| self.folder(body)).flatten()?;
            let (None, text) = self.redirected(redirect)? else { return None };
            return Some((Some(folder), text));
        }
        if statement.kind() != "redirected_statement" || redirect.kind() != "heredoc_redirect" {
            return None;
        }
        let folder = self.program(body)?;
        Some((folder, self.document(redirect)?))
    }

    fn program(&self, body: Node<'_>) -> Option<Option<String>> {
        if body.kind() == "command" {
            let [name] = children(body)[..] else { return None };
            return matches!(self.text(name), "apply_patch" | "applypatch").then_some(None);
        }
        let [first, second] = children(body)[..] else { return None };
        if body.kind() != "list" || !self.joined_by_and(body) {
            return None;
        }
        match self.program(second)? {
            None => Some(Some(self.folder(first)?)),
            Some(_) => None,
        }
    }

    fn folder(&self, command: Node<'_>) -> Option<String> {
        let [name, word] = children(command)[..] else { return None };
        if command.kind() != "command" || self.text(name) != "cd" {
            return None;
        }
        let text = self.text(word);
        let plain = match word.kind() {
            "word" if !text.contains(['\\', '~', '*', '?', '[', '{']) => text,
            "raw_string" => text.strip_prefix('\'')?.strip_suffix('\'')?,
            "string" => text.strip_prefix('"')?.strip_suffix('"')?,
            _ => return None,
        };
        let expands = word.kind() == "string" && plain.contains(['$', '`', '\\']);
        (!expands && !plain.is_empty() && !plain.starts_with('-')).then(|| plain.to_owned())
    }

    /// The document's text; nothing else may stand in the redirection.
    fn document(&self, redirect: Node<'_>) -> Option<String> {
        let [start, body, _end] = children(redirect)[..] else { return None };
        if start.kind() != "heredoc_start" || body.kind() != "heredoc_body" {
            return None;
        }
        Some(self.text(body).to_owned())
    }

    fn joined_by_and(&self, list: Node<'_>) -> bool {
        list.child(1).is_some_and(|operator| operator.kind() == "&&")
    }

    fn text(&self, node: Node<'_>) -> &str {
        self.script.get(node.byte_range()).unwrap_or_default()
    }
}

fn only(node: Node<'_>) -> Option<Node<'_>> {
    let [child] = children(node)[..] else { return None };
    // A trailing `&` sends the statement to the background.
    (node.child_count() == 1).then_some(child)
}

fn children<'tree>(node: Node<'tree>) -> Vec<Node<'tree>> {
    (0..node.named_child_count()).filter_map(|at| node.named_child(at as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: a\n+x $HOME `id`\n*** End Patch\n";

    fn patch(folder: Option<&str>) -> Script {
        Script::Patch { folder: folder.map(PathBuf::from), text: PATCH.to_owned() }
    }

    #[test]
    fn a_patch_in_a_here_document_is_found() {
        let cases = [
            ("apply_patch <<'EOF'\n{}EOF\n", None),
            ("apply_patch <<'EOF'\n{}EOF", None),
            ("\n  applypatch <<\"PATCH\"\n{}PATCH\n\n", None),
            ("apply_patch <<EOF\n{}EOF\n", None),
            ("cd sub && apply_patch <<'EOF'\n{}EOF\n", Some("sub")),
            ("cd 'a b' && apply_patch <<'EOF'\n{}EOF\n", Some("a b")),
            ("cd \"a b\" && apply_patch <<'EOF'\n{}EOF\n", Some("a b")),
            ("cd /abs/dir && apply_patch <<'EOF'\n{}EOF\n", Some("/abs/dir")),
        ];
        for (script, folder) in cases {
            assert_eq!(Script::read(&script.replace("{}", PATCH)), patch(folder), "{script}");
        }
    }

    #[test]
    fn anything_more_is_a_command() {
        let cases = [
            "cd a; apply_patch <<'EOF'\n{}EOF\n",
            "cd a || apply_patch <<'EOF'\n{}EOF\n",
            "cd a && cd b && apply_patch <<'EOF'\n{}EOF\n",
            "cd \"$X\" && apply_patch <<'EOF'\n{}EOF\n",
            "cd ~ && apply_patch <<'EOF'\n{}EOF\n",
            "cd - && apply_patch <<'EOF'\n{}EOF\n",
            "cd a b && apply_patch <<'EOF'\n{}EOF\n",
            "cd && apply_patch <<'EOF'\n{}EOF\n",
            "echo a && apply_patch <<'EOF'\n{}EOF\n",
            "X=1 apply_patch <<'EOF'\n{}EOF\n",
            "apply_patch -v <<'EOF'\n{}EOF\n",
            "apply_patch <<'EOF' > log\n{}EOF\n",
            "apply_patch > log <<'EOF'\n{}EOF\n",
            "apply_patch <<'EOF' && id\n{}EOF\n",
            "apply_patch <<'EOF' | cat\n{}EOF\n",
            "apply_patch <<'EOF' &\n{}EOF\n",
            "apply_patch <<'EOF'\n{}EOF\nid\n",
            "id\napply_patch <<'EOF'\n{}EOF\n",
            "! apply_patch <<'EOF'\n{}EOF\n",
            "(apply_patch <<'EOF'\n{}EOF\n)",
            "./apply_patch <<'EOF'\n{}EOF\n",
            "cat <<'EOF' | apply_patch\n{}EOF\n",
            "apply_patch '{}'",
            "echo '{}'",
            "apply_patch <<'EOF'\n{}",
            "",
        ];
        for script in cases {
            assert_eq!(Script::read(&script.replace("{}", PATCH)), Script::Other, "{script}");
        }
    }

    #[test]
    fn a_bare_patch_is_told_apart() {
        assert_eq!(Script::read(PATCH), Script::Bare);
        assert_eq!(Script::read("*** Begin Patch\n*** Foo\n*** End Patch"), Script::Other);
    }
}
