//! Commands that are known to only read; all others are asked about in folders nobody trusts.

use super::script;

/// Whatever their arguments are.
const ALWAYS: [&str; 25] = [
    "cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "numfmt",
    "paste", "pwd", "rev", "seq", "stat", "tac", "tail", "tr", "true", "uname", "uniq", "wc",
    "whoami",
];

/// Arguments of `find` that do more than look.
const FIND: [&str; 9] =
    ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"];

/// Whether it is one.
pub fn is_safe(argv: &[String]) -> bool {
    let [program, arguments @ ..] = argv else { return false };
    let has = |flags: &[&str]| arguments.iter().any(|one| flags.contains(&one.as_str()));
    let begins =
        |flags: &[&str]| arguments.iter().any(|one| flags.iter().any(|flag| one.starts_with(flag)));
    match program.as_str() {
        // Its second file is written to.
        "uniq" => arguments.iter().filter(|one| !one.starts_with('-')).count() < 2,
        name if ALWAYS.contains(&name) => true,
        "which" => true,
        "base64" => !begins(&["-o", "--output"]),
        "find" => !has(&FIND),
        "rg" => {
            !has(&["-z", "--search-zip"])
                && !begins(&["--pre", "--hostname-bin"])
                && !clustered(arguments)
        }
        "sed" => prints_lines(arguments),
        "git" => reads_history(arguments),
        _ => script::of_shell(argv).and_then(script::plain).is_some_and(|commands| {
            commands.iter().all(|command| script::of_shell(command).is_none() && is_safe(command))
        }),
    }
}

/// `-iz` and its like.
fn clustered(arguments: &[String]) -> bool {
    let short = arguments.iter().filter(|one| one.starts_with('-') && !one.starts_with("--"));
    short.clone().any(|one| one.contains('z'))
}

/// `sed -n 3p` or `sed -n 3,9p`, of one file.
fn prints_lines(arguments: &[String]) -> bool {
    let ([flag, range] | [flag, range, _]) = arguments else { return false };
    let file_is_none = arguments.get(2).is_none_or(|file| !file.starts_with('-'));
    let Some(range) = range.strip_suffix('p') else { return false };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = match range.split_once(',') {
        Some((from, to)) => number(from) && number(to),
        None => number(range),
    };
    flag == "-n" && numbers && file_is_none
}

/// The word must come first: options before it can make git run other programs.
fn reads_history(arguments: &[String]) -> bool {
    let [word, rest @ ..] = arguments else { return false };
    let harmful = ["--output", "--ext-diff", "--textconv", "--exec", "-c", "-C", "--git-dir"];
    let harmless = rest.iter().all(|one| !harmful.iter().any(|flag| one.starts_with(flag)));
    match word.as_str() {
        "status" | "log" | "diff" | "show" => harmless,
        "branch" => rest.iter().all(|one| {
            matches!(
                one.as_str(),
                "-a" | "-r" | "-v" | "-vv" | "--all" | "--list" | "--show-current"
            )
        }),
        _ => false,
    }
}
