//! Commands that are known to only read; all others are asked about in folders nobody trusts.
//!
//! A command is known with its options: an option that is not on the list may write a file or run
//! a program, in this version or in the next one, and so makes the command an unknown one.

mod git;

mod options;

use options::Options;

use super::script;

/// Predicates of `find` that only look, and take no argument.
#[rustfmt::skip]
const FIND_PLAIN: [&str; 27] = [
    "-H", "-L", "-P", "-a", "-and", "-d", "-daystart", "-depth", "-empty", "-executable", "-false",
    "-follow", "-ls", "-mount", "-noleaf", "-not", "-o", "-or", "-print", "-print0", "-prune",
    "-quit", "-readable", "-true", "-writable", "-xdev", "-nouser",
];

/// Predicates of `find` that only look, and take one.
#[rustfmt::skip]
const FIND_VALUED: [&str; 29] = [
    "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-ctime", "-fstype", "-gid", "-group",
    "-ilname", "-iname", "-inum", "-ipath", "-iregex", "-links", "-lname", "-maxdepth",
    "-mindepth", "-mmin", "-mtime", "-name", "-newer", "-path", "-perm", "-regex", "-regextype",
    "-size", "-type", "-user",
];

/// Whether it is one.
pub fn is_safe(argv: &[String]) -> bool {
    let [program, arguments @ ..] = argv else { return false };
    match program.as_str() {
        // They know no options that do anything else.
        "echo" | "expr" | "false" | "true" | "whoami" | "rev" => true,
        "find" => only_looks(arguments),
        "sed" => prints_lines(arguments),
        "git" => git::only_reads(arguments),
        name => match Options::of(name) {
            Some(options) => options.allow(arguments),
            None => script::of_shell(argv).and_then(script::plain).is_some_and(|commands| {
                let plain = |one: &Vec<String>| script::script_argument(one).is_none();
                commands.iter().all(|command| plain(command) && is_safe(command))
            }),
        },
    }
}

/// Whether a program that only reads by its arguments may run another by its configuration.
pub(super) fn obeys_configuration(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| program == "git")
}

fn only_looks(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let name = argument.as_str();
        let known = match name {
            "(" | ")" | "!" | "," => true,
            _ if FIND_PLAIN.contains(&name) => true,
            // Nothing after it leaves find itself to complain.
            _ if FIND_VALUED.contains(&name) => arguments.next().is_some(),
            _ => !name.starts_with('-'),
        };
        if !known {
            return false;
        }
    }
    true
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
