//! The few things of git's configuration that we read ourselves.

mod parse;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use self::parse::{Setting, parse};
use super::{MOST_BYTES, text};

/// Settings that say what a file in the working tree means, and cannot name a program.
const HARMLESS: [&str; 6] =
    ["autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "symlinks"];

/// How many files are read for one repository; git itself follows ten includes deep.
const MOST_FILES: usize = 64;

/// The values of a setting, in the order they stand. Included files are not followed.
fn values(config: &str, section: &str, key: &str) -> Vec<String> {
    let fits = |setting: &Setting| {
        setting.section == section && setting.subsection.is_none() && setting.key == key
    };
    parse(config).into_iter().filter(fits).map(|setting| setting.value).collect()
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

/// What files of git's configuration lead to: other files, and folders of hooks.
#[derive(Debug, Default)]
pub(crate) struct ConfigReach {
    /// Files that are included, whether they are there or not, and whatever the condition.
    pub(crate) included: BTreeSet<PathBuf>,
    /// Values of `core.hooksPath`; relative ones are relative to the working tree.
    pub(crate) hooks: Vec<PathBuf>,
}

impl ConfigReach {
    /// Reads these files and what they include.
    pub(crate) fn of(files: impl IntoIterator<Item = PathBuf>, home: Option<&Path>) -> Self {
        let mut reach = Self::default();
        let mut open: Vec<PathBuf> = files.into_iter().collect();
        let mut read = BTreeSet::new();
        while let Some(file) = open.pop() {
            let Ok(real) = file.canonicalize() else { continue };
            if read.len() >= MOST_FILES || !read.insert(real.clone()) {
                continue;
            }
            let Some(text) = text(&file, MOST_BYTES) else { continue };
            for setting in parse(&text) {
                let below_home = |value: &str| Some(home?.join(value.strip_prefix("~/")?));
                let value = || {
                    let value = &setting.value;
                    below_home(value).unwrap_or_else(|| PathBuf::from(value))
                };
                match (setting.section.as_str(), setting.key.as_str()) {
                    ("core", "hookspath") => reach.hooks.push(value()),
                    ("include" | "includeif", "path") => {
                        // Git takes it from where the file is named; be it a link.
                        for folder in [&file, &real].into_iter().filter_map(|one| one.parent()) {
                            let included = folder.join(value());
                            reach.included.insert(included.clone());
                            open.push(included);
                        }
                    }
                    _ => {}
                }
            }
        }
        reach
    }
}

/// The files of the user and of the system that hold for every repository.
pub(crate) fn shared_files(home: Option<&Path>) -> Vec<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let named = |name: &str| named(name).filter(|path| path.is_absolute());
    let below = named("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")));
    let files = [
        named("GIT_CONFIG_SYSTEM").or_else(|| Some(PathBuf::from("/etc/gitconfig"))),
        named("GIT_CONFIG_GLOBAL"),
        below.map(|folder| folder.join("git/config")),
        home.map(|home| home.join(".gitconfig")),
    ];
    files.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    #[test]
    fn includes_are_followed_whatever_their_condition_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let config = "[include]\n\tpath = sub/one\n\tpath = missing\n\
                      [includeIf \"gitdir:/nowhere/\"]\n\tpath = ~/two\n";
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("config"), config).unwrap();
        fs::write(at("sub/one"), "[include]\npath=../config\n[core] hooksPath = ~/hooks\n")
            .unwrap();
        fs::write(at("home-two"), "").unwrap();
        fs::create_dir(at("home")).unwrap();
        fs::write(at("home/two"), "[CORE]\nHOOKSPATH = re\\\nlative\n").unwrap();
        let reach = ConfigReach::of([at("config")], Some(&at("home")));
        let mut hooks = reach.hooks.clone();
        hooks.sort();
        assert_eq!(hooks, [at("home/hooks"), PathBuf::from("relative")]);
        for name in ["sub/one", "missing", "home/two"] {
            assert!(reach.included.contains(&at(name)), "{name}: {reach:?}");
        }
    }
}
