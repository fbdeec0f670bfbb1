//! ARCHITECTURE.md is a map: what it names exists, and it names every crate.

use super::{Breach, Rule, Tree};

const MAP: &str = "ARCHITECTURE.md";

/// Folders whose paths are checked.
const FOLDERS: &[&str] = &["crates/", "docs/", "fixtures/", "xtask/", "packages/", ".ci/"];

/// Checks the map against the tree.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let Some(text) = tree.text(MAP) else {
        return vec![Breach::of_file(Rule::Architecture, MAP, "is missing: newcomers need a map")];
    };
    let quoted = quoted(text);
    let gone = quoted.iter().filter(|(_, words)| names_nothing(tree, words));
    let gone = gone.map(|&(line, words)| {
        Breach::at_line(Rule::Architecture, MAP, line, format!("`{words}` does not exist"))
    });
    let unnamed = crates(tree).filter(|folder| !quoted.iter().any(|(_, w)| is_named(w, folder)));
    let unnamed = unnamed.map(|folder| {
        Breach::of_file(Rule::Architecture, MAP, format!("does not name the crate `{folder}`"))
    });
    gone.chain(unnamed).collect()
}

/// What stands in backticks, with its line; fenced blocks are drawings and are left out.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(|words| (number, words)));
        }
    }
    found
}

fn names_nothing(tree: &Tree, words: &str) -> bool {
    let is_path = FOLDERS.iter().any(|folder| words.starts_with(folder));
    is_path && !words.contains(char::is_whitespace) && !tree.has(definite(words))
}

/// The part of a path before a pattern (`*`, `<version>`, `{a,b}`) or a place within the file
/// (`#part`, `::item`).
fn definite(path: &str) -> &str {
    let path = path.split(['#', ':']).next().unwrap_or(path);
    match path.find(['*', '<', '{', '…']) {
        Some(pattern) => path[..pattern].rfind('/').map_or("", |slash| &path[..slash]),
        None => path,
    }
}

/// Folders of crates, from the root.
fn crates(tree: &Tree) -> impl Iterator<Item = &str> {
    let manifests = tree.files().filter_map(|source| source.path.strip_suffix("/Cargo.toml"));
    manifests.filter(|folder| folder.starts_with("crates/") || *folder == "xtask")
}

/// True for the folder, a path in it, or its last name alone.
fn is_named(words: &str, folder: &str) -> bool {
    let inside = words.strip_prefix(folder);
    let inside = inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    inside || folder.strip_prefix("crates/") == Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(map: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (MAP, map),
            ("crates/core/Cargo.toml", ""),
            ("crates/core/src/part.rs", ""),
            ("docs/guide.md", ""),
        ]);
        check(&tree).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn a_missing_map_is_said() {
        let found = check(&Tree::of(&[("README.md", "")]));
        assert_eq!(found[0].text, "is missing: newcomers need a map");
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        let map = "`core`\nsee `crates/core/src/part.rs` and `crates/core/src/old.rs`\n`docs/x/`\n";
        let expected = [
            "ARCHITECTURE.md:2: `crates/core/src/old.rs` does not exist [Architecture]",
            "ARCHITECTURE.md:3: `docs/x/` does not exist [Architecture]",
        ];
        assert_eq!(breaches(map), expected);
    }

    #[test]
    fn patterns_places_and_drawings_are_read_with_sense() {
        let map = "`crates/core/` `docs/*.md` `docs/guide.md#start`\n\
                   `crates/core/src/part.rs::Part`\n\
                   `cargo run` `docs/ or so` `src/elsewhere.rs`\n\
                   ```\n`crates/drawn.rs`\n```\n";
        assert_eq!(breaches(map), [""; 0]);
        let expected = "ARCHITECTURE.md:2: `fixtures/<version>/` does not exist [Architecture]";
        assert_eq!(breaches("`core`\n`fixtures/<version>/`"), [expected]);
    }

    #[test]
    fn a_crate_that_is_not_named_is_found() {
        let expected = "ARCHITECTURE.md: does not name the crate `crates/core` [Architecture]";
        assert_eq!(
            breaches("core without quotes, `crates/cor`e"),
            ["ARCHITECTURE.md:1: `crates/cor` does not exist [Architecture]", expected]
        );
        assert_eq!(breaches("`crates/core/src/part.rs`"), [""; 0]);
        assert_eq!(breaches("`core`"), [""; 0]);
    }
}
