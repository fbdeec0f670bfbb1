//! What of git only reads, as far as its arguments go: a repository's configuration can name
//! programs that git runs all the same, which is left to the sandbox.

/// Of `status`, `diff`, `log` and `show`. One that ends with `=` has a value in the same word.
#[rustfmt::skip]
const SHOWING: [&str; 81] = [
    "--", "-b", "-p", "-s", "-u", "-w", "-z", "-uall", "-uno", "-unormal", "-sb",
    "--abbrev-commit", "--abbrev=", "--after=", "--ahead-behind", "--all", "--author=",
    "--before=", "--branch", "--branches", "--cached", "--check", "--color", "--color=",
    "--compact-summary", "--date=", "--decorate", "--decorate=", "--diff-filter=", "--dirstat",
    "--find-renames", "--first-parent", "--follow", "--full-index", "--graph", "--grep=",
    "--ignore-all-space", "--ignore-blank-lines", "--ignore-space-change", "--ignored",
    "--ignored=", "--left-right", "--max-count=", "--merge-base", "--merges", "--name-only",
    "--name-status", "--no-color", "--no-decorate", "--no-ext-diff", "--no-merges", "--no-patch",
    "--no-renames", "--no-textconv", "--numstat", "--oneline", "--patch", "--patch-with-stat",
    "--porcelain", "--porcelain=", "--quiet", "--raw", "--regexp-ignore-case", "--remotes",
    "--reverse", "--short", "--shortstat", "--since=", "--skip=", "--staged", "--stat", "--stat=",
    "--summary", "--tags", "--topo-order", "--unified=", "--until=", "--untracked-files",
    "--untracked-files=", "--word-diff", "--word-diff=",
];

/// Of `branch`, which without them makes one.
const LISTING: [&str; 7] = ["-a", "-r", "-v", "-vv", "--all", "--list", "--show-current"];

/// The word must come first: options before it can make git run other programs.
pub(super) fn only_reads(arguments: &[String]) -> bool {
    let [word, rest @ ..] = arguments else { return false };
    match word.as_str() {
        "status" | "log" | "diff" | "show" => shows(rest),
        "branch" => rest.iter().all(|one| LISTING.contains(&one.as_str())),
        _ => false,
    }
}

fn shows(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            return true;
        }
        let known = match argument.as_str() {
            "-n" => arguments.next().is_some_and(|count| is_number(count)),
            one if !one.starts_with('-') => true,
            one => is_known(one),
        };
        if !known {
            return false;
        }
    }
    true
}

fn is_known(option: &str) -> bool {
    let counted = ["-n", "-U", "-"].iter().find_map(|letter| option.strip_prefix(letter));
    if counted.is_some_and(is_number) || SHOWING.contains(&option) {
        return true;
    }
    let Some((name, value)) = option.split_once('=') else { return false };
    match name {
        // `%G…` checks a signature, with a program that the configuration names.
        "--format" | "--pretty" => !value.contains("%G"),
        _ => SHOWING.iter().any(|known| known.strip_suffix('=') == Some(name)),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
