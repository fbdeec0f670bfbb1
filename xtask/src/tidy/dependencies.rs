//! Every outside crate of the workspace has its reason in CONTRIBUTING.md, and only those.

use std::collections::BTreeSet;

use super::{Breach, Rule, Tree};

const REASONS: &str = "CONTRIBUTING.md";

const HEADING: &str = "## Dependencies";

/// Compares `[workspace.dependencies]` with the table of reasons.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let used = outside(tree.text("Cargo.toml").unwrap_or_default());
    let explained = explained(tree.text(REASONS).unwrap_or_default());
    let breach = |name: &str, text: &str| {
        Breach::of_file(Rule::Dependency, REASONS, format!("`{name}` {text}"))
    };
    let silent = used.difference(&explained);
    let silent = silent.map(|name| breach(name, "has no line under Dependencies: give its reason"));
    let gone = explained.difference(&used);
    let gone = gone.map(|name| breach(name, "is in no `[workspace.dependencies]`: drop its line"));
    silent.chain(gone).collect()
}

/// Names in `[workspace.dependencies]` that are no path into this repository.
///
/// Read line by line, as the workspace writes one dependency a line; a TOML parser would be one
/// more dependency to give a reason for.
fn outside(manifest: &str) -> BTreeSet<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[workspace.dependencies]");
    let lines = lines.skip(1).take_while(|line| !line.trim_start().starts_with('['));
    let entries = lines.filter_map(|line| line.split_once('='));
    let entries = entries
        .filter(|(name, value)| !name.trim_start().starts_with('#') && !value.contains("path ="));
    entries.map(|(name, _)| name.trim().trim_end_matches(".version")).collect()
}

/// Names in backticks in the first column of the tables under the heading.
fn explained(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().skip_while(|line| line.trim() != HEADING).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    let cells = lines.filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
name = \"x\"
[workspace.dependencies]
# Ours, a = b.
ours = { path = \"crates/ours\" }
serde = { version = \"1\", features = [\"derive\"] }
anyhow = \"1\"

[workspace.lints.rust]
unsafe_code = \"forbid\"
";

    fn breaches(reasons: &str) -> Vec<String> {
        let tree = Tree::of(&[("Cargo.toml", MANIFEST), (REASONS, reasons)]);
        check(&tree).iter().map(|breach| breach.text.clone()).collect()
    }

    #[test]
    fn a_table_of_all_reasons_passes() {
        let table = "## Dependencies\n\n| crate | why |\n|---|---|\n| `serde` | data |\n";
        assert_eq!(breaches(&format!("{table}| `anyhow` | `errors` |\n\n## Next\n")), [""; 0]);
    }

    #[test]
    fn missing_and_stale_reasons_are_found() {
        let reasons = "`anyhow`\n## Dependencies\n| `serde` | a |\n| `old` | b |\n## Next\n";
        let expected = [
            "`anyhow` has no line under Dependencies: give its reason",
            "`old` is in no `[workspace.dependencies]`: drop its line",
        ];
        assert_eq!(breaches(reasons), expected);
    }
}
