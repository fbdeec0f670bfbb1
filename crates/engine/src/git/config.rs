//! The few things of a repository's configuration that we read ourselves.

use std::fmt::Write;

/// Settings that say what a file in the working tree means, and cannot name a program.
const HARMLESS: [&str; 6] =
    ["autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "symlinks"];

/// The values of a setting, in the order they stand. Included files are not followed.
pub(crate) fn values(config: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in config.lines() {
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|one| one.split_once(']')) {
            inside = name.trim().eq_ignore_ascii_case(section);
            line = rest.trim();
        }
        let Some((name, value)) = line.split_once('=').filter(|_| inside) else { continue };
        if name.trim().eq_ignore_ascii_case(key) {
            found.push(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

/// The configuration that git is given in place of the repository's own.
pub(crate) fn settings(config: &str) -> String {
    let mut text = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n".to_owned();
    let plain = |value: &String| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let last = |section, key| values(config, section, key).pop().filter(plain);
    for key in HARMLESS {
        if let Some(value) = last("core", key) {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\t{key} = {value}");
        }
    }
    if let Some(format) = last("extensions", "objectformat") {
        let _ = writeln!(text, "[extensions]\n\tobjectformat = {format}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_settings_are_taken_over() {
        let config = "[core]\n\tautocrlf = true\n\tfsmonitor = /evil\n\thooksPath=x\n\
                      \teol = lf\\nfsmonitor\n[include]\n\tpath = evil\n\
                      [extensions]\n\tobjectFormat = sha256\n\tpartialClone = origin\n\
                      [filter \"x\"]\n\tclean = evil\n";
        let expected = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\
                        \tautocrlf = true\n[extensions]\n\tobjectformat = sha256\n";
        assert_eq!(settings(config), expected);
        assert_eq!(values(config, "core", "hookspath"), ["x"]);
    }
}
