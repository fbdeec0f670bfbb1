//! The examples of the docs, run as they stand there.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a line of the shell in the root of the workspace, with our command on `PATH`.
fn shell(line: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_bindery")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("a search path");
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(root())
        .env("PATH", path)
        .output()
        .expect("a shell");
    String::from_utf8(output.stdout).expect("text")
}

/// The `console` blocks of a page: each a command and what it prints.
fn examples(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1);
    let example = |block: &str| {
        let block = block.split("```").next().unwrap_or_default();
        let (command, output) = block.split_once('\n').expect("a command and its output");
        (command.strip_prefix("$ ").expect("a prompt").to_owned(), output.to_owned())
    };
    blocks.map(example).collect()
}

#[cfg(unix)]
#[test]
fn the_examples_of_the_docs_print_what_they_say() {
    let page = std::fs::read_to_string(root().join("docs/map.md")).expect("the page");
    let examples = examples(&page);
    assert_eq!(examples.len(), 7);
    for (command, output) in examples {
        assert_eq!(shell(&command), output, "{command}");
    }
}

#[test]
fn the_description_in_the_docs_is_the_one_that_is_run() {
    let page = std::fs::read_to_string(root().join("docs/map.md")).expect("the page");
    let shown = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let run = std::fs::read_to_string(root().join("docs/counter.toml")).expect("the file");
    assert_eq!(shown, Some(run.as_str()));
}

#[test]
fn a_wrong_baseline_says_what_to_give() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["map", "--baseline", "many"])
        .output()
        .expect("our command");
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r#"
    error: `--baseline` is no token count: expected value at line 1 column 1
      hint: give the `total` of a `usage` event: '{"input_tokens":200,…}'
    "#);
}
