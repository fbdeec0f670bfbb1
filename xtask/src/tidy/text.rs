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

/// Checks first lines and words.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let first = tree.rust().filter_map(first_line);
    first.chain(tree.files().flat_map(words)).collect()
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
