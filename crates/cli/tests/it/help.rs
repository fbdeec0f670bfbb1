//! What the command says of itself.

use std::process::Command;

fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    // clap fits its text to the width of the terminal.
    let output = command.args(args).env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command() {
    insta::assert_snapshot!(help(&["--help"]));
}

#[test]
fn run() {
    insta::assert_snapshot!(help(&["run", "--help"]));
}

#[test]
fn exec() {
    insta::assert_snapshot!(help(&["exec", "--help"]));
}

#[test]
fn review() {
    insta::assert_snapshot!(help(&["review", "--help"]));
}

#[test]
fn app_server() {
    insta::assert_snapshot!(help(&["app-server", "--help"]));
}

#[test]
fn doctor() {
    insta::assert_snapshot!(help(&["doctor", "--help"]));
}

#[test]
fn models() {
    insta::assert_snapshot!(help(&["models", "--help"]));
}

#[test]
fn nothing_to_do_is_misuse() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_misspelt_flag_is_misuse() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    let output = command.args(["run", "--modle", "x", "hi"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}
