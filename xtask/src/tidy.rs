//! The house rules of CONTRIBUTING.md as checks over the tracked files.
//!
//! `tests/tidy.rs` runs them on this repository. Each check takes a [`Tree`] or JSON and returns
//! every breach it finds, so a test can hand it a bad tree and see it fail.

use std::fmt::{self, Display};
use std::path::Path;

use crate::workspace;

pub use tree::Tree;

pub mod tree;

pub mod size;

pub mod text;

pub mod architecture;

pub mod edges;

pub mod dependencies;

pub mod registration;

/// Files that may break one rule, each with the reason. Tables are the usual reason.
pub const EXEMPTIONS: &[Exemption] = &[];

/// One file that may break one rule.
pub struct Exemption {
    /// The rule.
    pub rule: Rule,
    /// The file, from the root.
    pub path: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// A house rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A file has at most 400 lines of code, and at most 600 of tests.
    FileLength,
    /// A function has at most 60 lines (counted by clippy; we check that it is told to).
    FunctionLength,
    /// A line of Rust has at most 100 characters.
    LineWidth,
    /// The first line of a Rust file says what it is.
    FirstLine,
    /// Words that must not be in a tracked file.
    Word,
    /// ARCHITECTURE.md names what exists, and every crate.
    Architecture,
    /// Crates use only the crates they may.
    Edge,
    /// Outside crates are few, and each has its reason in CONTRIBUTING.md.
    Dependency,
    /// Test files are compiled, commands are documented.
    Registration,
    /// An exemption is needed and has a reason.
    Exemption,
}

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// The file, from the root.
    pub path: String,
    /// The line, counted from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub text: String,
}

impl Breach {
    /// A breach of a file as a whole.
    pub fn of_file(rule: Rule, path: &str, text: impl Into<String>) -> Self {
        Self { rule, path: path.to_owned(), line: None, text: text.into() }
    }

    /// A breach at a line, counted from 1.
    pub fn at_line(rule: Rule, path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::of_file(rule, path, text) }
    }
}

impl Display for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {} [{:?}]", self.text, self.rule)
    }
}

/// Every breach in the workspace, exemptions applied.
pub fn check(root: &Path) -> anyhow::Result<Vec<Breach>> {
    let tree = Tree::read(root)?;
    let metadata = workspace::metadata(root)?;
    let breaches = [
        size::check(&tree),
        text::check(&tree),
        architecture::check(&tree),
        edges::check(&metadata),
        dependencies::check(&tree),
        registration::check(&tree),
    ];
    Ok(exempt(breaches.concat(), EXEMPTIONS))
}

/// A readable list for an assertion.
pub fn listing(breaches: &[Breach]) -> String {
    let lines = breaches.iter().map(|breach| format!("\n  {breach}")).collect::<String>();
    format!("{} house rules are broken:{lines}\n", breaches.len())
}

/// Drops what is exempt, and adds a breach for each exemption that nothing needs any more.
fn exempt(breaches: Vec<Breach>, exemptions: &[Exemption]) -> Vec<Breach> {
    let covers = |exemption: &Exemption, breach: &Breach| {
        exemption.rule == breach.rule && exemption.path == breach.path
    };
    let stale = exemptions.iter().filter(|exemption| {
        exemption.reason.is_empty() || !breaches.iter().any(|breach| covers(exemption, breach))
    });
    let stale = stale.map(|exemption| {
        let text = format!("exemption from {:?} lacks a reason or a use", exemption.rule);
        Breach::of_file(Rule::Exemption, exemption.path, text)
    });
    let stale: Vec<_> = stale.collect();
    let kept = breaches.iter().filter(|breach| !exemptions.iter().any(|e| covers(e, breach)));
    kept.cloned().chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exemption(path: &'static str, reason: &'static str) -> Exemption {
        Exemption { rule: Rule::FileLength, path, reason }
    }

    #[test]
    fn an_exemption_covers_its_rule_and_file_only() {
        let long = |path| Breach::of_file(Rule::FileLength, path, "long");
        let wide = Breach::at_line(Rule::LineWidth, "a.rs", 3, "wide");
        let breaches = vec![long("a.rs"), long("b.rs"), wide.clone()];
        let kept = exempt(breaches, &[exemption("a.rs", "a table")]);
        assert_eq!(kept, [long("b.rs"), wide]);
    }

    #[test]
    fn an_exemption_needs_a_use_and_a_reason() {
        let long = Breach::of_file(Rule::FileLength, "a.rs", "long");
        let kept = exempt(vec![long], &[exemption("a.rs", ""), exemption("gone.rs", "a table")]);
        let paths: Vec<_> = kept.iter().map(|breach| (breach.rule, breach.path.as_str())).collect();
        assert_eq!(paths, [(Rule::Exemption, "a.rs"), (Rule::Exemption, "gone.rs")]);
    }

    #[test]
    fn a_listing_has_a_line_for_each_breach() {
        let breaches = [
            Breach::at_line(Rule::LineWidth, "a.rs", 3, "wide"),
            Breach::of_file(Rule::FirstLine, "b.rs", "silent"),
        ];
        let expected = "2 house rules are broken:\n  \
                        a.rs:3: wide [LineWidth]\n  b.rs: silent [FirstLine]\n";
        assert_eq!(listing(&breaches), expected);
    }
}
