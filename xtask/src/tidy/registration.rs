//! Things that are easily left out: a test file in its binary, a command in the docs.

use super::{Breach, Rule, Tree};

const COMMANDS: &str = "crates/cli/src/commands/";

/// Checks that test files are compiled and commands documented.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = unregistered_tests(tree);
    breaches.extend(undocumented_commands(tree));
    breaches
}

/// Files under `tests/it` that its main.rs does not declare: cargo would never compile them.
fn unregistered_tests(tree: &Tree) -> Vec<Breach> {
    let found = tree.rust().filter_map(|source| {
        let (folder, file) = source.path.split_once("/tests/it/")?;
        let module = file.strip_suffix("/mod.rs").or_else(|| file.strip_suffix(".rs"))?;
        let main = format!("{folder}/tests/it/main.rs");
        let registered = declares(tree.text(&main).unwrap_or_default(), module);
        let direct = !module.contains('/') && module != "main";
        let text = format!("is not compiled: add `mod {module};` to `{main}`");
        (direct && !registered).then(|| Breach::of_file(Rule::Registration, &source.path, text))
    });
    found.collect()
}

fn declares(main: &str, module: &str) -> bool {
    let declaration = format!("mod {module};");
    main.lines().any(|line| line.trim().trim_start_matches("pub ") == declaration)
}

/// Commands that neither the README nor a page of the docs mentions.
fn undocumented_commands(tree: &Tree) -> Vec<Breach> {
    let pages: Vec<_> = tree.files().filter(|source| is_page(&source.path)).collect();
    let commands = tree.rust().filter_map(|source| {
        let name = source.path.strip_prefix(COMMANDS)?.strip_suffix(".rs")?;
        (name != "mod" && !name.contains('/')).then(|| (source, name.replace('_', "-")))
    });
    let silent = commands.filter(|(_, name)| !pages.iter().any(|page| mentions(&page.text, name)));
    silent
        .map(|(source, name)| {
            let text = format!("`bindery {name}` is in neither README.md nor docs");
            Breach::of_file(Rule::Registration, &source.path, text)
        })
        .collect()
}

fn is_page(path: &str) -> bool {
    path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"))
}

fn mentions(text: &str, name: &str) -> bool {
    let command = format!("bindery {name}");
    text.match_indices(&command).any(|(start, _)| {
        let after = text[start + command.len()..].chars().next();
        !after.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn a_test_file_that_is_never_compiled_is_found() {
        let found = breaches(&[
            ("crates/a/tests/it/main.rs", "//! Tests.\nmod good;\n\nmod folder;\n// mod bad;\n"),
            ("crates/a/tests/it/good.rs", ""),
            ("crates/a/tests/it/bad.rs", ""),
            ("crates/a/tests/it/folder/mod.rs", ""),
            ("crates/a/tests/it/folder/below.rs", ""),
            ("crates/b/tests/it/good.rs", ""),
        ]);
        let expected = ["crates/a/tests/it/bad.rs", "crates/b/tests/it/good.rs"];
        let paths: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(paths, expected);
        assert!(found[0].contains("add `mod bad;` to `crates/a/tests/it/main.rs`"));
    }

    #[test]
    fn an_undocumented_command_is_found() {
        let run = ("crates/cli/src/commands/run.rs", "");
        let app_server = ("crates/cli/src/commands/app_server.rs", "");
        let module = ("crates/cli/src/commands/mod.rs", "");
        let readme = ("README.md", "`bindery run` does it\n");
        let docs = ("docs/server.md", "bindery app-server --listen\n");
        assert_eq!(breaches(&[run, app_server, module, readme, docs]), [""; 0]);
        let found = breaches(&[run, ("README.md", "bindery running, bindery run-all")]);
        let expected = "`bindery run` is in neither README.md nor docs [Registration]";
        assert_eq!(found, [format!("crates/cli/src/commands/run.rs: {expected}")]);
    }
}
