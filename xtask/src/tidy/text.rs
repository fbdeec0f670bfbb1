//! What a file must say first, and words that no tracked file may hold.

use super::tree::Source;
use super::{Breach, Rule, Tree};

/// Words that must not be in a tracked file, and why. Split, so that this file does not hold them.
const WORDS: &[(&str, &str)] = &[
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/fa", "rm/"), "a path of one machine"),
    (concat!("to", "do!("), "unfinished code"),
    (concat!("unimpl", "emented!("), "unfinished code"),
    (concat!("db", "g!("), "a left-over of debugging"),
    (concat!("#[ig", "nore"), "a test that does not run"),
];

/// How git is started. Only one place of the product does: a repository can make git run programs.
const GIT: &str = "Command::new(\"git\")";

/// Checks first lines and words.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let first = tree.rust().filter_map(first_line);
    let git = tree.rust().filter(|source| is_product(&source.path)).flat_map(starts_of_git);
    first.chain(git).chain(tree.files().flat_map(words)).collect()
}

/// Tests and the house's own tasks work in repositories that they made themselves.
fn is_product(path: &str) -> bool {
    let within = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    within.is_some_and(|(name, file)| name != "testkit" && file.starts_with("src/"))
}

fn starts_of_git(source: &Source) -> impl Iterator<Item = Breach> {
    let lines = source.text.lines().zip(1..).filter(|(line, _)| line.contains(GIT));
    lines.map(|(_, number)| {
        let why = "git is started through `RepositoryView` of the engine only";
        Breach::at_line(Rule::Word, &source.path, number, format!("`{GIT}`: {why}"))
    })
}

fn first_line(source: &Source) -> Option<Breach> {
    let says = source.text.strip_prefix("//!").is_some_and(|rest| rest.starts_with(" "));
    let text = "the first line must be `//! …` and say what the file is";
    (!says).then(|| Breach::at_line(Rule::FirstLine, &source.path, 1, text))
}

fn words(source: &Source) -> impl Iterator<Item = Breach> {
    source.text.lines().zip(1..).flat_map(move |(line, number)| {
        let found = WORDS.iter().filter(move |(word, _)| holds(line, word));
        found.map(move |(word, why)| {
            Breach::at_line(Rule::Word, &source.path, number, format!("`{word}`: {why}"))
        })
    })
}

/// True when the word stands by itself: `a/root/b` is no absolute path, `my_todo!(` another macro.
fn holds(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}>$*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn a_git_of_ones_own_is_found() {
        let text = format!("//! A file.\nlet git = {GIT};\n");
        for path in ["crates/cli/src/a.rs", "crates/engine/src/git.rs"] {
            let expected = format!(
                "{path}:2: `{GIT}`: git is started through `RepositoryView` of the engine only \
                 [Word]"
            );
            assert_eq!(breaches(path, &text), [expected]);
        }
        for path in ["crates/cli/tests/a.rs", "crates/testkit/src/a.rs", "xtask/src/a.rs"] {
            assert_eq!(breaches(path, &text), [""; 0], "{path}");
        }
    }

    #[test]
    fn a_silent_file_is_found() {
        let expected = "src/a.rs:1: the first line must be `//! …` and say what the file is";
        for text in ["", "use a::b;\n//! Late.\n", "// Plain.\n", "//!\n//! Second.\n"] {
            assert_eq!(breaches("src/a.rs", text), [format!("{expected} [FirstLine]")], "{text:?}");
        }
        assert_eq!(breaches("src/a.rs", "//! A file.\n"), [""; 0]);
        assert_eq!(breaches("a.py", "pass\n"), [""; 0]);
    }

    #[test]
    fn every_banned_word_is_found_with_its_line() {
        for (word, why) in WORDS {
            let text = format!("one\n  \"{word}x\n");
            let expected = format!("docs/a.md:2: `{word}`: {why} [Word]");
            assert_eq!(breaches("docs/a.md", &text), [expected]);
        }
    }

    #[test]
    fn parts_of_other_words_and_paths_are_fine() {
        let path = WORDS[0].0;
        let call = WORDS[3].0;
        for text in [format!("src{path}x"), format!("{{home}}{path}"), format!("my_{call})")] {
            assert_eq!(breaches("docs/a.md", &text), [""; 0], "{text}");
        }
    }
}
