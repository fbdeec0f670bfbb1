//! Commands that destroy things without asking, however they are dressed up.

use super::script;

/// Deeper nesting is taken for the worst.
const DEPTH: usize = 8;

/// They run what their arguments say.
const WRAPPERS: [&str; 19] = [
    "sudo", "doas", "env", "nohup", "nice", "ionice", "time", "timeout", "command", "exec",
    "builtin", "xargs", "stdbuf", "setsid", "busybox", "find", "chroot", "watch", "parallel",
];

/// They run an argument as a script.
const SCRIPTS: [&str; 2] = ["trap", "eval"];

/// Whether it is one.
pub fn is_dangerous(argv: &[String]) -> bool {
    dangerous(argv, 0)
}

fn dangerous(argv: &[String], depth: usize) -> bool {
    let [program, arguments @ ..] = argv else { return false };
    if depth > DEPTH {
        return true;
    }
    let name = script::name(program);
    let scripts = scripts(name, arguments);
    removes(name, arguments)
        || scripts.iter().any(|text| in_script(text, depth + 1))
        || (WRAPPERS.contains(&name)
            && (0..arguments.len()).any(|start| dangerous(&arguments[start..], depth + 1)))
        // `A=1 rm -rf x`, as a command's words are read from a script.
        || (name.contains('=') && dangerous(arguments, depth + 1))
}

fn removes(name: &str, arguments: &[String]) -> bool {
    let forced = |argument: &String| {
        argument == "--force"
            || (argument.starts_with('-') && !argument.starts_with("--") && argument.contains('f'))
    };
    match name {
        "rm" => arguments.iter().take_while(|argument| *argument != "--").any(forced),
        "dd" => arguments.iter().any(|argument| argument.starts_with("of=/dev/")),
        "shred" | "wipefs" => true,
        _ => name == "mkfs" || name.starts_with("mkfs."),
    }
}

/// Arguments that are scripts: all of a shell's that has `-c` in some form, for the order of its
/// options is not known; and all of `eval`'s together, as it puts them together itself.
fn scripts(name: &str, arguments: &[String]) -> Vec<String> {
    let is_flag = |argument: &&String| argument.starts_with('-') || argument.starts_with('+');
    let call = [name.to_owned(), "-c".to_owned(), String::new()];
    let shell = script::script_argument(&call).is_some();
    let takes = shell && arguments.iter().any(|one| is_flag(&one) && one.contains('c'));
    if !takes && !SCRIPTS.contains(&name) {
        return Vec::new();
    }
    let mut scripts: Vec<String> = arguments.iter().filter(|one| !is_flag(one)).cloned().collect();
    if !shell {
        scripts.push(arguments.join(" "));
    }
    scripts
}

fn in_script(text: &str, depth: usize) -> bool {
    match script::all(text) {
        Some(commands) => commands.iter().any(|command| dangerous(command, depth)),
        // Not read as a script, so read roughly.
        None => {
            let words = text.split(|c: char| c.is_whitespace() || ";|&(){}`$\"'".contains(c));
            let words: Vec<String> =
                words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
            let removing = |at: &usize| removes(script::name(&words[*at]), &words[at + 1..]);
            (0..words.len()).find(removing).is_some()
        }
    }
}
