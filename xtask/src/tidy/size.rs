//! Sizes: files, functions, lines.
//!
//! Functions are counted by clippy (`too_many_lines`), which sees them as the compiler does; here
//! it is only checked that each clippy.toml gives it our limit and that no file switches it off.

use super::tree::Source;
use super::{Breach, Rule, Tree};

/// Lines of code in a file, tests aside.
pub const FILE_LINES: usize = 400;

/// Lines of tests in a file.
pub const TEST_LINES: usize = 600;

/// Characters in a line of Rust.
pub const LINE_WIDTH: usize = 100;

/// Characters in a line of tests: the row of a table is read across.
pub const TABLE_WIDTH: usize = 180;

/// The line each clippy.toml must have: a crate's own file replaces the root's, it adds nothing.
const THRESHOLD: &str = "too-many-lines-threshold = 60";

/// The lint that counts the lines of functions. Split, so that this file does not name it.
const LINT: &str = concat!("clippy::too_", "many_lines");

/// Checks all sizes.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let files = tree.rust().flat_map(|source| {
        file_length(source).into_iter().chain(line_width(source)).chain(lint_kept(source))
    });
    files.chain(tree.files().filter_map(threshold)).collect()
}

fn file_length(source: &Source) -> Vec<Breach> {
    let (code, tests) = code_and_tests(source);
    let breach = |what: &str, lines: usize, limit: usize| {
        let text = format!("{lines} lines of {what}, at most {limit}: split the file");
        (lines > limit).then(|| Breach::of_file(Rule::FileLength, &source.path, text))
    };
    let code = breach("code", code_lines(code), FILE_LINES);
    code.into_iter().chain(breach("tests", code_lines(tests), TEST_LINES)).collect()
}

fn line_width(source: &Source) -> impl Iterator<Item = Breach> {
    let code = code_and_tests(source).0.lines().count();
    let lines = source.text.lines().map(|line| line.chars().count()).zip(1..);
    lines.filter_map(move |(width, line)| {
        let limit = if line > code { TABLE_WIDTH } else { LINE_WIDTH };
        let text = format!("{width} characters in a line, at most {limit}");
        (width > limit).then(|| Breach::at_line(Rule::LineWidth, &source.path, line, text))
    })
}

fn lint_kept(source: &Source) -> Option<Breach> {
    let line = source.text.lines().position(|line| line.contains(LINT))?;
    let text = "the limit for functions is switched off: split the function";
    Some(Breach::at_line(Rule::FunctionLength, &source.path, line + 1, text))
}

fn threshold(source: &Source) -> Option<Breach> {
    let is_config = source.path == "clippy.toml" || source.path.ends_with("/clippy.toml");
    let missing = is_config && !source.text.lines().any(|line| line.trim() == THRESHOLD);
    let text = format!("needs the line `{THRESHOLD}`");
    missing.then(|| Breach::of_file(Rule::FunctionLength, &source.path, text))
}

/// Splits a file at its test module. Clippy (`items_after_test_module`) keeps that one last.
fn code_and_tests(source: &Source) -> (&str, &str) {
    const MODULE: &str = "\n#[cfg(test)]\nmod ";
    let text = source.text.as_str();
    if is_test_file(&source.path) {
        return ("", text);
    }
    let mut modules = text.match_indices(MODULE).map(|(start, _)| start);
    // `mod tests;` only names a file, and the code goes on below it.
    let inline = modules.find(|start| {
        let line = text[start + MODULE.len()..].lines().next();
        line.is_some_and(|line| line.ends_with('{'))
    });
    inline.map_or((text, ""), |start| text.split_at(start))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|folder| folder == "tests")
}

/// Lines that are neither blank nor wholly comment.
fn code_lines(text: &str) -> usize {
    let mut in_comment = false;
    let counts = |line: &&str| {
        let line = line.trim();
        if in_comment {
            in_comment = !line.contains("*/");
            return false;
        }
        in_comment = line.starts_with("/*") && !line.contains("*/");
        !(line.is_empty() || line.starts_with("//") || line.starts_with("/*"))
    };
    text.lines().filter(counts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn a_long_file_is_found_and_comments_are_free() {
        let code = "let a = 1;\n".repeat(400);
        let free = format!("//! Doc.\n\n/* block\nlet b = 2;\n*/\n// note\n{code}");
        assert_eq!(breaches("src/a.rs", &free), [""; 0]);
        let long = format!("{free}let b = 2;\n");
        let expected = "src/a.rs: 401 lines of code, at most 400: split the file [FileLength]";
        assert_eq!(breaches("src/a.rs", &long), [expected]);
        assert_eq!(breaches("fixtures/a.rs", &long), [""; 0]);
    }

    #[test]
    fn tests_are_counted_apart() {
        let code = "let a = 1;\n".repeat(390);
        let module =
            |lines| format!("\n#[cfg(test)]\nmod tests {{\n{}}}\n", "b();\n".repeat(lines));
        assert_eq!(breaches("src/a.rs", &(code.clone() + &module(597))), [""; 0]);
        let expected = "src/a.rs: 601 lines of tests, at most 600: split the file [FileLength]";
        assert_eq!(breaches("src/a.rs", &(code + &module(598))), [expected]);
        let declared = format!("\n#[cfg(test)]\nmod tests;\n{}", "b();\n".repeat(399));
        let expected = "src/a.rs: 401 lines of code, at most 400: split the file [FileLength]";
        assert_eq!(breaches("src/a.rs", &declared), [expected]);
        let tests = "b();\n".repeat(601);
        for path in ["crates/a/tests/it/b.rs", "crates/a/src/b/tests.rs"] {
            let expected = format!("{path}: 601 lines of tests, at most 600: split the file");
            assert_eq!(breaches(path, &tests), [format!("{expected} [FileLength]")]);
        }
    }

    #[test]
    fn a_wide_line_is_found_and_counted_in_characters() {
        let fits = "é".repeat(100);
        assert_eq!(breaches("src/a.rs", &fits), [""; 0]);
        let expected = "src/a.rs:2: 101 characters in a line, at most 100 [LineWidth]";
        assert_eq!(breaches("src/a.rs", &format!("\n{fits}é\n")), [expected]);
        assert_eq!(breaches("README.md", &format!("{fits}é")), [""; 0]);
    }

    #[test]
    fn the_limit_for_functions_stays_on() {
        let text = format!("//! Doc.\n#[expect({LINT}, reason = \"\")]\n");
        assert_eq!(check(&Tree::of(&[("src/a.rs", &text)]))[0].line, Some(2));
        assert_eq!(breaches("clippy.toml", THRESHOLD), [""; 0]);
        let expected = format!("crates/core/clippy.toml: needs the line `{THRESHOLD}`");
        let found = breaches("crates/core/clippy.toml", "disallowed-methods = []");
        assert_eq!(found, [format!("{expected} [FunctionLength]")]);
    }
}
